package sasl

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
)

// ErrToken is returned for a wrap token that is malformed, changed, out of order, or not
// protected as was agreed.
var ErrToken = errors.New("bad wrap token")

// Flags of a wrap token.
const (
	flagAcceptor byte = 1 << iota
	flagSealed
	flagSubkey

	allFlags = flagAcceptor | flagSealed | flagSubkey
)

const (
	wrapID     = 0x0504
	wrapHeader = 16
	confounder = 16 // the size of a block
)

// Direction is whose tokens are made or opened.
type Direction struct {
	Acceptor bool   // they come from the acceptor, which is the server
	Subkey   bool   // the keys are derived from the acceptor's subkey
	First    uint64 // sequence number of the first token
}

// Usage returns the number from which the keys of wrap tokens are derived. Source: RFC
// 4121, section 2.
func (d Direction) Usage() uint32 {
	if d.Acceptor {
		return 22
	}
	return 24
}

// flags returns the flags of a token that is sealed or not.
func (d Direction) flags(sealed bool) byte {
	var f byte
	if d.Acceptor {
		f |= flagAcceptor
	}
	if d.Subkey {
		f |= flagSubkey
	}
	if sealed {
		f |= flagSealed
	}
	return f
}

// Sealer makes the wrap tokens of one direction, in order. It must be used by one
// goroutine at a time.
type Sealer struct {
	suite     *suite
	direction Direction
	next      uint64
}

// NewSealer returns a Sealer whose keys are derived for the usage of the direction.
func NewSealer(keys Keys, d Direction) (*Sealer, error) {
	s, err := newSuite(keys)
	return &Sealer{s, d, d.First}, err
}

// Overhead returns how much longer than its data a token may be, in bytes.
func (s *Sealer) Overhead() int { return wrapHeader + confounder + wrapHeader + s.suite.macSize }

// header appends the header of the next token.
func (s *Sealer) header(dst []byte, flags byte, ec uint16) []byte {
	dst = binary.BigEndian.AppendUint16(dst, wrapID)
	dst = append(dst, flags, 0xff)
	dst = binary.BigEndian.AppendUint16(dst, ec)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	return binary.BigEndian.AppendUint64(dst, s.next)
}

// Sign appends a token that holds data in clear, with a MAC.
func (s *Sealer) Sign(dst, data []byte) []byte {
	flags := s.direction.flags(false)
	dst = s.header(dst, flags, uint16(s.suite.macSize))
	dst = append(dst, data...)

	// The MAC is over a header whose EC is still 0.
	var header [wrapHeader]byte
	dst = s.suite.sum(dst, s.suite.check, data, s.header(header[:0], flags, 0))
	s.next++
	return dst
}

// Seal appends a token that holds data encrypted.
func (s *Sealer) Seal(dst, data []byte) []byte {
	flags := s.direction.flags(true)
	dst = s.header(dst, flags, 0)

	start := len(dst)
	// Once for all that follows, with the room for a whole last block.
	dst = slices.Grow(dst, confounder+len(data)+wrapHeader+blockSize+s.suite.macSize)
	dst = dst[:start+confounder]
	rand.Read(dst[start:]) // never fails
	dst = append(dst, data...)
	dst = s.header(dst, flags, 0)

	dst = s.suite.encrypt(dst, start)
	s.next++
	return dst
}

// Opener opens the wrap tokens of one direction, in order. It must be used by one
// goroutine at a time.
type Opener struct {
	suite     *suite
	direction Direction
	next      uint64
}

// NewOpener returns an Opener whose keys are derived for the usage of the direction.
func NewOpener(keys Keys, d Direction) (*Opener, error) {
	s, err := newSuite(keys)
	return &Opener{s, d, d.First}, err
}

