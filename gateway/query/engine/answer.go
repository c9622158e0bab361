package engine

import (
	"context"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
)

// Answer is a query's answer whose points are still to be made: all rows are
// read and all groups known. A writer asks for the points group by group and
// sends each before the next is merged. It is for one goroutine.
type Answer struct {
	// Results are those of Run in the same order, without annotations; their
	// points are there after Fill.
	Results []Result
	// Stats counts the reading, and the points of the groups filled.
	Stats Stats

	fill []func(context.Context) (encoding.Points, error) // by result; nil where the points are made
	free []func()                                         // give back what the merges hold
	log  *slog.Logger
}

// Open reads what all sub-queries need and describes their groups. Of more
// sub-queries than run at once the groups are merged before Open returns, for
// else all their rows would be held at a time. Errors are those of Run.
func (e *Engine) Open(ctx context.Context, q *query.Query) (*Answer, error) {
	plans, err := e.plans(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(plans) > parallel {
		results, stats, err := e.Run(ctx, q)
		return &Answer{Results: results, Stats: stats}, err
	}
	opened := make([]opened, len(plans))
	work, ctx := errgroup.WithContext(ctx)
	for i, p := range plans {
		work.Go(func() (err error) {
			defer recovered(e.cfg.Log, &err)
			opened[i], err = e.open(ctx, q, p)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	return join(e.cfg.Log, opened), nil
}

// opened is one sub-query of an answer.
type opened struct {
	results []Result
	merger  *merge.Merger
	groups  *merge.Groups
	points  *planPoints
	stats   dispatch.Stats
}

// fill makes the points of group i within the bounds of ctx.
func (o *opened) fill(ctx context.Context, i int) (encoding.Points, error) {
	o.merger.Within(bounds(context.WithValue(ctx, planPointsKey{}, o.points)))
	return o.groups.Points(i)
}

func (e *Engine) open(ctx context.Context, q *query.Query, p planned) (o opened, err error) {
	if p.nothing() {
		return o, nil
	}
	if e.cfg.Exec.AggregatesPartially(ctx, p.Plan, e.merging(q, p)) { // few points, and maybe a second run
		o.results, o.stats, err = e.runPlan(ctx, q, p, nil)
		return o, err
	}
	ctx, o.points = withPlanPoints(ctx)
	if kept, ok := e.lookupCached(ctx, q, p).Found().(*cachedGroups); ok {
		var groups []merge.Group
		if groups, o.stats, err = e.fromCache(ctx, q, p, kept, nil); err == nil {
			o.results, err = e.name(ctx, q, p, groups)
		}
		return o, err
	}
	o.merger, o.stats, err = e.scan(ctx, q, p, dispatch.PerSeries, nil)
	if err == nil {
		o.groups, err = o.merger.Groups()
	}
	if err == nil {
		o.results, err = e.name(ctx, q, p, o.groups.Described)
	}
	if err != nil {
		o.merger.Free()
	}
	return o, err
}

func join(log *slog.Logger, all []opened) *Answer {
	a := &Answer{log: log}
	for i := range all {
		o := &all[i]
		a.Results = append(a.Results, o.results...)
		a.Stats.Stats.Add(o.stats)
		for i := range o.results {
			if o.groups == nil {
				a.fill = append(a.fill, nil)
				a.Stats.PointsOut += o.results[i].Points.Len()
				continue
			}
			a.fill = append(a.fill, func(ctx context.Context) (encoding.Points, error) { return o.fill(ctx, i) })
		}
		if o.merger != nil {
			a.free = append(a.free, o.merger.Free)
		}
	}
	a.Stats.Groups = len(a.Results)
	return a
}

// Fill makes the points of result i unless they are there. ctx bounds this step
// alone, and need not be that of Open.
func (a *Answer) Fill(ctx context.Context, i int) (err error) {
	if a.fill == nil || a.fill[i] == nil {
		return nil
	}
	defer recovered(a.log, &err)
	r := &a.Results[i]
	if r.Points, err = a.fill[i](ctx); err == nil {
		a.Stats.PointsOut += r.Points.Len()
		a.fill[i] = nil
	}
	return err
}

// Free gives back the memory of the merges; no more points are made then.
func (a *Answer) Free() {
	for _, free := range a.free {
		free()
	}
	a.free = nil
}

// Take hands over the points of result i, for a writer that sends a group and
// forgets it: it releases merge.PointBytes for each of them.
func (a *Answer) Take(i int) encoding.Points {
	p := a.Results[i].Points
	a.Results[i].Points = encoding.Points{}
	return p
}
