package engine

import (
	"context"
	"errors"
	"log/slog"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine/stage"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
)

// Answer is a query's answer whose groups are known, and whose points are not yet made. Its reader gets the points
// group by group and can send each group before the next one is merged. All rows are read, except those of
// sub-queries that are read in slices, see sliced. It is for one goroutine.
type Answer struct {
	// Results are those of Run in the same order, without annotations. Each has its
	// points after Fill.
	Results []Result
	// Stats counts the work of reading, and the points of the groups filled so far.
	Stats Stats

	fill []func(context.Context) (encoding.Points, error) // by result; nil where the points are made
	free []func()                                         // release the mergers
	log  *slog.Logger

	readsOn bool
}

// Open reads the rows of all sub-queries, or only their keys, and describes their groups. If there are more
// sub-queries than are executed concurrently, it also makes the points of all groups,
// because otherwise the rows of all sub-queries would be in memory together. It returns
// the errors of Run.
func (e *Engine) Open(ctx context.Context, q *query.Query, opts Options) (*Answer, error) {
	plans, err := e.compileQuery(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(plans) > subQueriesAtOnce {
		results, stats, err := e.Run(ctx, q, opts)
		return &Answer{Results: results, Stats: stats}, err
	}

	opts.Plans.add(plans)

	opened := make([]openSubQuery, len(plans))
	points := stage.NewAnswerPoints(opts.Points)
	err = e.forEach(ctx, len(plans), func(ctx context.Context, i int) (err error) {
		r := e.request(ctx, q, plans[i])
		r.Points, r.Proofs = points.Plan(), opts.Proofs
		opened[i], err = e.openSubQuery(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return newAnswer(e.cfg.Log, opened), nil
}

// openSubQuery is one sub-query of an Answer.
type openSubQuery struct {
	results []Result
	source  pointSource // nil if the results have their points
	stats   dispatch.Stats
}

// pointSource makes the points of groups that are known. It is for one goroutine.
type pointSource interface {
	// points makes the points of group i within the bounds of ctx, and adds to stats what it reads for them. The
	// groups come in ascending order.
	points(ctx context.Context, i int, stats *dispatch.Stats) (encoding.Points, error)
	// free releases all memory but that of points, which are the caller's.
	free()
}

// wholeRead is a sub-query, or a slice of one, whose rows are read.
type wholeRead struct {
	merger  *merge.Merger
	groups  *merge.Groups
	made    *stage.Points
	bounded context.Context // whose bounds the merger has; nil for that of the scan
}

func (w *wholeRead) points(ctx context.Context, i int, _ *dispatch.Stats) (encoding.Points, error) {
	// A caller fills many groups with one context, and bounds cost more than a small
	// group does.
	if w.bounded != ctx {
		w.merger.SetBounds(stage.Bounds(ctx, w.made))
		w.bounded = ctx
	}
	return w.groups.Points(i)
}

func (w *wholeRead) free() { w.merger.Free() }

// readWhole reads the rows of a request per series.
func (e *Engine) readWhole(ctx context.Context, r *stage.Request) (*wholeRead, dispatch.Stats, error) {
	merger, stats, err := e.stages.Scan(ctx, r)
	w := &wholeRead{merger: merger, made: r.Points}
	if err == nil {
		w.groups, err = merger.Groups()
	}
	if err != nil {
		w.free()
	}
	return w, stats, err
}

// openSubQuery reads what a sub-query needs and describes its groups.
func (e *Engine) openSubQuery(ctx context.Context, r *stage.Request) (o openSubQuery, err error) {
	if readsNothing(r.Compiled) {
		return o, nil
	}
	// Partial aggregates and rollups make few points, and the plan may have to be executed
	// again, or another one; the lines of histograms are made of one sum: making the
	// points later would gain nothing.
	if r.Sub.Histogram() || r.Plan.Rollup != nil || len(r.ComputedRollups) > 0 || r.Plan.Fix&scanplan.FixDamaged != 0 ||
		e.stages.AggregatesPartially(ctx, r) {
		o.results, o.stats, err = e.answerSubQuery(ctx, r)
		return o, err
	}

	// An answer is only looked up: it cannot be kept before its points are made.
	p := subPlan{r.Sub, r.Compiled}
	if a, ok, err := e.stages.Found(ctx, r); ok {
		o.stats = a.Stats
		if err == nil {
			o.results, err = e.nameGroups(ctx, r.Query, p, a.Groups)
		}
		return o, err
	}

	large, err := e.isLarge(ctx, r.Plan)
	if err != nil {
		return o, err
	}
	sliceable := mayBeSliced(r)
	if large && sliceable {
		if o, sliceable, err = e.openSliced(ctx, r); sliceable || err != nil {
			return o, err
		}
	}
	whole, stats, err := e.readWhole(ctx, r)
	if sliceable && tooLargeAtOnce(err) {
		if o, ok, err := e.openSliced(ctx, r); ok || err != nil {
			return o, err
		}
	}
	if err == nil {
		if o.results, err = e.nameGroups(ctx, r.Query, p, whole.groups.Described); err != nil {
			whole.free()
		}
	}
	var offHour *operator.OffHourError
	if errors.As(err, &offHour) {
		o.results, o.stats, err = e.answerSubQuery(ctx, r)
		return o, err
	}
	o.source, o.stats = whole, stats
	return o, err
}

// newAnswer joins the results of the sub-queries.
func newAnswer(log *slog.Logger, all []openSubQuery) *Answer {
	a := &Answer{log: log}
	for i := range all {
		o := &all[i]
		a.Results = append(a.Results, o.results...)
		a.Stats.Stats.Add(o.stats)

		for i := range o.results {
			if o.source == nil { // the points are made
				a.fill = append(a.fill, nil)
				a.Stats.PointsOut += o.results[i].Points.Len()
				continue
			}
			a.fill = append(a.fill, func(ctx context.Context) (encoding.Points, error) {
				return o.source.points(ctx, i, &a.Stats.Stats)
			})
		}

		if o.source != nil {
			a.free = append(a.free, o.source.free)
			_, slices := o.source.(*sliced)
			a.readsOn = a.readsOn || slices
		}
	}
	a.Stats.Groups = len(a.Results)
	return a
}

// Fill makes the points of result i if they are not yet made. ctx bounds only this step and need
// not be that of Open.
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

// ReadsOn reports whether Fill may read rows.
func (a *Answer) ReadsOn() bool { return a.readsOn }

// Free releases the memory of the mergers. After that no points can be made.
func (a *Answer) Free() {
	for _, free := range a.free {
		free()
	}
	a.free = nil
}

// DetachPoints returns the points of result i and removes them from the answer, for a
// writer that sends a group and forgets it. The caller releases merge.PointBytes for
// each of them.
func (a *Answer) DetachPoints(i int) encoding.Points {
	p := a.Results[i].Points
	a.Results[i].Points = encoding.Points{}
	return p
}
