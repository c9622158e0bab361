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

// joinerKeep bounds the buffers that the pool keeps.
const joinerKeep = 1 << 20

// joiners keeps buffers between cells: a scan over unmerged hours joins
// thousands of them.
var joiners = sync.Pool{New: func() any { return new(joiner) }}

// joiner collects operands in a buffer that has room on both sides: pebble
// hands them over from the youngest to the oldest when it iterates forward,
// and prepending to a slice again and again would be quadratic. The bytes
// collected are buf[lo:hi]; at least putHeader bytes stay free before them.
type joiner struct {
	buf    []byte
	lo, hi int
	count  int
	put    bool  // the oldest operand is a Put: nothing can be older
	ms     int64 // its time
}

// newJoiner starts with one operand.
func newJoiner(key, operand []byte) (pebble.ValueMerger, error) {
	j := joiners.Get().(*joiner)
	ms, value, err := parseValue(operand)
	if err != nil {
		return nil, fmt.Errorf("key %v: %w", keyFormat(key), err)
	}
	j.count, j.put, j.ms = 1, operand[0] == tagPut, ms
	j.lo = len(j.buf)
	j.hi = j.lo
	j.prepend(value)
	return j, nil
}

// MergeOlder puts an operand before those collected.
func (j *joiner) MergeOlder(operand []byte) error {
	ms, value, err := parseValue(operand)
	if err != nil {
		return err
	}
	if j.put {
		return fmt.Errorf("an operand older than a put: %d bytes", len(operand))
	}
	j.count++
	j.put, j.ms = operand[0] == tagPut, ms
	j.prepend(value)
	return nil
}

// MergeNewer puts an operand behind those collected.
func (j *joiner) MergeNewer(operand []byte) error {
	_, value, err := parseValue(operand)
	if err != nil {
		return err
	}
	if operand[0] == tagPut {
		return fmt.Errorf("a put newer than an append: %d bytes", len(operand))
	}
	j.count++
	j.append(value)
	return nil
}

// Finish returns the joined value; closing the closer gives its buffer back.
func (j *joiner) Finish(bool) ([]byte, io.Closer, error) {
	if j.count == 1 && j.put {
		j.lo -= putHeader
		fillPut(j.buf[j.lo:], j.ms)
	} else {
		j.lo--
		j.buf[j.lo] = tagAppend
	}
	return j.buf[j.lo:j.hi], j, nil
}

// Close gives the buffer back.
func (j *joiner) Close() error {
	if len(j.buf) <= joinerKeep {
		joiners.Put(j)
	}
	return nil
}

// prepend copies v before the bytes collected.
func (j *joiner) prepend(v []byte) {
	if j.lo < len(v)+putHeader {
		j.grow(len(v)+putHeader, 0)
	}
	j.lo -= len(v)
	copy(j.buf[j.lo:], v)
}

// append copies v behind the bytes collected.
func (j *joiner) append(v []byte) {
	if len(j.buf)-j.hi < len(v) {
		j.grow(putHeader, len(v))
	}
	j.hi += copy(j.buf[j.hi:], v)
}

// grow at least doubles the buffer, all new room on the side that needs it.
func (j *joiner) grow(before, after int) {
	held := j.hi - j.lo
	size := max(256, 2*held+before+after+putHeader)
	buf := make([]byte, size)
	lo := before
	if after == 0 {
		lo = size - held
	}
	copy(buf[lo:], j.buf[j.lo:j.hi])
	j.buf, j.lo, j.hi = buf, lo, lo+held
}
