package pebble

import (
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// mergerName is written into every database and never changes.
const mergerName = "downpour.append.v1"

// appends joins the operands of Append.
var appends = &pebble.Merger{Name: mergerName, Merge: newJoiner}

// maxPooled is the size of the largest buffer that the pool keeps.
const maxPooled = 1 << 20

// joiners keeps buffers between cells: a scan over rows with unmerged appends joins
// thousands of them.
var joiners = sync.Pool{New: func() any { return new(joiner) }}

// joiner joins the operands of one cell in a buffer that has free space on both
// sides: pebble hands operands over from the youngest to the oldest when it
// iterates forward, and prepending each to a slice would be quadratic. The joined
// bytes are buf[lo:hi]; at least mostHeader bytes stay free before them.
//
// It joins bytes and nothing else: it makes no columns of entries. It could not distinguish a
// compaction from a read, and would have to do so for each scan that meets entries behind columns.
type joiner struct {
	buf    []byte
	lo, hi int
	count  int       // operands
	oldest cellValue // without its bytes; nothing can be older than a put, or than a sealed column
}

// newJoiner begins with one operand.
func newJoiner(key, operand []byte) (pebble.ValueMerger, error) {
	j := joiners.Get().(*joiner)
	v, err := parseValue(operand)
	if err != nil {
		return nil, fmt.Errorf("cannot join appends of key %v: %w", keyFormat(key), err)
	}

	j.count, j.oldest = 1, v.head()
	// All of the buffer is free space before the bytes: a scan goes forward, so
	// what comes next is older, and is prepended.
	j.lo = len(j.buf)
	j.hi = j.lo
	j.prepend(v.bytes)
	return j, nil
}

// MergeOlder joins an operand that is older than all others.
func (j *joiner) MergeOlder(operand []byte) error {
	v, err := parseValue(operand)
	if err != nil {
		return err
	}
	if j.oldest.tag != tagAppend {
		return fmt.Errorf("cannot join an operand of %d bytes that is older than %s", len(operand), j.oldest.kind())
	}

	j.count++
	j.oldest = v.head()
	j.prepend(v.bytes)
	return nil
}

// MergeNewer joins an operand that is newer than all others.
func (j *joiner) MergeNewer(operand []byte) error {
	v, err := parseValue(operand)
	if err != nil {
		return err
	}
	if v.tag != tagAppend {
		return fmt.Errorf("cannot join %s of %d bytes that is newer than an append", v.kind(), len(operand))
	}

	j.count++
	j.append(v.bytes)
	return nil
}

// Finish returns the joined value; closing the closer gives its buffer back.
func (j *joiner) Finish(bool) ([]byte, io.Closer, error) {
	switch {
	case j.count == 1 && j.oldest.tag == tagPut:
		j.lo -= putHeader
		fillPut(j.buf[j.lo:], j.oldest.ms)
	case j.oldest.tag == tagSealed:
		var header [mostHeader]byte
		h := appendSealedHeader(header[:0], j.oldest.sealed) //fault:sealed-length-lost TestJoin
		j.lo -= len(h)
		copy(j.buf[j.lo:], h)
	default:
		// Appends are younger than the put that they were joined with, so the
		// value has no write time.
		j.lo--
		j.buf[j.lo] = tagAppend
	}
	return j.buf[j.lo:j.hi], j, nil
}

// Close gives the buffer back to the pool.
func (j *joiner) Close() error {
	if len(j.buf) <= maxPooled {
		joiners.Put(j)
	}
	return nil
}

// prepend copies v before the joined bytes.
func (j *joiner) prepend(v []byte) {
	if j.lo < len(v)+mostHeader {
		j.grow(len(v)+mostHeader, 0)
	}
	j.lo -= len(v)
	copy(j.buf[j.lo:], v)
}

// append copies v after the joined bytes.
func (j *joiner) append(v []byte) {
	if len(j.buf)-j.hi < len(v) {
		j.grow(mostHeader, len(v))
	}
	j.hi += copy(j.buf[j.hi:], v)
}

// grow at least doubles the buffer. All of the new space is on the side that needs
// it: before the bytes if after is 0; else after them, except before bytes, in which
// Finish writes the header.
func (j *joiner) grow(before, after int) {
	held := j.hi - j.lo
	size := max(256, 2*held+before+after+mostHeader)
	buf := make([]byte, size)
	lo := before
	if after == 0 {
		lo = size - held
	}
	copy(buf[lo:], j.buf[j.lo:j.hi])
	j.buf, j.lo, j.hi = buf, lo, lo+held
}
