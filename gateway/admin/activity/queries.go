package activity

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Bounds of what is kept of queries.
const (
	// Span is how long a query that has ended is kept.
	Span = time.Hour
	// PerMinute is how many of the queries that end within a minute are kept of either kind. The
	// lists of an hour are exact up to this length.
	PerMinute = 20

	minutes = int(Span / time.Minute)
)

// Query is a query that has ended.
type Query struct {
	Route, Query, Client, Token, Request string
	Start                                time.Time
	Took                                 time.Duration
	Status                               int
	Failure                              string // "" for a query that was answered
	Rows, Points, Bytes                  int64  // read
	Answered                             int    // points of the answer
}

// Queries has the slowest and the heaviest queries of the last hour. The zero value is empty. Its
// methods may be called from many goroutines.
type Queries struct {
	mu   sync.Mutex
	ring [minutes]minute
}

// minute has the queries that ended within one minute.
type minute struct {
	at                int64 // minutes since 1970
	slowest, heaviest []*Query
}

func bySlowness(a, b *Query) int { return cmp.Compare(b.Took, a.Took) }

func byWeight(a, b *Query) int {
	return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Points, a.Points))
}

// Add takes in a query that has ended now; describe makes what is kept of it. It is called only
// if the query is kept, because most are not.
func (q *Queries) Add(now time.Time, took time.Duration, bytes, points int64, describe func() *Query) {
	measure := &Query{Took: took, Bytes: bytes, Points: points}
	at := now.Unix() / 60

	q.mu.Lock()
	m := q.minuteLocked(at)
	kept := fits(m.slowest, measure, bySlowness) || fits(m.heaviest, measure, byWeight)
	q.mu.Unlock()
	if !kept {
		return
	}

	// Without the lock: it writes a query as JSON.
	described := describe()

	q.mu.Lock()
	defer q.mu.Unlock()
	m = q.minuteLocked(at)
	m.slowest = insert(m.slowest, described, bySlowness)
	m.heaviest = insert(m.heaviest, described, byWeight)
}

// minuteLocked returns the place of a minute, empty if that was another one's. An older minute
// than the one that is there, as of a clock that was set back, counts as that one.
func (q *Queries) minuteLocked(at int64) *minute {
	m := &q.ring[at%int64(minutes)]
	if m.at < at {
		*m = minute{at: at}
	}
	return m
}

// fits reports whether a query has a place in a sorted list of PerMinute.
func fits(list []*Query, x *Query, order func(a, b *Query) int) bool {
	return len(list) < PerMinute || order(x, list[len(list)-1]) < 0
}

// insert puts a query into a sorted list of PerMinute at most, behind its equals.
func insert(list []*Query, x *Query, order func(a, b *Query) int) []*Query {
	if !fits(list, x, order) {
		return list
	}
	i, _ := slices.BinarySearchFunc(list, x, func(a, b *Query) int {
		if order(a, b) <= 0 {
			return -1
		}
		return 1
	})
	list = slices.Insert(list, i, x)
	return list[:min(len(list), PerMinute)]
}

// Slowest returns the queries of the last hour that took longest, n at most.
func (q *Queries) Slowest(now time.Time, n int) []*Query {
	return q.collect(now, n, func(m *minute) []*Query { return m.slowest }, bySlowness)
}

// Heaviest returns the queries of the last hour that read most bytes, n at most.
func (q *Queries) Heaviest(now time.Time, n int) []*Query {
	return q.collect(now, n, func(m *minute) []*Query { return m.heaviest }, byWeight)
}

// collect merges the lists of the minutes of the last hour.
func (q *Queries) collect(now time.Time, n int, of func(*minute) []*Query, order func(a, b *Query) int) []*Query {
	q.mu.Lock()
	defer q.mu.Unlock()

	var all []*Query
	oldest := now.Unix()/60 - int64(minutes) + 1
	for i := range q.ring {
		if m := &q.ring[i]; m.at >= oldest {
			all = append(all, of(m)...)
		}
	}
	slices.SortStableFunc(all, order)
	return all[:min(n, len(all))]
}
