package stage

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/plan"
	"downpour/pushdown/rollupjob"
)

// Computed rollups, those that Downpour makes of raw rows itself, replace raw rows where they are proven
// to equal their results.
// Both are read per series into one merger, one range of time after another, so that rates,
// interpolation and fill policies see the columns that raw rows alone would have given.

// rollupChoice is the rollups that a plan reads, and why not others.
type rollupChoice struct {
	source *plan.ComputedRollup
	proof  *rollupjob.Proof
	ranges []rollupjob.Range // ascending, between buckets and raw rows; empty for raw rows alone
	why    string            // why raw rows are read at other times; empty if there are none
}

// String is the choice as explain and the trace print it, empty if no rollups are made.
func (c *rollupChoice) String() string {
	if len(c.ranges) == 0 {
		if c.why == "" {
			return ""
		}
		return "raw rows: " + c.why
	}
	var times []string
	for _, r := range c.ranges {
		times = append(times, fmt.Sprintf("from %s to %s", time.Unix(r.From, 0).UTC().Format(time.DateTime),
			time.Unix(r.To, 0).UTC().Format(time.DateTime)))
	}
	text := fmt.Sprintf("table %s %s UTC", c.source.Interval.Table, strings.Join(times, ", "))
	if c.why != "" {
		text += "; raw rows at other times: " + c.why
	}
	return text
}

// rollups answers a plan of raw rows from computed rollups, as far as they are proven.
type rollups struct {
	prover *rollupjob.Prover // nil if no rollups are made
	scan   *scan
	next   Stage
}

func (s *rollups) Groups(ctx context.Context, r *Request) (Answer, error) {
	began := time.Now()
	c := s.choose(ctx, r)
	if text := c.String(); text != "" {
		r.Trace.Add("rollups", time.Since(began), map[string]any{"rollups": text})
	}
	if len(c.ranges) == 0 || ctx.Err() != nil {
		return s.next.Groups(ctx, r)
	}
	if a, ok, err := s.read(ctx, r.InOneBudget(), &c); ok || err != nil {
		return a, err
	}
	return s.next.Groups(ctx, r)
}

// choose finds the rollups that can now replace a plan's raw rows.
func (s *rollups) choose(ctx context.Context, p *Request) (c rollupChoice) {
	c.why = p.WhyNoComputed
	if s.prover == nil || len(p.ComputedRollups) == 0 {
		return c
	}
	switch q := p.Query; {
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

	for i := range p.ComputedRollups {
		m := &p.ComputedRollups[i]
		whole := wanted(p.Plan, m.Align)
		if whole.From >= whole.To {
			c.why = "the query's time holds no whole bucket"
			continue
		}
		proof, err := s.prover.Prove(ctx, m.Interval, p.Plan.Metric, whole)
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

// wanted returns the time of a plan's rows for which rollups may be read: that of the buckets of
// its answer.
func wanted(p *scanplan.Plan, align int64) rollupjob.Range {
	first, last := p.Start/1000/align*align, p.End/1000/align*align+align
	return aligned(rollupjob.Range{From: max(p.From, first), To: min(p.To, last)}, align)
}

// aligned returns the largest range inside r whose ends are multiples of n.
func aligned(r rollupjob.Range, n int64) rollupjob.Range {
	return rollupjob.Range{From: (r.From + n - 1) / n * n, To: r.To / n * n}
}

// read answers a request with rollups, and raw rows at other times. ok is false where these have to
// be read at all times.
func (s *rollups) read(ctx context.Context, r *Request, c *rollupChoice) (a Answer, ok bool, err error) {
	if err := r.Points.set(0); err != nil {
		return a, false, err
	}
	m := newMerger(ctx, r, r.Plan)
	defer m.Free()
	ok, a.Stats, err = s.scanBoth(ctx, r, c, m)
	if err != nil || !ok {
		return a, false, err
	}
	// A job may have written to the rollups while they were read.
	if err := c.proof.Holds(ctx); err != nil {
		if ctx.Err() != nil {
			return a, false, mergeEnded(ctx)
		}
		r.Trace.Add("again from raw rows", 0, map[string]any{"reason": err.Error()})
		return Answer{}, false, nil
	}
	a, err = finish(ctx, r, m, a.Stats)
	return a, true, err
}

// scanBoth gives a merger what rollups have, and what raw rows have at other times. ok
// is false if the plan cannot be cut between two hours, see scanplan.Plan.Between.
func (s *rollups) scanBoth(ctx context.Context, r *Request, c *rollupChoice,
	m *merge.Merger) (ok bool, total dispatch.Stats, err error) {
	at := r.Plan.From
	for i := 0; i <= len(c.ranges); i++ {
		rolled := rollupjob.Range{From: r.Plan.To, To: r.Plan.To} // after the last
		if i < len(c.ranges) {
			rolled = c.ranges[i]
		}
		if at < rolled.From {
			raw, ok := r.Plan.Between(at, rolled.From)
			if !ok {
				return false, total, nil
			}
			stats, err := s.scan.into(ctx, r.WithScan(&raw), dispatch.PerSeries, mergerSink(m))
			total.Add(stats)
			if err != nil {
				return false, total, err
			}
		}
		if rolled.From < rolled.To {
			stats, err := s.scanRollups(ctx, r, c, rolled, m)
			total.Add(stats)
			if err != nil {
				return false, total, err
			}
		}
		at = rolled.To
	}
	return true, total, nil
}

// scanRollups gives a merger the rollups of a time.
func (s *rollups) scanRollups(ctx context.Context, r *Request, c *rollupChoice, at rollupjob.Range,
	m *merge.Merger) (dispatch.Stats, error) {
	rolled := c.source.PlanBetween(r.Plan, at.From, at.To)
	return s.scan.plan(ctx, r, rolled, "run "+rolled.Table, dispatch.PerSeries,
		func(part scanplan.KeyRange, records []batch.Record) error {
			// Parts are put in order by their keys. A row of rollups may begin long before its time, among
			// the raw rows that are read there.
			if first := rolled.HourKey(part, at.From); bytes.Compare(part.Start, first) < 0 {
				part.Start = first
			}
			for _, record := range records {
				if err := m.AddBetween(part, record, at.From*1000, at.To*1000); err != nil {
					return err
				}
			}
			return nil
		})
}
