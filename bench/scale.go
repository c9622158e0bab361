package bench

import (
	"context"
	"errors"
	"fmt"

	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/gateway/write"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/store"
)

// ScaleConfig says what Scale measures.
type ScaleConfig struct {
	Store store.Store
	Form  write.Form
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
	// Gateway starts a gateway in a process of its own over the tables of a
	// prefix, with a pushdown server at an address, or none. nil where Pushdown
	// is, and where memory is not to be measured.
	Gateway func(ctx context.Context, prefix, pushdown string) (*MeasuredGateway, error)
	// Buckets is the axis of parts: salt buckets, each of which is a part.
	// InFlight are the parts that one server has at once. MemorySteps are the
	// seconds between two points on the axis of memory, descending, where
	// nothing else changes; MemoryHours the hours, by default those of Data.
	Buckets, InFlight, MemorySteps []int
	MemoryHours                    int
	Progress                       *progress.Progress
}

// defaults fills in the axes that are not set.
func (c ScaleConfig) defaults() ScaleConfig {
	if c.Buckets == nil {
		c.Buckets = []int{1, 2, 4, 8, 16}
	}
	if c.InFlight == nil {
		c.InFlight = []int{1, 2, 4, 8}
	}

	if c.MemorySteps == nil {
		c.MemorySteps = []int{16, 4, 1}
	}
	if c.MemoryHours == 0 {
		c.MemoryHours = c.Data.Hours
	}
	return c
}

// Validate names the first field that is wrong.
func (c ScaleConfig) Validate() error {
	for name, got := range map[string]int{"steps": c.Steps, "rounds": c.Rounds} {
		if got < 1 || got > 100 {
			return fmt.Errorf("%s: got %d, want 1 to 100", name, got)
		}
	}

	if c.Data.Hours>>c.Steps < 1 || c.Data.Hosts>>c.Steps < 1 {
		return fmt.Errorf("steps: got %d, want hours and hosts (%d and %d) not to be halved below 1",
			c.Steps, c.Data.Hours, c.Data.Hosts)
	}
	for i, step := range c.MemorySteps {
		d := c.Data
		if d.Step = step; d.Validate() != nil || i > 0 && step >= c.MemorySteps[i-1] {
			return fmt.Errorf("memory-steps: got %v, want descending divisors of 3600", c.MemorySteps)
		}
	}
	return c.Data.Validate()
}

// candidate is one way to execute a query.
type candidate struct {
	name string
	mode string // strict or partial
	*engine.Engine
}

// scaling holds the curves: time and bytes by each axis.
type scaling struct {
	cfg   ScaleConfig
	r     *report.Report
	times map[string]*report.Plot
	bytes map[string]*report.Plot
	peaks *report.Plot // of the gateway's memory; nil if not measured
	axes  []string
	seq   int
}

// Scale measures how the time of a query, and the bytes that parts return to
// the gateway, grow with points, series, groups and parts: in process, and with
// a pushdown server in its own process where the store allows one; merged
// strictly, and by partial aggregates where the planner can. With a pushdown
// server it also measures the time by parts in flight at it, the gateway's memory
// by points, and holds bytes, times and memory against what was aimed at.
func Scale(ctx context.Context, cfg ScaleConfig, r *report.Report) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg = cfg.defaults()
	s := &scaling{cfg: cfg, r: r, times: map[string]*report.Plot{}, bytes: map[string]*report.Plot{}}
	r.Data, r.Cache = "around "+cfg.Data.String(), "warm: one round before those that count"
	// An axis that fails leaves the others, and what was measured is reported.
	var err error
	for _, axis := range cfg.axes() {
		err = errors.Join(err, s.along(ctx, axis))
	}
	s.ownProcess(float64(cfg.Data.Points() / cfg.Data.MetricCount)) // the aim is about the middle of the axis
	if cfg.Pushdown != nil {
		err = errors.Join(err, s.inFlight(ctx), s.shipped(ctx))
	}

	if cfg.Gateway != nil {
		err = errors.Join(err, s.memory(ctx))
	}
	for _, axis := range s.axes {
		r.Curves = append(r.Curves, *s.times[axis], *s.bytes[axis])
	}

	if s.peaks != nil {
		r.Curves = append(r.Curves, *s.peaks)
	}
	return err
}

