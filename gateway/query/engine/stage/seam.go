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
// them: the answer as a whole is never the one in the result cache. So the plan is cut at a seam.
// The groups of its older hours are kept as a merge.Stretch, as long as their rows do not change,
// and only the newer hours are read and merged.

// settledAfter is the time after its end when an hour counts as complete, in s. If points come
// later, the stretch is made again.
const settledAfter = 600

// minStretch is the least number of hours that are worth a stretch.
const minStretch = 2

// maxUnkept is how often in a row a stretch is made and not cached before none is made for a while.
// The first time its parts are not cached either, because they were not queried before; with
// several concurrent queries each may cache some of them the second time.
const maxUnkept = 3

// manySeriesFor is how long a plan is known to have more series.
const manySeriesFor = 24 * time.Hour

// seam answers a request for all times of its rows at its seam, or as a whole.
type seam struct {
	exec   *dispatch.Executor
	scan   *scan
	whole  Stage       // a plan as a whole
	unkept failedTries // plans whose stretches were made and could not be cached lately
	many   failedTries // plans with too many series for a stretch

	maxSeries int64 // Config.StretchSeries
}

func newSeam(cfg *Config, scan *scan, whole Stage) *seam {
	s := &seam{
		exec:      cfg.Exec,
		scan:      scan,
		many:      failedTries{lasts: manySeriesFor},
		maxSeries: cmp.Or(cfg.StretchSeries, 50_000),
	}
	s.whole = &counted{seam: s, next: whole}
	return s
}

// counted notes whether a plan that was executed has too many series for a stretch.
type counted struct {
	seam *seam
	next Stage
}

func (s *counted) Groups(ctx context.Context, r *Request) (Answer, error) {
	a, err := s.next.Groups(ctx, r)
	if n := int64(a.Stats.Parts); n > 0 && a.Stats.Spans/n > s.seam.maxSeries && s.seam.exec.SideBySide(r.Plan) {
		now := time.Now()
		s.seam.many.add(r.Plan, now, now)
	}
	return a, err
}

// cachedStretch is a plan's older hours in the result cache: their stretch, and the cost of making
// it. It is shared among queries.
type cachedStretch struct {
	*merge.Stretch
	stats dispatch.Stats
	// refused is set once newer rows have changed points that the stretch considered final. They do
	// so in each query, until the seam has passed them.
	refused atomic.Bool
}

// cutAtSeam cuts an untrimmed plan between two hours. All rows of the first should have been
// written by now and by the end of the query, both in ms: dashboards also query a whole day
// that is not over. ok is false if a stretch is not possible, or not worth it.
func cutAtSeam(p *scanplan.Plan, end, now int64) (older, newer scanplan.Plan, ok bool) {
	at := min(end, now)/1000 - settledAfter
	at -= at % encoding.RowSeconds
	at = min(at, p.To-encoding.RowSeconds)
	if at < p.From+minStretch*encoding.RowSeconds || !merge.CanContinue(p) {
		return older, newer, false
	}
	if older, ok = p.Between(p.From, at); ok {
		newer, ok = p.Between(at, p.To)
	}
	return older, newer, ok
}

// groups answers an untrimmed request of a query that ends at end, in ms. If possible it reads only
// the rows after the seam, else all of them.
func (s *seam) groups(ctx context.Context, r *Request, end int64) (Answer, error) {
	both := r.inOneBudget() // the rows on both sides of the seam count together
	older, err := s.olderHours(ctx, both, end)
	if err != nil {
		return Answer{}, err
	}
	if older == nil {
		return s.whole.Groups(ctx, r)
	}
	defer older.Close(ctx) // the groups have copies of its points

	a, err := s.continued(ctx, both, older)
	if errors.Is(err, merge.ErrSeam) {
		older.Refuse()
		r.Trace.Add("again without the seam", 0, map[string]any{"reason": err.Error()})
		return s.whole.Groups(ctx, r)
	}
	total := older.stats
	total.Add(a.Stats)
	a.Stats = total
	return a, err
}

// OlderHours are the hours of a plan before its seam; only their stretch is needed.
type OlderHours struct {
	stretch  *cachedStretch
	newer    scanplan.Plan // of the hours after them
	stats    dispatch.Stats
	reserved int64 // of a stretch made by this request
}

// Stretch is what the older hours make of the groups. It is shared with other queries.
func (o *OlderHours) Stretch() *merge.Stretch { return o.stretch.Stretch }

// Plan is the plan by which the stretch is continued with newer rows.
func (o *OlderHours) Plan() *scanplan.Plan { return o.stretch.ContinuedPlan(&o.newer) }

// Seam is the base time, s, of the first newer rows.
func (o *OlderHours) Seam() int64 { return o.newer.From }