// Open returns the data of a token that must be protected by p: sealed with Privacy, signed
// otherwise. It changes the token; the data is a part of it.
func (o *Opener) Open(token []byte, p Protection) ([]byte, error) {
	if !IsWrap(token) {
		return nil, fmt.Errorf("%w: got %d bytes that begin with %x, want at least %d, the first 0504", ErrToken,
			len(token), token[:min(2, len(token))], wrapHeader)
	}

	header, body := token[:wrapHeader], token[wrapHeader:]
	sealed := p == Privacy
	switch got, want := header[2]&allFlags, o.direction.flags(sealed); {
	case got != want:
		return nil, fmt.Errorf("%w: flags: got %d, want %d", ErrToken, got, want)
	case header[3] != 0xff:
		return nil, fmt.Errorf("%w: filler: got %x, want ff", ErrToken, header[3])
	}
	// The sequence numbers are authenticated below. A gap or a repetition means that somebody has
	// removed or replayed tokens.
	if got := binary.BigEndian.Uint64(header[8:]); !o.isNext(got) {
		return nil, fmt.Errorf("%w: sequence number: got %d, want %d", ErrToken, got, o.next)
	}

	ec, rrc := int(binary.BigEndian.Uint16(header[4:])), int(binary.BigEndian.Uint16(header[6:]))
	rotateLeft(body, rrc)
	var data []byte
	var err error
	if sealed {
		data, err = o.unseal(header, body, ec)
	} else {
		data, err = o.verify(header, body, ec)
	}
	if err == nil {
		o.next++
	}
	return data, err
}

// isNext reports whether a sequence number is that of the next token. Java writes only its low 32
// bits: after 2^32 tokens it begins with 0 again.
func (o *Opener) isNext(got uint64) bool {
	return got == o.next || o.direction.First <= math.MaxUint32 && got == uint64(uint32(o.next))
}

// IsWrap reports whether a frame is long enough for a wrap token and begins as one.
func IsWrap(frame []byte) bool {
	return len(frame) >= wrapHeader && binary.BigEndian.Uint16(frame) == wrapID
}

// unseal decrypts a body.
func (o *Opener) unseal(header, body []byte, ec int) ([]byte, error) {
	if len(body) < confounder+ec+wrapHeader+o.suite.macSize {
		return nil, fmt.Errorf("%w: got %d sealed bytes, want at least %d", ErrToken, len(body),
			confounder+ec+wrapHeader+o.suite.macSize)
	}
	plain, err := o.suite.decrypt(body)
	if err != nil {
		return nil, err
	}

	// The header inside is the one outside, before it was rotated.
	end := len(plain) - wrapHeader
	clear(header[6:8])
	if !bytes.Equal(plain[end:], header) {
		return nil, fmt.Errorf("%w: the header inside is another than outside", ErrToken)
	}
	return plain[confounder : end-ec], nil
}

// verify checks the MAC of a body in clear.
func (o *Opener) verify(header, body []byte, ec int) ([]byte, error) {
	if ec != o.suite.macSize || len(body) < ec {
		return nil, fmt.Errorf("%w: checksum: got %d bytes in %d, want %d", ErrToken, ec, len(body), o.suite.macSize)
	}
	data, mac := body[:len(body)-ec], body[len(body)-ec:]

	clear(header[4:8])
	sum := o.suite.sum(o.suite.scratch[:0], o.suite.check, data, header)
	if !hmac.Equal(mac, sum) { //fault:changed-token-opened TestWrap_refused
		return nil, fmt.Errorf("%w: wrong checksum", ErrToken)
	}
	return data, nil
}

// rotateLeft undoes a rotation of b by n bytes to the right.
func rotateLeft(b []byte, n int) {
	if len(b) == 0 || n%len(b) == 0 {
		return
	}
	n %= len(b)
	slices.Reverse(b[:n])
	slices.Reverse(b[n:])
	slices.Reverse(b)
}

// sum appends the MAC over parts.
func (s *suite) sum(dst []byte, mac hash.Hash, parts ...[]byte) []byte {
	mac.Reset()
	for _, part := range parts {
		mac.Write(part)
	}
	n := len(dst)
	return mac.Sum(dst)[:n+s.macSize]
}
