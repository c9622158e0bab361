package wholetable

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"testing"
)

// keysOf returns n keys of 4 bytes.
func keysOf(n int) (keys [][]byte) {
	for i := range n {
		keys = append(keys, binary.BigEndian.AppendUint32(nil, uint32(i)))
	}
	return keys
}

// Halves halves shares until each fits into its budget. Every key is then in exactly one share,
// and no share exceeds the budget.
func TestShare_Halves(t *testing.T) {
	keys := keysOf(1000)
	seen, shares := map[string]int{}, map[string]bool{}
	err := Share{}.Halves(func(half Share) error {
		if shares[half.String()] {
			t.Errorf("%s is read twice", half)
		}
		shares[half.String()] = true

		var mine []string
		budget := Budget{Most: 4 * 50} // 50 keys
		for _, k := range keys {
			if !half.Has(k) {
				continue
			}
			if err := budget.Take(len(k)); err != nil {
				return err
			}
			mine = append(mine, string(k))
		}
		if len(mine) > 50 {
			t.Errorf("%s has %d keys, want 50 at most", half, len(mine))
		}
		for _, k := range mine {
			seen[k]++
		}
		return nil
	})
	if err != nil || len(seen) != len(keys) || len(shares) < 2*len(keys)/50 {
		t.Errorf("%v: %d keys of %d in %d shares, want all in at least 40", err, len(seen), len(keys), len(shares))
	}
	for k, times := range seen {
		if times != 1 {
			t.Errorf("key %x was seen %d times, want once", k, times)
		}
	}
}

// Halves gives up with ErrMuch at the smallest share, one of 4096.
func TestShare_Halves_ends(t *testing.T) {
	var read []Share
	err := Share{}.Halves(func(half Share) error {
		read = append(read, half)
		return ErrMuch
	})
	if !errors.Is(err, ErrMuch) || len(read) != bits.Len(mostShares)-1 ||
		read[len(read)-1].String() != "part 1 of 4096" {
		t.Errorf("got %v after %v, want ErrMuch after the smallest share", err, read)
	}
}

// Any other error ends the reading at once.
func TestShare_Halves_error(t *testing.T) {
	broken, reads := errors.New("broken"), 0
	err := Share{}.Halves(func(Share) error { reads++; return broken })
	if !errors.Is(err, broken) || reads != 1 {
		t.Errorf("%v after %d reads, want the error of the first", err, reads)
	}
}

// The zero Share has all keys, and its text says so.
func TestShare_whole(t *testing.T) {
	for _, k := range keysOf(100) {
		if !(Share{}).Has(k) {
			t.Errorf("the zero Share lacks key %x", k)
		}
	}
	if got := (Share{}).String(); got != "part 1 of 1" {
		t.Errorf("got %q", got)
	}
}
