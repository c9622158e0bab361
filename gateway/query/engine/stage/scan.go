package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/trace"
	"downpour/pushdown/process/memory"
)

// scan executes plans, and merges what their parts return.
type scan struct{ exec *dispatch.Executor }

// groups executes the plan of a request once and makes its groups.
func (s *scan) groups(ctx context.Context, r *Request, how dispatch.Aggregation) (Answer, error) {
	// The plan may be executed a second time: the points of the first were thrown away.
	if err := r.Points.set(0); err != nil {
		return Answer{}, err
	}
	m, stats, err := s.merged(ctx, r, how)
	defer m.Free()
	if err != nil {
		return Answer{Stats: stats}, err
	}
	return finish(ctx, r, m, stats)
}

// merged executes the plan of a request and returns a merger with what its parts returned. The
// merger holds memory until Free, also after an error.
func (s *scan) merged(ctx context.Context, r *Request,
	how dispatch.Aggregation) (*merge.Merger, dispatch.Stats, error) {
	m := newMerger(ctx, r, r.Plan)
	// Only mode=partial accepts other last bits; Auto does not.
	if how == dispatch.PartialAggregation {
		m.AllowRounding()
	}
	stats, err := s.into(ctx, r, how, mergerSink(m))
	return m, stats, err
}

// mergerSink gives a merger what parts return.
func mergerSink(m *merge.Merger) dispatch.Sink {
	return func(part scanplan.KeyRange, records []batch.Record) error {
		for _, record := range records {
			if err := m.Add(part, record); err != nil {
				return err
			}
		}
		return nil
	}
}

// into executes the plan of a request once and gives the sink what its parts return.
func (s *scan) into(ctx context.Context, r *Request, how dispatch.Aggregation,
	sink dispatch.Sink) (dispatch.Stats, error) {
	// Rows that were read in time must be merged and named, too: only reading ends earlier, and the
	// sink keeps the bounds of the whole query.
	if r.Query.AllowPartial {
		inner, cancel := reserveTimeForNames(ctx)
		defer cancel()
		ctx = inner
	}
	return s.plan(ctx, r, r.Plan, "run", how, sink)
}

// plan executes a plan of a request as a step of its trace.
func (s *scan) plan(ctx context.Context, r *Request, p *scanplan.Plan, step string, how dispatch.Aggregation,
	sink dispatch.Sink) (dispatch.Stats, error) {
	ran := r.Trace.Begin(step)
	stats, err := s.exec.Run(ctx, p,
		dispatch.Options{
			Aggregation:  how,
			Unnamed:      r.unnamed(),
			Budget:       r.currentBudget(),
			AllowMissing: r.Query.AllowPartial,
			Proving:      r.proving,
			Uncached:     r.Uncached,
			Trace:        r.Trace != nil,
		}, sink)
	ran(trace.Counts(stats)).AddAttempts(stats.Trace)
	return stats, err
}

// newMerger returns a merger for a plan of a request, in the bounds of the query.
func newMerger(ctx context.Context, r *Request, p *scanplan.Plan) *merge.Merger {
	m := merge.New(p, r.Keep)
	if r.unnamed() {
		m.OmitTSUIDs()
	}
	m.SetBounds(Bounds(ctx, r.Points))
	return m
}

// namedBytes is about the size of a group without its points, with its names.
const namedBytes = 900

// finish makes the groups of what a merger got, and reserves the memory of their names.
func finish(ctx context.Context, r *Request, m *merge.Merger, stats dispatch.Stats) (Answer, error) {
	merged := r.Trace.Begin("merge")
	groups, err := m.Finish()
	merged(map[string]any{"groups": len(groups)})
	if err != nil {
		return Answer{Stats: stats}, err
	}
	if err := memory.Reserve(ctx, int64(len(groups))*namedBytes); err != nil {
		memory.Release(ctx, int64(pointsIn(groups))*merge.PointBytes) // they are not returned
		return Answer{Stats: stats}, err
	}
	return Answer{Groups: groups, Stats: stats, Plan: r.Compiled}, nil
}

// Bounds are those of a query, for a merger: the memory that its account may hold, the end of
// ctx, and the points that its answer may have.
func Bounds(ctx context.Context, points *Points) merge.Bounds {
	a := memory.Of(ctx)
	return merge.Bounds{
		Reserve: func(n int64) error { return a.Reserve(ctx, n) },
		Release: a.Release,
		Check:   func() error { return mergeEnded(ctx) },
		Points:  points.add,
	}
}

// mergeEnded returns why ctx has ended, nil while it has not. A deadline is reported
// as package dispatch reports it.
func mergeEnded(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w while its groups were made", dispatch.ErrDeadline)
	}
	return context.Cause(ctx)
}

// reserveTimeForNames ends the execution of a query that may be incomplete when a
// tenth of its time is left, in which its groups are merged and named.
func reserveTimeForNames(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/10))
}