// scalePlace is a loaded data set and the ways to ask it.
type scalePlace struct {
	*local
	data    workload.Devops
	prefix  string
	server  dispatch.Server // a pushdown server at address, nil where there is none
	address string
	engines []candidate
	end     []func()
}

func (p *scalePlace) close() {
	for _, end := range p.end {
		end()
	}
}

// load loads a data set into tables of its own.
func (s *scaling) load(ctx context.Context, d workload.Devops, buckets int) (*scalePlace, error) {
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

	p := &scalePlace{
		local:   l,
		data:    d,
		prefix:  prefix,
		engines: []candidate{{"in process", "strict", l.engine}, {"in process", "partial", l.engine}},
	}
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
	p.server, p.address = c, address
	pushed := p.pushed(0) // as many parts at once as by default
	p.engines = append(p.engines, candidate{pushedName, "strict", pushed}, candidate{pushedName, "partial", pushed})
	return p, nil
}

const pushedName = "pushdown process"

// pushed is an engine that has the pushdown server execute so many parts at
// once; 0 is the gateway's default.
func (p *scalePlace) pushed(inFlight int) *engine.Engine {
	return engine.New(engine.Config{Names: p.names, Compile: p.compile(),
		Exec: dispatch.New(dispatch.Config{Store: p.store, Servers: []dispatch.Server{p.server}, PerServer: inFlight})})
}

// spot is a place of an axis and a candidate.
type spot struct {
	x float64
	candidate
}

// measure asks one query at all spots in turn.
func (s *scaling) measure(ctx context.Context, spots []spot, p *scalePlace, q asked) error {
	var steps []Step
	var measured []spot
	stats := make([]engine.Stats, len(spots))
	for _, e := range spots {
		parsed, err := parse(q.query)
		if err != nil {
			return err
		}
		parsed.Mode = e.mode
		if can, err := s.measurable(ctx, e, q.query); err != nil {
			return err
		} else if !can {
			continue
		}

		i := len(steps)
		steps = append(steps, Step{Name: figureName(q.axis, e), Work: q.points, Unit: "points",
			Run: Timed(func(ctx context.Context, _ int) (err error) {
				stats[i], err = p.ask(ctx, e.Engine, parsed, q.points)
				return err
			})})

		measured = append(measured, e)
	}

	figures, err := Interleave(ctx, steps, 1, s.cfg.Rounds, nil)
	if err != nil {
		return err
	}
	return s.addFigures(q.axis, measured, figures, stats)
}

// measurable reports whether a spot's mode is one that the planner has for the query.
func (s *scaling) measurable(ctx context.Context, e spot, q workload.Query) (bool, error) {
	if e.mode != "partial" {
		return true, nil
	}
	can, err := mergesPartially(ctx, e.candidate, q)
	if err == nil && !can {
		s.r.Note("partial merging was not measured: the planner makes no partial parts for mode=partial")
	}
	return can, err
}

// addFigures adds the figures of spots, in the same order, to the plots and the report.
func (s *scaling) addFigures(axis string, asked []spot, figures []report.Figure, stats []engine.Stats) error {
	for i, f := range figures {
		e := asked[i]
		// Without a healthy server the parts are executed in this process, which would be measured for it.
		if e.name == pushedName && stats[i].Remote == 0 {
			return fmt.Errorf("%s: no part was executed by the pushdown server", f.Name)
		}
		line := e.name + ", " + e.mode
		s.plot(s.times, axis, "ms").Add(line, e.x, f.Median().Seconds()*1000)
		s.plot(s.bytes, axis, "bytes from parts to gateway").Add(line, e.x, float64(stats[i].ShippedBytes))
	}

	s.r.Figures = append(s.r.Figures, figures...)
	return nil
}

func figureName(axis string, s spot) string {
	return fmt.Sprintf("%s %g: %s, %s", axis, s.x, s.name, s.mode)
}

// mergesPartially reports whether the planner merges partially where it may.
func mergesPartially(ctx context.Context, e candidate, q workload.Query) (bool, error) {
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

// plot returns the plot of an axis, and makes it at the first call. y is what its lines show.
func (s *scaling) plot(of map[string]*report.Plot, axis, y string) *report.Plot {
	if of[axis] == nil {
		of[axis] = &report.Plot{Name: y + " by " + axis, X: axis, Y: y, LogX: true, LogY: true}
		if y == "ms" { // of the two plots of an axis only one lists it
			s.axes = append(s.axes, axis)
		}
	}
	return of[axis]
}
