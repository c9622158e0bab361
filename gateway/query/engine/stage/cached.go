package stage

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/trace"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
)

// cachedGroups is a plan's answer in the result cache: its groups, with the points of
// all times of the plan's rows, so that a later time window inside the same hours finds
// it too; and the cost of making them. Names are looked up again for each query. It is
// shared among queries and must not change.
type cachedGroups struct {
	groups []merge.Group
	stats  dispatch.Stats
}

// pointsIn counts the points of groups.
func pointsIn(groups []merge.Group) (n int) {
	for i := range groups {
		n += groups[i].Points.Len()
	}
	return n
}

// Bytes of a group in addition to what its columns hold, of a slice's header, and of a UID
// with its header.
const (
	groupBytes = 300
	sliceBytes = 24
	tagBytes   = sliceBytes + 8
)

// Bytes estimates the memory that the groups take.
func (c *cachedGroups) Bytes() int64 {
	n := 0
	for i := range c.groups {
		g := &c.groups[i]
		n += groupBytes + len(g.Key) + len(g.Suffix) + cap(g.Points.Time)*8 + cap(g.Points.Bits)*8 + cap(g.Points.Float)
		n += (2*len(g.Tags) + len(g.Aggregated)) * tagBytes
		for _, lists := range [][][]byte{g.Notes, g.Spans} {
			for _, b := range lists {
				n += sliceBytes + len(b)
			}
		}
		for _, t := range g.TSUIDs {
			n += sliceBytes + len(t)
		}
	}
	return int64(n)
}

// Read returns what was read to make the groups.
func (c *cachedGroups) Read() (rows, bytes int64) { return c.stats.Rows, c.stats.Bytes }

// newCachedGroups copies groups, so that they do not keep the merger's memory alive. It keeps the
// TSUIDs of each group's members, if there are any, and one span, which shows nameGroups that the group has members.
func newCachedGroups(groups []merge.Group, stats dispatch.Stats) *cachedGroups {
	c := &cachedGroups{groups: slices.Clone(groups), stats: stats}
	c.stats.Trace = nil
	for i := range c.groups {
		g := &c.groups[i]
		g.Key = bytes.Clone(g.Key)
		g.Spans = cloned(g.Spans[:min(1, len(g.Spans))])
		g.Notes = cloned(g.Notes)
		g.TSUIDs = cloned(g.TSUIDs)
		g.Aggregated = cloned(g.Aggregated)
		tags := g.Tags
		g.Tags = nil
		for _, t := range tags {
			g.Tags = append(g.Tags, encoding.TagPair{K: bytes.Clone(t.K), V: bytes.Clone(t.V)})
		}
	}
	return c
}

// cloned copies a list into one allocation.
func cloned[B ~[]byte](list []B) []B {
	if len(list) == 0 {
		return nil
	}
	all, out := slices.Concat(list...), make([]B, len(list))
	for i, b := range list {
		out[i], all = all[:len(b):len(b)], all[len(b):]
	}
	return out
}

// answerName names the answer to a request in the result cache: an aggregation that may
// change the bits of an answer has answers of its own, and so have answers that name their series.
func (r *Request) answerName() dispatch.PlanAnswer {
	name := dispatch.ExactAnswer
	if r.rounded() {
		name = dispatch.RoundedAnswer
	}
	if !r.unnamed() {
		name += dispatch.WithSeries
	}
	return name
}

// find answers a request from the result cache, if no row has changed since the answer was kept.
type find struct {
	exec *dispatch.Executor
	next Stage
}

func (s *find) Groups(ctx context.Context, r *Request) (Answer, error) {
	began := time.Now()
	r = r.lookedUp(s.lookUp(ctx, r))
	if reason := r.lookup.Reason(); reason != "" { // no cached answer could be proven
		r.Trace.Add("result cache", time.Since(began), map[string]any{"resultCache": "read: " + reason})
	}
	if a, ok, err := r.found(ctx, began); ok {
		return a, err
	}
	return s.next.Groups(ctx, r)
}

// lookUp looks for the answer. It returns nil where nothing can be cached.
func (s *find) lookUp(ctx context.Context, r *Request) *resultcache.PlanLookup {
	if !r.cacheable() {
		return nil
	}
	return s.exec.LookupPlan(ctx, r.Plan, r.answerName(), r.Proofs)
}

