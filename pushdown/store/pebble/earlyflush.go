package pebble

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"
)

// A memtable with fewer appends and fewer bytes is not worth a flush: a scan joins
// that many appends in about a millisecond, and that many bytes may stay in the log,
// where they are uncompressed and read again at the next start.
const (
	idleAppends = 4096
	idleBytes   = 256 << 10
)

// mostRepeats is how many repeated appends a memtable may hold: those to a row that it has
// an append of already. A scan joins them one by one, sixteen times as many as idleAppends.
// The first append of a row does not count, because a scan has to read each row in any
// case: a memtable of many rows may become full, and so makes fewer and larger tables.
const mostRepeats = 64 << 10

// earlyFlush flushes a memtable before it is full: when writing pauses and it holds enough,
// or when many of its appends are to the same rows.
type earlyFlush struct {
	pause   time.Duration
	appends atomic.Int64 // since the memtable was new
	repeats atomic.Int64
	bytes   atomic.Int64
	rows    rowSketch // that have an append in the memtable
	timer   *time.Timer
}

// newEarlyFlush returns an earlyFlush that calls flush once the memtable holds mostRepeats,
// or wrote was not called for pause. A pause that is not positive flushes nothing.
func newEarlyFlush(pause time.Duration, flush func()) *earlyFlush {
	f := &earlyFlush{pause: pause, rows: newRowSketch(), timer: time.AfterFunc(time.Hour, flush)}
	f.timer.Stop()
	return f
}

// wrote counts a batch, and starts the pause again.
func (f *earlyFlush) wrote(b *batch) {
	if repeats := f.repeats.Add(int64(b.repeats)); repeats >= mostRepeats {
		// Only the batch that reaches the bound starts the flush. No later one may put it off.
		if repeats-int64(b.repeats) < mostRepeats {
			f.timer.Reset(0)
		}
		return
	}

	many := f.appends.Add(int64(b.appended)) >= idleAppends
	if large := f.bytes.Add(int64(b.bytes)) >= idleBytes; (many || large) && f.pause > 0 {
		f.timer.Reset(f.pause)
	}
}

// rotated is called when a new memtable begins, with a new log.
func (f *earlyFlush) rotated() {
	f.appends.Store(0)
	f.repeats.Store(0)
	f.bytes.Store(0)
	f.rows.reset()
}

// stop stops the timer. It does not wait for a flush that runs already.
func (f *earlyFlush) stop() { f.timer.Stop() }

// flushEarly starts a flush and does not wait for it.
func (s *Store) flushEarly() {
	if s.begin(context.Background()) != nil {
		return
	}
	defer s.life.RUnlock()
	if _, err := s.db.AsyncFlush(); err != nil {
		s.log.Errorf("flush of a memtable that is not full: %v", err)
	}
}

// rowSketch remembers keys by one bit each, so that some new keys count as known: of the
// 250,000 that fit into a memtable of 16 MiB an eighth.
type rowSketch struct {
	seed maphash.Seed
	bits []atomic.Uint64
}

// sketchBits is the binary logarithm of the bits of a sketch: it takes 128 KiB.
const sketchBits = 20

func newRowSketch() rowSketch {
	return rowSketch{seed: maphash.MakeSeed(), bits: make([]atomic.Uint64, 1<<sketchBits/64)}
}

// add remembers a key and reports whether it was known.
func (r *rowSketch) add(key []byte) bool {
	at := maphash.Bytes(r.seed, key) >> (64 - sketchBits)
	bit := uint64(1) << (at % 64)
	return r.bits[at/64].Or(bit)&bit != 0
}

func (r *rowSketch) reset() {
	for i := range r.bits {
		r.bits[i].Store(0)
	}
}
