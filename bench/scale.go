package bench

import (
	"context"
	"errors"
	"fmt"

	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/ask"
	"downpour/gateway/exec"
	"downpour/gateway/put"
	"downpour/pushdown/client"
)

// ScaleConfig says what Scale measures.
type ScaleConfig struct {
	Store Store
	Form  put.Form
	// Data is the middle of all axes; hours and hosts are halved and doubled
	// Steps times each way.
	Data   workload.Devops
	Steps  int
	Rounds int
	Settle func(context.Context) error
	// Pushdown starts a pushdown server in a process of its own over the tables
	// of a prefix and returns its address. nil where the store can be opened by
	// one process only.
	Pushdown func(ctx context.Context, prefix string, schema encoding.Schema) (address string, end func(), err error)
	Progress *progress.Progress
}

// Buckets is the axis of parts: salt buckets, each of which is a part.
var Buckets = []int{1, 2, 4, 8, 16}

// Validate names the first field that is wrong.
func (c ScaleConfig) Validate() error {
	for name, got := range map[string]int{"steps": c.Steps, "rounds": c.Rounds} {
		if got < 1 || got > 100 {
			return fmt.Errorf("%s: got %d, want 1 to 100", name, got)
		}
	}
	if c.Data.Hours>>c.Steps < 1 || c.Data.Hosts>>c.Steps < 1 {
		return fmt.Errorf("steps: got %d, want hours and hosts (%d and %d) not to be halved below 1", c.Steps, c.Data.Hours, c.Data.Hosts)
	}
	return c.Data.Validate()
}

// engine is one way to execute a query.
type engine struct {
	name string
	mode string // strict or partial
	*ask.Engine
}

// scaling holds the curves: time and bytes by each axis.
type scaling struct {
	cfg   ScaleConfig
	r     *report.Report
	times map[string]*report.Plot
	bytes map[string]*report.Plot
	axes  []string
	seq   int
}

// Scale measures how the time of a query, and the bytes that parts return to
// the gateway, grow with points, series, groups and parts: in process, and with
// a pushdown server in its own process where the store allows one; merged
// strictly, and by partial aggregates where the planner can.
func Scale(ctx context.Context, cfg ScaleConfig, r *report.Report) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	s := &scaling{cfg: cfg, r: r, times: map[string]*report.Plot{}, bytes: map[string]*report.Plot{}}
	r.Data, r.Cache = "around "+cfg.Data.String(), "warm: one round before those that count"
	err := errors.Join(s.points(ctx), s.series(ctx), s.parts(ctx))
	for _, axis := range s.axes {
		r.Curves = append(r.Curves, *s.times[axis], *s.bytes[axis])
	}
	return err
}

// place is a loaded data set and the ways to ask it.
type scalePlace struct {
	*local
	data    workload.Devops
	engines []engine
	end     []func()
}

func (p *scalePlace) close() {
	for _, end := range p.end {
		end()
	}
}

// use loads a data set into tables of its own.
func (s *scaling) use(ctx context.Context, d workload.Devops, buckets int) (*scalePlace, error) {
	s.seq++
	schema := encoding.DefaultSchema()
	if buckets > 1 {
		schema.SaltWidth, schema.SaltBuckets = 1, buckets
	}
	prefix := fmt.Sprintf("bench%d", s.seq)
	l, err := newLocal(ctx, s.cfg.Store, schema, prefix)
	if err != nil {
		return nil, err
	}
	if err := l.load(ctx, d, s.cfg.Form, 0, s.cfg.Progress); err != nil {
		return nil, err
	}
	if s.cfg.Settle != nil {
		if err := s.cfg.Settle(ctx); err != nil {
			return nil, err
		}
	}
	p := &scalePlace{local: l, data: d, engines: []engine{{"in process", "strict", l.engine}, {"in process", "partial", l.engine}}}
	if s.cfg.Pushdown == nil {
		return p, nil
	}
	address, end, err := s.cfg.Pushdown(ctx, prefix, schema)
	if err != nil {
		return nil, err
	}
	c, err := client.New(address, client.Options{})
	if err != nil {
		end()
		return nil, err
	}
	p.end = append(p.end, func() { c.Close() }, end)
	pushed := ask.New(ask.Config{Names: l.names, Exec: exec.New(exec.Config{Store: l.store, Servers: []exec.Server{c}}), Compile: l.compile()})
	p.engines = append(p.engines, engine{"pushdown process", "strict", pushed}, engine{"pushdown process", "partial", pushed})
	return p, nil
}

