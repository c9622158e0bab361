package bench

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/integration/e2e"
)

// MeasuredGateway is a running gateway whose memory can be measured.
type MeasuredGateway struct {
	*peer.Server
	// Peak returns the peak of the memory of the process in bytes.
	Peak func() (int64, error)
}

// OnHBase has pushdown servers and gateways started over the tables of an HBase, each with some settings. beside is the
// address of the region server next to them, if it is known.
func (c *ScaleConfig) OnHBase(quorum, beside string, env map[string]string) {
	over := func(prefix string) peer.Options {
		return peer.Options{
			Quorum: quorum,
			Tables: e2e.TablesWithPrefix(prefix),
			Beside: beside,
			Env:    map[string]string{},
		}
	}
	c.Pushdown = func(ctx context.Context, prefix string, schema encoding.Schema) (string, func(), error) {
		o := over(prefix)
		maps.Copy(o.Env, env)
		if schema.SaltWidth > 0 {
			o.Env["DOWNPOUR_SALT_WIDTH"] = fmt.Sprint(schema.SaltWidth)
			o.Env["DOWNPOUR_SALT_BUCKETS"] = fmt.Sprint(schema.SaltBuckets)
		}
		p, err := peer.StartPushdown(ctx, o)
		if err != nil {
			return "", nil, err
		}
		return p.Addr, func() { p.Close() }, nil
	}
	c.Gateway = func(ctx context.Context, prefix, pushdown string) (*MeasuredGateway, error) {
		o := over(prefix)
		maps.Copy(o.Env, env)
		o.Env["DOWNPOUR_PUSHDOWN"] = pushdown
		g, err := peer.StartDownpour(ctx, o)
		if err != nil {
			return nil, err
		}
		return &MeasuredGateway{g, func() (int64, error) {
			m, err := g.Process.Memory()
			return m.Peak, err
		}}, nil
	}
}

// memoryAsked is how often a gateway is asked, because a later answer may use new memory
// or that of the first one.
const memoryAsked = 3

// memory measures data sets with more and more points in the same hours of the same
// series, so that the answer, and what a server sends for it, stays the same. Each figure
// has a gateway of its own.
func (s *scaling) memory(ctx context.Context) error {
	s.peaks = &report.Plot{Name: "MiB of memory of the gateway, at most, by points", X: "points", Y: "MiB", LogX: true}
	lines := []struct{ name, mode, parameter string }{
		{pushedName, "strict", "&mode=strict"}, {pushedName, "partial", "&mode=partial"}, {"in process", "strict", ""},
	}
	peaks := map[string][]float64{}

	for _, step := range s.cfg.MemorySteps {
		d := s.cfg.Data
		d.Step, d.Hours = step, s.cfg.MemoryHours
		p, err := s.asLoaded(ctx, d, s.cfg.Form)
		if err != nil {
			return err
		}

		for _, l := range lines {
			// Without an address the gateway executes the parts itself.
			address := p.address
			if l.name != pushedName {
				address = ""
			}
			peak, err := s.peak(ctx, p, address, l.parameter)
			if err != nil {
				p.close()
				return err
			}

			name := l.name + ", " + l.mode
			peaks[name] = append(peaks[name], peak)
			s.peaks.Add(name, float64(d.Points()/d.MetricCount), peak)
		}

		p.close()
	}

	for _, l := range lines {
		name := l.name + ", " + l.mode
		s.r.Aims = append(s.r.Aims, s.flatMemory(name, peaks[name]))
	}

	return nil
}

// peak returns the peak of memory, in MiB, of a new gateway that answers the query.
func (s *scaling) peak(ctx context.Context, p *scalePlace, pushdown, parameter string) (float64, error) {
	g, err := s.cfg.Gateway(ctx, p.prefix, pushdown)
	if err != nil {
		return 0, err
	}
	defer g.Close()

	q := workload.Query{Path: p.data.Whole("sum:5m-avg:%s").String() + parameter}
	for range memoryAsked {
		answer, err := g.Ask(ctx, q)
		if err != nil {
			return 0, err
		}
		if !strings.Contains(string(answer), `"dps"`) {
			return 0, fmt.Errorf("%s: the gateway answers %.200s, want points", q, answer)
		}
	}

	peak, err := g.Peak()
	return float64(peak) / (1 << 20), err
}

// flatMemory returns the aim that memory does not grow with the number of points.
func (s *scaling) flatMemory(name string, peaks []float64) report.Aim {
	steps := s.cfg.MemorySteps
	first, last := peaks[0], peaks[len(peaks)-1]
	ratio := last / first
	return report.Aim{
		Row:     "memory",
		Scale:   middleScale,
		Want:    wantMemory,
		Got:     report.Single(ratio),
		What:    fmt.Sprintf("memory of the gateway for %dx the points, %s", steps[0]/steps[len(steps)-1], name),
		Against: "the fewest points",
		Ours:    fmt.Sprintf("%.0f MiB", last),
		Theirs:  fmt.Sprintf("%.0f MiB", first),
	}
}
