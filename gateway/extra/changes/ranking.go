package changes

import (
	"cmp"
	"math"
	"slices"
)

// Least is the score from which on a series counts as changed: below it, it moved by less than its usual
// restlessness.
const Least = 1

// Series is a series with its change.
type Series struct {
	Metric string
	Tags   [][2]string // key and value
	Change
}

// Ranking keeps the series that changed most. The zero value keeps none. It is for one goroutine.
type Ranking struct {
	Limit int // series of each list
	// Looked counts all series, Sparse those of them that could not be compared.
	Looked, Sparse int
	lists          [3]list // by Kind, from Changed on
}

// list has more series than the limit between two cuts.
type list struct {
	series []Series
	all    int
}

// Listed reports whether a series with this change is in one of the lists, if it is among the most changed.
func (c Change) Listed() bool {
	return c.Kind != Sparse && (c.Kind != Changed || c.Score >= Least)
}

// Add takes in a series.
func (r *Ranking) Add(s Series) {
	r.Looked++
	if s.Kind == Sparse {
		r.Sparse++
	}
	if !s.Listed() {
		return
	}
	l := &r.lists[s.Kind-Changed]
	l.all++
	l.take(r.Limit, s)
}

// Join takes in what another ranking with the same limit has.
func (r *Ranking) Join(o *Ranking) {
	r.Looked += o.Looked
	r.Sparse += o.Sparse
	for i := range o.lists {
		r.lists[i].all += o.lists[i].all
		r.lists[i].take(r.Limit, o.lists[i].series...)
	}
}

// List returns the series of a kind, the most changed first and at most Limit of them, and how many there are.
func (r *Ranking) List(k Kind) (most []Series, all int) {
	l := &r.lists[k-Changed]
	l.cut(r.Limit)
	return l.series, l.all
}

// take adds series, and drops those beyond the limit now and then.
func (l *list) take(limit int, s ...Series) {
	if l.series = append(l.series, s...); len(l.series) >= 2*limit+64 {
		l.cut(limit)
	}
}

func (l *list) cut(limit int) {
	slices.SortFunc(l.series, before)
	if len(l.series) > limit {
		clear(l.series[limit:])
		l.series = l.series[:limit]
	}
}

// before orders by score, then by size and by name: the same series give the same list, in whatever order they came.
func before(a, b Series) int {
	return cmp.Or(
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(size(b), size(a)),
		cmp.Compare(a.Metric, b.Metric),
		slices.CompareFunc(a.Tags, b.Tags, func(x, y [2]string) int { return slices.Compare(x[:], y[:]) }),
	)
}

// size is how large a series is that appeared or vanished, 0 for others.
func size(s Series) float64 {
	switch s.Kind {
	case Appeared:
		return math.Abs(s.After)
	case Vanished:
		return math.Abs(s.Before)
	}
	return 0
}