// at measures one query at one place of an axis, with every engine.
func (s *scaling) at(ctx context.Context, axis string, x float64, p *scalePlace, q workload.Query, points int64) error {
	var steps []Step
	var engines []engine
	stats := make([]ask.Stats, len(p.engines))
	for _, e := range p.engines {
		parsed, err := parse(q)
		if err != nil {
			return err
		}
		parsed.Mode = e.mode
		if e.mode == "partial" {
			can, err := partial(ctx, e, q)
			if err != nil {
				return err
			}
			if !can {
				s.r.Note("partial merging was not measured: the planner makes no partial parts for mode=partial")
				continue
			}
		}
		i := len(steps)
		steps = append(steps, Step{Name: fmt.Sprintf("%s %g: %s, %s", axis, x, e.name, e.mode), Work: points, Unit: "points",
			Run: Timed(func(ctx context.Context, _ int) (err error) {
				stats[i], err = p.ask(ctx, e.Engine, parsed, points)
				return err
			})})
		engines = append(engines, e)
	}
	figures, err := Interleave(ctx, steps, 1, s.cfg.Rounds, nil)
	if err != nil {
		return err
	}
	for i, f := range figures {
		if e := engines[i]; e.name != "in process" && stats[i].Remote == 0 {
			return fmt.Errorf("%s: no part was executed by the pushdown server", f.Name)
		}
		line := engines[i].name + ", " + engines[i].mode
		s.plot(s.times, axis, "ms").Add(line, x, f.Median().Seconds()*1000)
		s.plot(s.bytes, axis, "bytes from parts to gateway").Add(line, x, float64(stats[i].ShippedBytes))
	}
	s.r.Figures = append(s.r.Figures, figures...)
	return nil
}

// partial tells whether the planner merges partially where it may.
func partial(ctx context.Context, e engine, q workload.Query) (bool, error) {
	parsed, err := parse(q)
	if err != nil {
		return false, err
	}
	parsed.Mode = "partial"
	explained, err := e.Explain(ctx, parsed)
	if err != nil {
		return false, err
	}
	for _, x := range explained {
		for _, p := range x.Parts {
			if p.Mode == "partial" {
				return true, nil
			}
		}
	}
	return false, nil
}

func (s *scaling) plot(of map[string]*report.Plot, axis, y string) *report.Plot {
	if of[axis] == nil {
		of[axis] = &report.Plot{Name: y + " by " + axis, X: axis, Y: y, LogX: true, LogY: true}
		if y == "ms" {
			s.axes = append(s.axes, axis)
		}
	}
	return of[axis]
}

// points: one data set of many hours, of which ever more are asked for.
func (s *scaling) points(ctx context.Context) error {
	d := s.cfg.Data
	d.Hours <<= s.cfg.Steps
	p, err := s.use(ctx, d, 1)
	if err != nil {
		return err
	}
	defer p.close()
	for hours := s.cfg.Data.Hours >> s.cfg.Steps; hours <= d.Hours; hours *= 2 {
		q := d
		q.Hours = hours
		points := int64(q.Points() / q.MetricCount)
		if err := s.at(ctx, "points", float64(points), p, q.Whole("sum:5m-avg:%s"), points); err != nil {
			return err
		}
	}
	return nil
}

// series: data sets of ever more hosts; the largest is asked for ever more
// groups.
func (s *scaling) series(ctx context.Context) error {
	most := s.cfg.Data.Hosts << s.cfg.Steps
	for hosts := s.cfg.Data.Hosts >> s.cfg.Steps; hosts <= most; hosts *= 2 {
		d := s.cfg.Data
		d.Hosts, d.Tags = hosts, max(d.Tags, 4)
		p, err := s.use(ctx, d, 1)
		if err != nil {
			return err
		}
		err = s.at(ctx, "series", float64(hosts), p, d.Whole("sum:5m-avg:%s"), int64(d.Points()/d.MetricCount))
		if err == nil && hosts*2 > most {
			err = s.groups(ctx, p)
		}
		p.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scaling) groups(ctx context.Context, p *scalePlace) error {
	for _, g := range []struct {
		m      string
		groups int
	}{
		{"sum:5m-avg:%s", 1}, {"sum:5m-avg:%s{region=*}", workload.Regions}, {"sum:5m-avg:%s{dc=*}", workload.DCs},
		{"sum:5m-avg:%s{rack=*}", 100}, {"sum:5m-avg:%s{host=*}", p.data.Hosts},
	} {
		if err := s.at(ctx, "groups", float64(min(g.groups, p.data.Hosts)), p, p.data.Whole(g.m), int64(p.data.Points()/p.data.MetricCount)); err != nil {
			return err
		}
	}
	return nil
}

// parts: the same data in ever more salt buckets.
func (s *scaling) parts(ctx context.Context) error {
	for _, buckets := range Buckets {
		p, err := s.use(ctx, s.cfg.Data, buckets)
		if err != nil {
			return err
		}
		err = s.at(ctx, "parts", float64(buckets), p, s.cfg.Data.Whole("sum:5m-avg:%s{region=*}"), int64(s.cfg.Data.Points()/s.cfg.Data.MetricCount))
		p.close()
		if err != nil {
			return err
		}
	}
	return nil
}
