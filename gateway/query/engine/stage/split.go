package stage

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/trace"
	"downpour/pushdown/process/memory"
)

// A dashboard queries the same hours every few seconds, while points are written to the last of
// them: the answer as a whole is never the one in the result cache. So the plan is split between two
// hours. The merged groups of its older hours are cached (merge.OlderHours) as long as their rows do not
// change, and only the newer hours are read and merged.

// settledAfter is the time after its end when an hour counts as complete, in s. If points come
// later, the older hours are merged again.
const settledAfter = 600

// minOlderHours is the least number of older hours for which a plan is split.
const minOlderHours = 2

// maxUncached is how often in a row a plan's older hours are merged and cannot be cached, before the plan
// is not split for a while.
// The first time its parts are not cached either, because they were not queried before; with
// several concurrent queries each may cache some of them the second time.
const maxUncached = 3

// tooManySeriesFor is how long a plan is known to have more series.
const tooManySeriesFor = 24 * time.Hour

// planSplit answers a request for all times of its rows: by the cached groups of its older hours and the
// rows of its newer ones, or as a whole.
type planSplit struct {
	exec          *dispatch.Executor
	scan          *scan
	whole         Stage       // a plan as a whole
	uncached      failedTries // plans whose merged older hours could not be cached lately
	tooManySeries failedTries // plans with more than maxSeries

	maxSeries int64 // Config.MaxOlderSeries
}

func newPlanSplit(cfg *Config, scan *scan, whole Stage) *planSplit {
	s := &planSplit{
		exec:          cfg.Exec,
		scan:          scan,
		tooManySeries: failedTries{lasts: tooManySeriesFor},
		maxSeries:     cmp.Or(cfg.MaxOlderSeries, 50_000),
	}
	s.whole = &countSeries{split: s, next: whole}
	return s
}

// countSeries is the stage below, which executes a plan as a whole. It notes plans with too many series
// to keep their older hours.
type countSeries struct {
	split *planSplit
	next  Stage
}

func (s *countSeries) Groups(ctx context.Context, r *Request) (Answer, error) {
	a, err := s.next.Groups(ctx, r)
	if n := int64(a.Stats.Parts); n > 0 && a.Stats.Spans/n > s.split.maxSeries && s.split.exec.SideBySide(r.Plan) {
		now := time.Now()
		s.split.tooManySeries.add(r.Plan, now, now)
	}
	return a, err
}

// cachedOlder is an entry of the result cache: a plan's merged older hours, and the cost of reading their
// rows. It is shared among queries.
type cachedOlder struct {
	*merge.OlderHours
	stats dispatch.Stats
	// refused is set once newer rows have changed points that were considered final. They do so
	// in each query, until they are among the older hours.
	refused atomic.Bool
}

// splitSettled cuts an untrimmed plan between two hours. All rows of the first should have been
// written by now and by the end of the query, both in ms: dashboards also query a whole day
// that is not over. ok is false if the plan cannot be continued, or has too few older hours.
func splitSettled(p *scanplan.Plan, end, now int64) (older, newer scanplan.Plan, ok bool) {
	at := min(end, now)/1000 - settledAfter
	at -= at % encoding.RowSeconds
	at = min(at, p.To-encoding.RowSeconds)
	if at < p.From+minOlderHours*encoding.RowSeconds || !merge.CanContinue(p) {
		return older, newer, false
	}
	if older, ok = p.Between(p.From, at); ok {
		newer, ok = p.Between(at, p.To)
	}
	return older, newer, ok
}

// groups answers an untrimmed request of a query that ends at end, in ms. If possible it reads only
// the rows of the newer hours, else all of them.
func (s *planSplit) groups(ctx context.Context, r *Request, end int64) (Answer, error) {
	both := r.InOneBudget() // the rows of older and newer hours count together
	older, err := s.olderHours(ctx, both, end)
	if err != nil {
		return Answer{}, err
	}
	if older == nil {
		return s.whole.Groups(ctx, r)
	}
	defer older.Close(ctx) // the groups have copies of its points

	a, err := s.continued(ctx, both, older)
	if errors.Is(err, merge.ErrOlderChanged) {
		older.Refuse()
		r.Trace.Add("again as a whole", 0, map[string]any{"reason": err.Error()})
		return s.whole.Groups(ctx, r)
	}
	total := older.stats
	total.Add(a.Stats)
	a.Stats = total
	return a, err
}

// OlderHours are the older hours of a plan that was split, as their merged groups, and the plan of its
// newer hours.
type OlderHours struct {
	merged   *cachedOlder
	newer    scanplan.Plan // of the hours after them
	stats    dispatch.Stats
	reserved int64 // bytes, if this request has merged them; 0 if they are from the cache
}

// Merged is what the older hours make of the groups. It is shared with other queries.
func (o *OlderHours) Merged() *merge.OlderHours { return o.merged.OlderHours }

// Plan is the plan by which the merged older hours are continued with newer rows.
func (o *OlderHours) Plan() *scanplan.Plan { return o.merged.ContinuedPlan(&o.newer) }

// NewerFrom is the base time, s, of the first newer rows.
func (o *OlderHours) NewerFrom() int64 { return o.newer.From }

