// Package histogram adds up the histograms of groups, time by time. The order of
// additions does not matter, so a part adds up what it finds, and the gateway adds up
// parts. It knows no store, network or clock. Source: HistogramAggregationIterator.
package histogram

import (
	"maps"
	"slices"
	"unsafe"

	"downpour/encoding"
)

// Sums are the histograms of groups. A zero Sums is empty. It is for one goroutine.
type Sums struct {
	groups map[string]*Group
	bytes  int64
}

// Group is the histograms of one group.
type Group struct {
	Key  string
	at   map[int64]*encoding.Histogram // by time, ms
	sums *Sums
}

// Bytes of a group without its key, of a histogram without its buckets, and of a
// bucket, each with its share of a map.
const (
	groupBytes     = 200
	histogramBytes = int64(unsafe.Sizeof(encoding.Histogram{})) + 48
	bucketBytes    = int64(unsafe.Sizeof(encoding.HistogramBucket{}))
)

// Group returns the group with a key, a new one if there is none.
func (s *Sums) Group(key []byte) *Group {
	if g := s.groups[string(key)]; g != nil {
		return g
	}
	if s.groups == nil {
		s.groups = map[string]*Group{}
	}

	g := &Group{Key: string(key), at: map[int64]*encoding.Histogram{}, sums: s}
	s.groups[g.Key] = g
	s.bytes += int64(len(key)) + groupBytes
	return g
}

// Bytes estimates the memory of all groups.
func (s *Sums) Bytes() int64 { return s.bytes }

// Sorted returns the groups in the order of their keys.
func (s *Sums) Sorted() []*Group {
	out := make([]*Group, 0, len(s.groups))
	for _, key := range slices.Sorted(maps.Keys(s.groups)) {
		out = append(out, s.groups[key])
	}
	return out
}

// Reset removes all groups.
func (s *Sums) Reset() {
	clear(s.groups)
	s.bytes = 0
}

// Add adds a histogram at a time, in ms. It copies what it keeps of h.
func (g *Group) Add(t int64, h *encoding.Histogram) {
	sum := g.at[t]
	if sum == nil {
		g.at[t] = &encoding.Histogram{Buckets: slices.Clone(h.Buckets), Underflow: h.Underflow, Overflow: h.Overflow}
		g.sums.bytes += histogramBytes + int64(len(h.Buckets))*bucketBytes
		return
	}

	before := len(sum.Buckets)
	sum.Add(h)
	g.sums.bytes += int64(len(sum.Buckets)-before) * bucketBytes
}

// Times returns the times of all histograms, ascending.
func (g *Group) Times() []int64 { return slices.Sorted(maps.Keys(g.at)) }

// At returns the histogram of a time that Times has returned.
func (g *Group) At(t int64) *encoding.Histogram { return g.at[t] }