// lookedUp returns the request with a lookup, for its answer or to keep one.
func (r *Request) lookedUp(l *resultcache.PlanLookup) *Request {
	out := *r
	out.lookup = l
	return &out
}

// found returns the answer that the request's lookup in the result cache has found; ok is false if it has
// found none. It gives the answer to the batch that waits for it, if there is one, and spends the cost of
// reading it from the request's budget: a limit refuses a cached answer as it refuses a fresh one. began is
// the start of the lookup, for the trace.
func (r *Request) found(ctx context.Context, began time.Time) (a Answer, ok bool, err error) {
	cached, ok := r.lookup.Found().(*cachedGroups)
	if !ok {
		return a, false, nil
	}
	if r.share != nil {
		r.share(cached)
	}
	if err := r.spend(ctx, &cached.stats); err != nil {
		return a, true, err
	}

	a = Answer{Groups: trimmed(cached.groups, r.Plan), Stats: cached.stats.FromCache(), Plan: r.Compiled}
	if err := r.Points.set(pointsIn(a.Groups)); err != nil {
		return Answer{Stats: a.Stats}, true, err
	}
	counts := trace.Counts(a.Stats)
	counts["resultCache"] = "answered from memory whole: no row has changed"
	r.Trace.Add("result cache", time.Since(began), counts)
	return a, true, nil
}

// caching answers a request that was queried before, or that others wait for, for all times of its
// rows, so that a later time window inside the same hours has the answer, too; and caches that.
type caching struct {
	split *planSplit // of what is kept
	whole Stage
}

func (s *caching) Groups(ctx context.Context, r *Request) (Answer, error) {
	wanted := r.lookup.Wanted()
	if !wanted && r.share == nil {
		return s.whole.Groups(ctx, r)
	}

	untrimmed := r.Untrimmed()
	var a Answer
	var err error
	if wanted {
		// An answer can be kept even if those of its parts are too large. That is worth the
		// proofs only if the rows do not change all the time.
		untrimmed.proving = r.lookup.Unchanged()
		a, err = s.split.groups(ctx, untrimmed, r.Plan.End)
	} else {
		a, err = s.whole.Groups(ctx, untrimmed)
	}
	switch {
	case err == nil:
		return s.cache(r, a)
	case !mayLieOutsideQuery(err), r.share != nil && ctx.Err() != nil: // in a batch, another member continues
		return a, err
	}
	// The cause may be a time outside of the query: try without it.
	if r.share != nil {
		r.share(nil) // they need not wait for what is this query's alone
	}
	return s.whole.Groups(ctx, r)
}

// cache caches the answer for all times, and returns that to the request.
func (s *caching) cache(r *Request, a Answer) (Answer, error) {
	if r.share != nil || a.Stats.CacheComplete() {
		made := newCachedGroups(a.Groups, a.Stats)
		if a.Stats.CacheComplete() {
			r.lookup.Store(made)
		}
		if r.share != nil {
			r.share(made)
		}
	}
	a.Groups, a.Plan = trimmed(a.Groups, r.Plan), r.Compiled
	// The answer has only some of the counted points.
	return a, r.Points.set(pointsIn(a.Groups))
}

// trimmed returns groups with the points between the plan's Start and End.
func trimmed(groups []merge.Group, p *scanplan.Plan) []merge.Group {
	out := slices.Clone(groups)
	for i := range out {
		out[i].Points = pointsBetween(&out[i].Points, p.Start, p.End)
	}
	return out
}

// pointsBetween returns a view of the points from start to end, in ms, both inclusive.
// Its capacity is limited, so that appending to it does not overwrite p.
func pointsBetween(p *encoding.Points, start, end int64) encoding.Points {
	i, _ := slices.BinarySearch(p.Time, start)
	j, _ := slices.BinarySearch(p.Time, end+1)
	j = max(i, j)
	return encoding.Points{Time: p.Time[i:j:j], Bits: p.Bits[i:j:j], Float: p.Float[i:j:j]}
}

// mayLieOutsideQuery reports whether an error may come from times that the plan reads
// outside of the query: an infinite sum, or too much memory or too many points.
func mayLieOutsideQuery(err error) bool {
	var infinity *aggregate.InfinityError
	var merged *merge.MemoryError
	var large *memory.LimitError
	var points *tooManyPoints
	return errors.As(err, &infinity) || errors.As(err, &merged) || errors.As(err, &large) || errors.As(err, &points)
}
