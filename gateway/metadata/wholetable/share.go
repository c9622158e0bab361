package wholetable

import (
	"errors"
	"fmt"
	"hash/maphash"
)

// Share is one of several equal parts of all keys, by a hash of their bytes. The zero Share is
// all keys.
type Share struct{ nth, of uint64 }

// seed makes all shares of a process cut the keys alike.
var seed = maphash.MakeSeed()

// Has reports whether a key belongs to the share.
func (s Share) Has(key []byte) bool { return s.of <= 1 || maphash.Bytes(seed, key)%s.of == s.nth }

// String is the share as text: "part 3 of 8".
func (s Share) String() string { return fmt.Sprintf("part %d of %d", s.nth+1, max(1, s.of)) }

// mostShares bounds how many times a table is read.
const mostShares = 1 << 12

// Halves calls read with one half of the share and then with the other. A half for which it
// returns ErrMuch is read by halves in its turn. It returns the first other error, or ErrMuch
// of a share that is not divided further.
func (s Share) Halves(read func(half Share) error) error {
	// A hash with hash%of == nth has a hash%(2*of) of nth or of nth+of.
	of := max(1, s.of)
	for _, half := range []Share{{s.nth, 2 * of}, {s.nth + of, 2 * of}} {
		err := read(half)
		if errors.Is(err, ErrMuch) && half.of < mostShares {
			err = half.Halves(read)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrMuch is returned when what is kept of a share takes more memory than is allowed.
var ErrMuch = errors.New("more than can be kept in memory")

// Budget counts memory, up to Most bytes.
type Budget struct{ Most, used int }

// Take counts n bytes more. It returns ErrMuch beyond Most.
func (b *Budget) Take(n int) error {
	if b.used += n; b.used > b.Most {
		return ErrMuch
	}
	return nil
}
