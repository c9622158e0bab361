package engine

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator"
	"downpour/pushdown/rollupjob"
)

// Rollups that we make ourselves take the place of raw rows where they are proven to be what
// these give. Both are read per series into one merger, stretch of time by stretch, so that
// rates, interpolation and fill policies see the columns that raw rows alone would have given.

// madeChoice says which rollups a plan reads, and why not others.
type madeChoice struct {
	source *plan.MadeSource
	proof  *rollupjob.Proof
	ranges []rollupjob.Range // ascending, between buckets and raw rows; empty for raw rows alone
	why    string            // why raw rows are read at other times; empty if there are none
}

// String is the choice as explain and the trace print it, empty if no rollups are made.
func (c *madeChoice) String() string {
	if len(c.ranges) == 0 {
		if c.why == "" {
			return ""
		}
		return "raw rows: " + c.why
	}
	var times []string
	for _, r := range c.ranges {
		times = append(times, fmt.Sprintf("from %s to %s", time.Unix(r.From, 0).UTC().Format(time.DateTime), time.Unix(r.To, 0).UTC().Format(time.DateTime)))
	}
	text := fmt.Sprintf("table %s %s UTC", c.source.Interval.Table, strings.Join(times, ", "))
	if c.why != "" {
		text += "; raw rows at other times: " + c.why
	}
	return text
}

// chooseMade finds out which rollups can take the place of a plan's raw rows now.
func (e *Engine) chooseMade(ctx context.Context, q *query.Query, p subPlan) (c madeChoice) {
	c.why = p.NotMade
	if e.cfg.Made == nil || len(p.Made) == 0 {
		return c
	}
	switch {
	case q.AllowPartial:
		c.why = "the answer may be incomplete"
		return c
	case q.Delete:
		c.why = "the raw rows are deleted"
		return c
	case p.Plan.Fix&scanplan.FixDamaged != 0:
		c.why = "the answer may lack damaged rows"
		return c
	}

	for i := range p.Made {
		m := &p.Made[i]
		whole := asked(p.Plan, m.Align)
		if whole.From >= whole.To {
			c.why = "no whole bucket lies between the raw rows that are read"
			continue
		}
		proof, err := e.cfg.Made.Prove(ctx, m.Interval, p.Plan.Metric, whole)
		if err != nil {
			c.why = err.Error()
			continue
		}
		c.why = proof.Why
		for _, r := range proof.Ranges {
			if r = aligned(r, m.Align); r.From < r.To {
				c.ranges = append(c.ranges, r)
			}
		}
		if len(c.ranges) > 0 {
			c.source, c.proof = m, proof
			return c
		}
	}
	return c
}

// asked returns the time of a plan's rows of which rollups may be read: that of the buckets that
// its answer has.
func asked(p *scanplan.Plan, align int64) rollupjob.Range {
	first, last := p.Start/1000/align*align, p.End/1000/align*align+align
	return aligned(rollupjob.Range{From: max(p.From, first), To: min(p.To, last)}, align)
}

// aligned returns the largest range inside r whose ends are multiples of n.
func aligned(r rollupjob.Range, n int64) rollupjob.Range {
	return rollupjob.Range{From: (r.From + n - 1) / n * n, To: r.To / n * n}
}

// fromRollups answers a plan of raw rows from rollups, as far as they are proven. ok is false
// where the rows have to be read.
func (e *Engine) fromRollups(ctx context.Context, q *query.Query, p subPlan, node *Node) (groups []merge.Group, stats dispatch.Stats, ok bool, err error) {
	began := time.Now()
	c := e.chooseMade(ctx, q, p)
	if text := c.String(); text != "" {
		node.add("rollups", time.Since(began), map[string]any{"rollups": text})
	}
	if len(c.ranges) == 0 || ctx.Err() != nil {
		return nil, stats, false, nil
	}

	if err := planPointsOf(ctx).set(0); err != nil {
		return nil, stats, false, err
	}
	m := e.newMerger(ctx, p, p.Plan)
	defer m.Free()
	if ok, stats, err = e.scanWithRollups(ctx, q, p, &c, m, node); err != nil || !ok {
		return nil, stats, false, err
	}
	// A job may have written to the rollups while they were read.
	if err := c.proof.Holds(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, stats, false, mergeEnded(ctx)
		}
		node.add("again from raw rows", 0, map[string]any{"reason": err.Error()})
		return nil, dispatch.Stats{}, false, nil
	}
	groups, err = finish(ctx, m, node)
	return groups, stats, err == nil, err
}

// scanWithRollups gives a merger what rollups have, and what raw rows have at other times. ok
// is false if the plan cannot be cut in time.
func (e *Engine) scanWithRollups(ctx context.Context, q *query.Query, p subPlan, c *madeChoice, m *merge.Merger, node *Node) (ok bool, total dispatch.Stats, err error) {
	// Both count together.
	if e.cfg.Budget != nil {
		ctx = operator.WithBudget(ctx, e.cfg.Budget(ctx, q, p.sub))
	}
	at := p.Plan.From
	for i := 0; i <= len(c.ranges); i++ {
		r := rollupjob.Range{From: p.Plan.To, To: p.Plan.To} // behind the last
		if i < len(c.ranges) {
			r = c.ranges[i]
		}
		if at < r.From {
			raw, ok := p.Plan.Between(at, r.From)
			if !ok {
				return false, total, nil
			}
			stats, err := e.scanInto(ctx, q, p.with(&raw), dispatch.PerSeries, m, node)
			total.Add(stats)
			if err != nil {
				return false, total, err
			}
		}
		if r.From < r.To {
			stats, err := e.scanRollups(ctx, p, c, r, m, node)
			total.Add(stats)
			if err != nil {
				return false, total, err
			}
		}
		at = r.To
	}
	return true, total, nil
}

// scanRollups gives a merger the rollups of a time.
func (e *Engine) scanRollups(ctx context.Context, p subPlan, c *madeChoice, r rollupjob.Range, m *merge.Merger, node *Node) (dispatch.Stats, error) {
	rolled := c.source.PlanBetween(p.Plan, r.From, r.To)
	ran := node.begin("run " + rolled.Table)
	opts := dispatch.Options{Aggregation: dispatch.PerSeries, Trace: node != nil}
	stats, err := e.cfg.Exec.Run(ctx, rolled, opts, func(part scanplan.KeyRange, records []batch.Record) error {
		// Parts are put in order by their keys. A row of rollups may begin long before r, among
		// the raw rows that are read there.
		if first := rolled.HourKey(part, r.From); bytes.Compare(part.Start, first) < 0 {
			part.Start = first
		}
		for _, record := range records {
			if err := m.AddBetween(part, record, r.From*1000, r.To*1000); err != nil {
				return err
			}
		}
		return nil
	})
	ran(attributes(stats)).addAttempts(stats.Trace)
	return stats, err
}
