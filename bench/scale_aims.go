package bench

import (
	"context"
	"fmt"

	"downpour/bench/report"
	"downpour/gateway/put"
)

// Aims of the work beside the region servers.
const (
	wantShipped = 0.01 // of the bytes that are read
	wantProcess = 1.3  // times the time in process
	wantMemory  = 1.25 // times the memory for the fewest points
)

// around is the size of the data in aims.
const around = "middle"

// ownProcess holds the time with a pushdown server in its own process against
// that in process, at one place of the axis of points.
func (s *scaling) ownProcess(points float64) {
	figure := func(name, mode string) (report.Figure, bool) {
		return s.r.Figure(figureName("points", spot{points, engine{name: name, mode: mode}}))
	}
	here, ok := figure("in process", "strict")
	for _, mode := range []string{"strict", "partial"} {
		f, measured := figure(pushedName, mode)
		if !ok || !measured {
			continue
		}
		s.r.Aims = append(s.r.Aims, report.Aim{Row: "process", Scale: around, What: "sum:5m-avg, pushdown in its own process, " + mode, Against: "in process, strict",
			Want: wantProcess, Got: f.Over(here), Ours: ms(f), Theirs: ms(here)})
	}
}

func ms(f report.Figure) string { return fmt.Sprintf("%.1f ms", f.Median().Seconds()*1000) }

// shipped holds what parts return for sum:5m-avg against what they read: series
// by series of rows with a cell a point, states of groups of compacted rows.
func (s *scaling) shipped(ctx context.Context) error {
	for _, c := range []struct {
		form       put.Form
		mode, rows string
	}{{put.Cells, "strict", "uncompacted cells"}, {put.Multi, "partial", "compacted cells"}} {
		aim, err := s.ships(ctx, c.form, c.mode)
		if err != nil {
			return err
		}
		aim.Row, aim.Scale, aim.Against, aim.Want = "shipped", around, c.rows, wantShipped
		aim.What = "bytes from pushdown to gateway, sum:5m-avg, " + c.mode
		s.r.Aims = append(s.r.Aims, aim)
	}
	return nil
}

func (s *scaling) ships(ctx context.Context, form put.Form, mode string) (aim report.Aim, err error) {
	own := *s
	own.cfg.Form = form
	p, err := own.use(ctx, s.cfg.Data, 1)
	s.seq = own.seq
	if err != nil {
		return aim, err
	}
	defer p.close()
	q, err := parse(s.cfg.Data.Whole("sum:5m-avg:%s"))
	if err != nil {
		return aim, err
	}
	q.Mode = mode
	stats, err := p.ask(ctx, p.pushed(0), q, int64(s.cfg.Data.Points()/s.cfg.Data.MetricCount))
	if err != nil {
		return aim, err
	}
	share := float64(stats.ShippedBytes) / float64(stats.Bytes)
	aim.Got = report.Ratio{Median: share, Low: share, High: share}
	aim.Ours, aim.Theirs = report.Thousands(float64(stats.ShippedBytes))+" B", report.Thousands(float64(stats.Bytes))+" B"
	return aim, nil
}