// Refuse notes that newer rows have changed points that the stretch considered final.
func (o *OlderHours) Refuse() { o.stretch.refused.Store(true) }

// Close releases the memory that was reserved in ctx for the stretch. The result cache counts its
// own entries.
func (o *OlderHours) Close(ctx context.Context) { memory.Release(ctx, o.reserved) }

// olderHours returns the older hours of an untrimmed request of a query that ends at end, ms,
// with their stretch from the result cache or made now; nil if the plan is better executed as
// a whole. Close comes after the last use of the stretch.
func (s *seam) olderHours(ctx context.Context, r *Request, end int64) (*OlderHours, error) {
	began := time.Now()
	older, newer, ok := cutAtSeam(r.Plan, end, began.UnixMilli())
	if !ok || r.rounded() {
		return nil, nil
	}
	without := func(reason string) (*OlderHours, error) {
		r.Trace.Add("older hours", time.Since(began), map[string]any{"resultCache": "read: " + reason})
		return nil, nil
	}
	switch {
	case s.unkept.count(r.Plan, began) >= maxUnkept:
		return without("what was made of them lately could not be kept")
	case s.many.count(r.Plan, began) > 0:
		return without("too many series")
	}

	lookup := s.exec.LookupPlan(ctx, &older, dispatch.StretchAnswer, r.Proofs)
	if reason := lookup.Reason(); reason != "" {
		return without(reason)
	}
	if st, ok := lookup.Found().(*cachedStretch); ok {
		if st.refused.Load() {
			return without("newer rows have changed what is made of them")
		}
		stats, err := s.fromCache(ctx, r, st, began)
		return &OlderHours{stretch: st, newer: newer, stats: stats}, err
	}

	// A stretch is read before the newer hours, not at the same time: it must be worth it.
	if !lookup.Wanted() || !lookup.Unchanged() {
		return without("no query wanted them before, or they have changed since")
	}
	alone := r.withScan(&older)
	alone.proving = true // the stretch will be cached
	st, stats, err := s.makeStretch(ctx, alone)
	if err != nil {
		return nil, err
	}
	if stats.CacheComplete() {
		lookup.Store(st)
	}
	s.noteKept(r.Plan, &older, began)
	return &OlderHours{stretch: st, newer: newer, stats: stats, reserved: st.Bytes()}, nil
}

// fromCache spends the cost of reading the rows of a stretch from the result cache.
func (s *seam) fromCache(ctx context.Context, r *Request, st *cachedStretch, began time.Time) (dispatch.Stats, error) {
	stats := st.stats.FromCache()
	if err := r.spend(ctx, &st.stats); err != nil {
		return dispatch.Stats{}, err
	}
	counts := trace.Counts(stats)
	counts["resultCache"] = "older hours from memory, merged: no row of them has changed"
	r.Trace.Add("result cache", time.Since(began), counts)
	return stats, nil
}

// noteKept notes whether the stretch that a query has made, since it began, is cached. The
// query itself need not have stored it: another one may have been first.
func (s *seam) noteKept(p, older *scanplan.Plan, began time.Time) {
	if s.exec.HoldsPlan(older, dispatch.StretchAnswer) {
		s.unkept.remove(p)
		return
	}
	s.unkept.add(p, began, time.Now())
}

// makeStretch reads the older hours: those of the request, and no others.
func (s *seam) makeStretch(ctx context.Context, r *Request) (*cachedStretch, dispatch.Stats, error) {
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
	st, err := m.FinishStretch()
	merged(nil)
	if err != nil {
		return nil, stats, err
	}
	made := &cachedStretch{Stretch: st, stats: stats}
	made.stats.Trace = nil
	return made, stats, nil
}

// continued reads the newer hours of a request and merges them with the stretch of the
// older ones.
func (s *seam) continued(ctx context.Context, r *Request, older *OlderHours) (Answer, error) {
	// The points of the stretch are counted with those of the answer, see keep.
	if err := r.Points.set(0); err != nil {
		return Answer{}, err
	}
	m := newMerger(ctx, r, older.Plan())
	defer m.Free()
	if err := m.Continue(older.Stretch()); err != nil {
		return Answer{}, err
	}

	stats, err := s.scan.into(ctx, r.withScan(&older.newer), dispatch.PerSeries, mergerSink(m))
	if err != nil {
		return Answer{Stats: stats}, err
	}
	return finish(ctx, r, m, stats)
}

// ExecuteNewer executes a request from the seam on, and passes the records to the sink. It counts
// the work of the older hours as well.
func (s *Stages) ExecuteNewer(ctx context.Context, r *Request, older *OlderHours,
	sink dispatch.Sink) (dispatch.Stats, error) {
	stats := older.stats
	more, err := s.Execute(ctx, r.withScan(&older.newer), sink)
	stats.Add(more)
	return stats, err
}
