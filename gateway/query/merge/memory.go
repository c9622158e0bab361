package merge

import (
	"slices"

	"downpour/encoding/batch"
)

// memory holds what is copied out of batches. It is freed as a whole, with the merger.
type memory struct {
	segments slab[segment]
	times    slab[int64]
	buckets  sharedTimes
	points   sharedTimes
	values   slab[float64]
	bits     slab[uint64]
	floats   slab[bool]
	bytes    slab[byte]
}

// copySegment copies a row of a batch.
func (m *memory) copySegment(part string, s *batch.Series) *segment {
	c := &m.segments.alloc(1)[0]
	c.part = part
	if len(s.Time) > 0 {
		c.time, c.value = m.buckets.copyOf(s.Time, m.times.copy), m.values.copy(s.Value)
	}
	if s.Raw.Len() > 0 {
		c.raw.Time, c.raw.Bits, c.raw.Float = m.points.copyOf(s.Raw.Time, m.times.copy), m.bits.copy(s.Raw.Bits),
			m.floats.copy(s.Raw.Float)
	}
	for _, n := range s.Notes {
		c.notes = append(c.notes, m.bytes.copy(n))
	}
	return c
}

// sharedTimes is the column of times that was copied last. Series mostly have points at
// the same times, and columns are never written to again. So one copy does for all
// series with these times that follow each other, which halves the memory of buckets.
type sharedTimes struct{ last []int64 }

// copyOf returns a column equal to times: the last one, or else a new copy.
func (s *sharedTimes) copyOf(times []int64, copied func([]int64) []int64) []int64 {
	if !slices.Equal(s.last, times) {
		s.last = copied(times)
	}
	return s.last
}

// slab hands out slices of large allocations. They are never handed out again.
type slab[T any] struct {
	free []T
	size int // elements of the last allocation
}

// Allocations of a slab double from the first to the second number of elements.
const (
	minSlab = 16
	maxSlab = 32 << 10
)

// alloc returns n zero elements.
func (s *slab[T]) alloc(n int) []T {
	if n > len(s.free) {
		s.size = min(max(minSlab, 2*s.size), maxSlab)
		s.free = make([]T, max(n, s.size))
	}
	to := s.free[:n:n]
	s.free = s.free[n:]
	return to
}

func (s *slab[T]) copy(from []T) []T {
	to := s.alloc(len(from))
	copy(to, from)
	return to
}

// arena hands out slices that are valid until the next reset.
type arena[T any] struct {
	chunk []T
	used  int
}

// minChunk is the least number of elements that an arena allocates at once.
const minChunk = 4 << 10

func (a *arena[T]) reset() { a.used = 0 }

// reserve makes room for n elements. It must follow a reset.
func (a *arena[T]) reserve(n int) {
	if len(a.chunk) < n {
		a.chunk = make([]T, n)
	}
}

// alloc returns n elements of any value. If they do not fit, it begins a larger chunk,
// which stays for the next group; the old chunk lives as long as its slices.
func (a *arena[T]) alloc(n int) []T {
	if a.used+n > len(a.chunk) {
		a.chunk, a.used = make([]T, max(n, minChunk, len(a.chunk)*3/2)), 0
	}
	s := a.chunk[a.used:][:n:n]
	a.used += n
	return s
}

func (a *arena[T]) copy(s []T) []T {
	c := a.alloc(len(s))
	copy(c, s)
	return c
}
