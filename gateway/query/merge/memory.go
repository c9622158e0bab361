package merge

import (
	"slices"

	"downpour/encoding/batch"
)

// memory holds what is copied out of batches. It is given back as a whole.
type memory struct {
	segments slab[segment]
	times    slab[int64]
	buckets  shared // times of buckets and of points that were copied last
	points   shared
	values   slab[float64]
	bits     slab[uint64]
	floats   slab[bool]
	bytes    slab[byte]
}

// segment copies a row of a batch.
func (m *memory) segment(part string, s *batch.Series) *segment {
	c := &m.segments.alloc(1)[0]
	c.part = part
	if len(s.Time) > 0 {
		c.time, c.value = m.buckets.of(s.Time, m.times.copy), m.values.copy(s.Value)
	}
	if s.Raw.Len() > 0 {
		c.raw.Time, c.raw.Bits, c.raw.Float = m.points.of(s.Raw.Time, m.times.copy), m.bits.copy(s.Raw.Bits), m.floats.copy(s.Raw.Float)
	}
	for _, n := range s.Notes {
		c.notes = append(c.notes, m.bytes.copy(n))
	}
	return c
}

// shared is the column of times that was copied last. Series mostly have points
// at the same times, and columns are never written to again: one copy does for
// all that follow each other, which halves what buckets take.
type shared struct{ last []int64 }

// of returns a column equal to times: the last one, or a new copy.
func (s *shared) of(times []int64, copied func([]int64) []int64) []int64 {
	if !slices.Equal(s.last, times) {
		s.last = copied(times)
	}
	return s.last
}

// slab gives out memory for good, in pieces of larger allocations.
type slab[T any] struct {
	free []T
	size int // elements of the last allocation
}

// Allocations double from the least to the largest number of elements.
const (
	slabLeast   = 512
	slabLargest = 32 << 10
)

// alloc returns n zero elements.
func (s *slab[T]) alloc(n int) []T {
	if n > len(s.free) {
		s.size = min(max(slabLeast, 2*s.size), slabLargest)
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

// arena gives out columns that live until the next reset.
type arena[T any] struct {
	chunk []T
	used  int
}

// arenaChunk is the least number of elements allocated at once.
const arenaChunk = 4 << 10

func (a *arena[T]) reset() { a.used = 0 }

// reserve makes room for n elements, after a reset.
func (a *arena[T]) reserve(n int) {
	if len(a.chunk) < n {
		a.chunk = make([]T, n)
	}
}

// alloc returns n elements. What does not fit the chunk begins a larger one,
// which stays for the next group.
func (a *arena[T]) alloc(n int) []T {
	if a.used+n > len(a.chunk) {
		a.chunk, a.used = make([]T, max(n, arenaChunk, len(a.chunk)*3/2)), 0
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