// Refuse notes that newer rows have changed points of the older hours that were considered final.
func (o *OlderHours) Refuse() { o.merged.refused.Store(true) }

// Close releases the memory that was reserved in ctx for the merged older hours. The result cache counts its
// own entries.
func (o *OlderHours) Close(ctx context.Context) { memory.Release(ctx, o.reserved) }

// olderHours returns the older hours of an untrimmed request of a query that ends at end, ms,
// with their merged groups from the result cache or made now; nil if the plan is better executed as
// a whole. Close comes after the last use of the merged older hours.
func (s *planSplit) olderHours(ctx context.Context, r *Request, end int64) (*OlderHours, error) {
	began := time.Now()
	older, newer, ok := splitSettled(r.Plan, end, began.UnixMilli())
	if !ok || r.rounded() {
		return nil, nil
	}
	without := func(reason string) (*OlderHours, error) {
		r.Trace.Add("older hours", time.Since(began), map[string]any{"resultCache": "read: " + reason})
		return nil, nil
	}
	switch {
	case s.uncached.count(r.Plan, began) >= maxUncached:
		return without("what was made of them lately could not be kept")
	case s.tooManySeries.count(r.Plan, began) > 0:
		return without("too many series")
	}

	lookup := s.exec.LookupPlan(ctx, &older, dispatch.OlderHoursAnswer, r.Proofs)
	if reason := lookup.Reason(); reason != "" {
		return without(reason)
	}
	if st, ok := lookup.Found().(*cachedOlder); ok {
		if st.refused.Load() {
			return without("newer rows have changed what is made of them")
		}
		stats, err := s.fromCache(ctx, r, st, began)
		return &OlderHours{merged: st, newer: newer, stats: stats}, err
	}

	// The older hours are read before the newer hours, not at the same time: it must be worth it.
	if !lookup.Wanted() || !lookup.Unchanged() {
		return without("no query wanted them before, or they have changed since")
	}
	alone := r.WithScan(&older)
	alone.proving = true // the merged older hours will be cached
	st, stats, err := s.mergeOlder(ctx, alone)
	if err != nil {
		return nil, err
	}
	if stats.CacheComplete() {
		lookup.Store(st)
	}
	s.noteCached(r.Plan, &older, began)
	return &OlderHours{merged: st, newer: newer, stats: stats, reserved: st.Bytes()}, nil
}

// fromCache spends the cost of reading the rows of older hours that are in the result cache.
func (s *planSplit) fromCache(ctx context.Context, r *Request, st *cachedOlder, began time.Time) (
	dispatch.Stats, error) {
	stats := st.stats.FromCache()
	if err := r.spend(ctx, &st.stats); err != nil {
		return dispatch.Stats{}, err
	}
	counts := trace.Counts(stats)
	counts["resultCache"] = "older hours from memory, merged: no row of them has changed"
	r.Trace.Add("result cache", time.Since(began), counts)
	return stats, nil
}

// noteCached notes whether the older hours that a query has merged, since began, are in the cache now. The
// query itself need not have stored them: another one may have been first.
func (s *planSplit) noteCached(p, older *scanplan.Plan, began time.Time) {
	if s.exec.HoldsPlan(older, dispatch.OlderHoursAnswer) {
		s.uncached.remove(p)
		return
	}
	s.uncached.add(p, began, time.Now())
}

// mergeOlder reads and merges all hours of a request whose plan has the older hours only.
func (s *planSplit) mergeOlder(ctx context.Context, r *Request) (*cachedOlder, dispatch.Stats, error) {
	if err := r.Points.set(0); err != nil {
		return nil, dispatch.Stats{}, err
	}
	m := newMerger(ctx, r, r.Plan)
	defer m.Free()

	stats, err := s.scan.into(ctx, r, dispatch.PerSeries, mergerSink(m))
	if err != nil {
		return nil, stats, err
	}

	merged := r.Trace.Begin("merge older hours")
	st, err := m.FinishOlder()
	merged(nil)
	if err != nil {
		return nil, stats, err
	}
	made := &cachedOlder{OlderHours: st, stats: stats}
	made.stats.Trace = nil
	return made, stats, nil
}

// continued reads the newer hours of a request and merges them with the older ones.
func (s *planSplit) continued(ctx context.Context, r *Request, older *OlderHours) (Answer, error) {
	// The points of the merged older hours are counted with those of the answer, see caching.
	if err := r.Points.set(0); err != nil {
		return Answer{}, err
	}
	m := newMerger(ctx, r, older.Plan())
	defer m.Free()
	if err := m.Continue(older.Merged()); err != nil {
		return Answer{}, err
	}

	stats, err := s.scan.into(ctx, r.WithScan(&older.newer), dispatch.PerSeries, mergerSink(m))
	if err != nil {
		return Answer{Stats: stats}, err
	}
	return finish(ctx, r, m, stats)
}

// ExecuteNewer executes a request on its newer hours, and passes the records to the sink. It counts
// the work of the older hours as well.
func (s *Stages) ExecuteNewer(ctx context.Context, r *Request, older *OlderHours,
	sink dispatch.Sink) (dispatch.Stats, error) {
	stats := older.stats
	more, err := s.Execute(ctx, r.WithScan(&older.newer), sink)
	stats.Add(more)
	return stats, err
}
