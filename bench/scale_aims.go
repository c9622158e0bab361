package bench

import (
	"context"

	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/gateway/query/engine"
	"downpour/gateway/write"
)

// Aims of the work next to the region servers.
const (
	wantShipped = 1    // percent of the bytes that are read
	wantProcess = 1.3  // times the time in process
	wantMemory  = 1.25 // times the memory for the fewest points
)

// middleScale is the size of the data in aims.
const middleScale = "middle"

// ownProcess compares the time with a pushdown server in its own process with the time in
// process, at one place of the axis of points.
func (s *scaling) ownProcess(points float64) {
	figure := func(name, mode string) (report.Figure, bool) {
		return s.r.Figure(figureName("points", spot{points, candidate{name: name, mode: mode}}))
	}
	here, ok := figure("in process", "strict")
	// A mode that the planner does not have was not measured, see measurable.
	for _, mode := range []string{"strict", "partial"} {
		f, measured := figure(pushedName, mode)
		if !ok || !measured {
			continue
		}
		s.r.Aims = append(s.r.Aims, report.Aim{
			Row:     "process",
			Scale:   middleScale,
			What:    "sum:5m-avg, pushdown in its own process, " + mode,
			Against: "in process, strict",
			Want:    wantProcess,
			Got:     f.Over(here),
			Ours:    report.MS(f.Median()),
			Theirs:  report.MS(here.Median()),
		})
	}
}

// shipped compares the bytes that parts return for sum:5m-avg with the bytes that they
// read: the series of rows with a cell for each point, and the partial aggregates of
// compacted rows.
func (s *scaling) shipped(ctx context.Context) error {
	for _, c := range []struct {
		form       write.Form
		mode, rows string
	}{{write.Single, "strict", "uncompacted cells"}, {write.MultiPoint, "partial", "compacted cells"}} {
		aim, err := s.measureShipped(ctx, c.form, c.mode)
		if err != nil {
			return err
		}
		aim.Row, aim.Scale, aim.Against, aim.Want = "shipped", middleScale, c.rows, wantShipped
		aim.Unit = "%"
		aim.What = "bytes from pushdown to gateway, sum:5m-avg, " + c.mode
		s.r.Aims = append(s.r.Aims, aim)
	}
	return nil
}

// asLoaded loads a data set like load, but does not wait until the store has come to rest,
// which makes no difference for bytes and memory.
func (s *scaling) asLoaded(ctx context.Context, d workload.Devops, form write.Form) (*scalePlace, error) {
	// A copy, because the other axes still need Form and Settle. Tables are numbered on.
	own := *s
	own.cfg.Form, own.cfg.Settle = form, nil
	p, err := own.load(ctx, d, 1)
	s.seq = own.seq
	return p, err
}

// measureShipped measures the share of the bytes read that parts return.
func (s *scaling) measureShipped(ctx context.Context, form write.Form, mode string) (aim report.Aim, err error) {
	p, err := s.asLoaded(ctx, s.cfg.Data, form)
	if err != nil {
		return aim, err
	}
	defer p.close()

	q, err := parse(s.cfg.Data.Whole("sum:5m-avg:%s"))
	if err != nil {
		return aim, err
	}

	q.Mode = mode
	pushed := p.pushed(0) // as many parts at once as by default
	var stats engine.Stats
	for range 2 { // the first query finds out the size of parts
		if stats, err = p.ask(ctx, pushed, q, int64(s.cfg.Data.Points()/s.cfg.Data.MetricCount)); err != nil {
			return aim, err
		}
	}

	share := 100 * float64(stats.ShippedBytes) / float64(stats.Bytes)
	aim.Got = report.Single(share)
	aim.Ours = report.Thousands(float64(stats.ShippedBytes)) + " B"
	aim.Theirs = report.Thousands(float64(stats.Bytes)) + " B"
	return aim, nil
}
