package stage

import (
	"context"
	"errors"
	"time"

	"downpour/encoding/scanplan"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
)

// aggregation makes a plan's parts return partial aggregates or series, whichever is faster. It
// scans a second time, per series, if partial aggregates cannot give the answer or take more
// memory than a part may have.
type aggregation struct {
	exec          *dispatch.Executor
	scan          *scan
	partialFailed failedTries // plans that partial aggregation did not answer lately
	small         failedTries // plans whose groups had hardly more than one series lately
}

func (s *aggregation) Groups(ctx context.Context, r *Request) (Answer, error) {
	how := s.choose(r)
	a, err := s.scan.groups(ctx, r, how)
	if how != dispatch.PerSeries && s.needsSeries(r, a.Stats, err) {
		now := time.Now()
		s.partialFailed.add(r.Plan, now, now)
		r.Trace.Add("again with per-series aggregation", 0, map[string]any{"reason": err.Error()})
		a, err = s.scan.groups(ctx, r, dispatch.PerSeries)
	}
	if err == nil && how != dispatch.PartialAggregation {
		s.noteSmallGroups(r.Plan, &a)
	}
	return a, err
}

// choose returns how a request's parts may answer.
func (s *aggregation) choose(r *Request) dispatch.Aggregation {
	switch now := time.Now(); {
	case r.PostFilter != nil:
		return dispatch.PerSeries // names are checked series by series
	case r.Query.AllowPartial:
		return dispatch.PerSeries // there may be no time to execute it again
	case r.Query.Mode != "":
		return dispatch.Aggregation(r.Query.Mode)
	case s.partialFailed.count(r.Plan, now) > 0: // it would be executed twice
		return dispatch.PerSeries
	case s.small.count(r.Plan, now) > 0:
		return dispatch.PerSeries
	}
	return dispatch.Auto
}

// needsSeries reports whether a plan failed by its partial aggregates. For histograms, sums of
// groups take the least memory.
func (s *aggregation) needsSeries(r *Request, stats dispatch.Stats, err error) bool {
	return r.Plan.Histograms == nil &&
		(errors.Is(err, merge.ErrOrder) || partialsTooLarge(err, stats) || s.sideBySideTooLarge(r.Plan, err))
}

// partialsTooLarge reports whether partial aggregates took more memory than they may.
func partialsTooLarge(err error, stats dispatch.Stats) bool {
	var limit *operator.LimitError
	// Without a partial part it was the columns of series that took the memory, and would again.
	return errors.As(err, &limit) &&
		(limit.What == operator.States || limit.What == operator.Memory && stats.Partial > 0)
}

// sideBySideTooLarge reports whether a plan whose hours are read side by side needs more
// memory than one request may have. Each hour has its own blocks and each group has all
// buckets in memory: with a small budget, columns of series may still fit.
func (s *aggregation) sideBySideTooLarge(p *scanplan.Plan, err error) bool {
	var large *memory.LimitError
	return errors.As(err, &large) && s.exec.SideBySide(p)
}

// maxSmallGroups is how many series a plan may have that is executed per series because its
// groups are small, in this process: their columns are in memory together.
const maxSmallGroups = 20_000

// noteSmallGroups notes a plan whose groups have hardly more than one series. A partial
// aggregate is larger than the value of a series, and takes longer to make and to
// merge, so the next similar plan is executed per series. That one notes it again, as
// long as it holds.
func (s *aggregation) noteSmallGroups(p *scanplan.Plan, a *Answer) {
	if p.Histograms != nil || p.Downsample == nil || len(p.GroupBy) == 0 {
		return
	}
	series := 0
	for i := range a.Groups {
		series += len(a.Groups[i].Spans)
	}
	if series >= 2*len(a.Groups) || a.Stats.Remote == 0 && series > maxSmallGroups {
		return
	}
	if now := time.Now(); a.Stats.Partial > 0 || s.small.count(p, now) > 0 {
		s.small.add(p, now, now)
	}
}
