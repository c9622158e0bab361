// Package live measures what live charts and notebooks wait for: what a tick of
// a live query costs compared with asking again, how long a put takes to reach a frame,
// how many sockets one gateway keeps up to date, how an answer as Arrow
// compares with JSON, the scan and the wire, and what dashboards
// cost a browser, and the gateway when many look at one. Everything goes
// through a running gateway, which is asked as its users ask it.
//
// It is no scenario: what counts is when thousands of sockets show one put, and
// what processors do in the meantime, not how long a request takes.
package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
)

// part is one thing to measure.
type part struct {
	name string
	over func(c *Config) *workload.Devops // the data set that it is about; nil is none
	run  func(c *Config, ctx context.Context, h *history) error
}

// parts are all of them, in the order in which they are measured. Those over the same data set share it.
func parts() []part {
	lines := func(c *Config) *workload.Devops { return &c.Data }
	day := func(c *Config) *workload.Devops { return &c.Dashboards.Data }
	return []part{
		{"frames", nil, (*Config).measureFrames},
		{"sockets", nil, (*Config).measureSockets},
		{"tick", lines, (*Config).tick},
		{"answers", lines, (*Config).answers},
		{"viewers", day, (*Config).viewers},
		{"dashboards", day, (*Config).inBrowser},
	}
}

// Parts are the names of what there is to measure, in the order in which it is.
var Parts = func() (all []string) {
	for _, p := range parts() {
		all = append(all, p.name)
	}
	return all
}()

// Config says what Run measures on one gateway.
type Config struct {
	Server *peer.Server
	// Store names the gateway's store in figures: Embedded, HBase.
	Store string
	Parts []string
	// Data is the data set of ticks and answers; its hours are moved to end now.
	Data workload.Devops
	// Tick says how a tick is measured; without a CPU there is no such part.
	Tick TickConfig
	// Frames are measured at each of these numbers of sockets, Puts of them.
	Sockets []int
	Puts    int
	Every   time.Duration
	// Crowd is the number of sockets of the part sockets, on so many plans. A
	// tenth of them each is stalled, slow and half-open.
	Crowd, CrowdPlans int
	Long              int // points of what its stalled and slow ones ask for; 0 is 20,000
	// Floor makes the bare scan that answers are measured against; nil where only
	// the gateway can read its store.
	Floor  func(ctx context.Context, metric string) (*bench.Floor, error)
	Rounds int // of answers, and of viewers
	// Dashboards says how the parts viewers and dashboards are measured.
	Dashboards DashboardsConfig
	Report     *report.Report
	// Progress makes the bar of a part; nil says nothing.
	Progress func(what string, total int64) *progress.Progress
}

// Stores.
const (
	Embedded = "embedded"
	HBase    = "HBase"
)

// Validate names the first field that is wrong.
func (c *Config) Validate() error {
	err := errors.Join(bench.Known("parts", c.Parts, Parts), bench.Positive(map[string]int{"rounds": c.Rounds}))
	if err != nil {
		return err
	}

	for _, p := range []string{"tick", "viewers"} {
		if c.has(p) && c.Tick.CPU == nil {
			return fmt.Errorf("parts: got %s, which needs a gateway that this program has started", p)
		}
	}
	if c.has("viewers") || c.has("dashboards") {
		if err := c.Dashboards.Validate(); err != nil {
			return fmt.Errorf("dashboards: %w", err)
		}
	}
	return c.Data.Validate()
}

func (c *Config) has(part string) bool { return slices.Contains(c.Parts, part) }

// Run measures the parts and puts figures, latencies and aims into the report.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.Progress == nil {
		c.Progress = func(string, int64) *progress.Progress { return nil }
	}

	var h *history
	defer func() { h.close() }()
	var over *workload.Devops // that h holds
	for _, p := range parts() {
		if !c.has(p.name) {
			continue
		}
		if p.over != nil && p.over(&c) != over {
			h.close()
			over = p.over(&c)
			var err error
			if h, err = c.load(ctx, *over); err != nil {
				return err
			}
		}
		if err := p.run(&c, ctx, h); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// measureFrames measures put to frame for some numbers of sockets, all on one plan.
func (c *Config) measureFrames(ctx context.Context, _ *history) error {
	for _, n := range c.Sockets {
		p := c.Progress(fmt.Sprintf("put to frame, %d sockets, puts", n), int64(c.Puts))
		result, err := Frames(ctx, FramesConfig{
			Server:   c.Server,
			Sockets:  n,
			Plans:    1,
			Puts:     c.Puts,
			Every:    c.Every,
			Progress: p,
			Name:     fmt.Sprintf("put to frame, %s, sockets: %d", c.Store, n),
		})
		p.End()
		if err != nil {
			return err
		}

		c.Report.Latencies = append(c.Report.Latencies, result.Latency)
		if n == c.Sockets[0] {
			c.aimFrames(result.Latency)
		}
	}
	return nil
}

// aimFrames is the aim of a point in order: embedded within a second, on HBase
// within two.
func (c *Config) aimFrames(l report.Latency) {
	want := 1000.0
	if c.Store == HBase {
		want = 2000
	}
	c.aimMS("frames", "put to frame, p99, "+c.Store, want, l)
}

// aimMS adds the aim that a latency's p99 is at most want, in ms.
func (c *Config) aimMS(row, what string, want float64, l report.Latency) {
	ms := l.At(99).Seconds() * 1000
	c.Report.Aims = append(c.Report.Aims, report.Aim{
		Row:   row,
		Scale: "1x",
		What:  what,
		Unit:  "ms",
		Want:  want,
		Got:   report.Single(ms),
	})
}

// everyTenth makes a tenth of a crowd's sockets stalled, a tenth slow and a tenth
// half-open.
const everyTenth = 10

// measureSockets measures a crowd of sockets twice: the time from put to frame at one put a
// second, then frames a second at puts without a pause.
func (c *Config) measureSockets(ctx context.Context, _ *history) error {
	name := fmt.Sprintf("%s sockets on %d plans, a tenth each stalled, slow and half-open, %s",
		report.Thousands(float64(c.Crowd)), c.CrowdPlans, c.Store)
	for _, every := range []time.Duration{time.Second, 0} {
		p := c.Progress(name+", puts", int64(c.Puts))
		result, err := Frames(ctx, FramesConfig{Server: c.Server, Sockets: c.Crowd, Plans: c.CrowdPlans,
			StalledEvery: everyTenth, SlowEvery: everyTenth, HalfOpenEvery: everyTenth, Long: c.Long,
			Puts: c.Puts, Every: every, Progress: p, Name: "put to frame, " + name})
		p.End()
		if err != nil {
			return err
		}

		c.Report.Latencies = append(c.Report.Latencies, result.Latency)
		c.Report.Note("%s, puts every %s: in the end %d of %d slow sockets had their whole answer and the last point",
			name, every, result.Complete, result.Slow)
		switch {
		case every == 0: // puts follow the frames, so the rate of frames counts
			c.Report.Figures = append(c.Report.Figures, report.Figure{
				Name: "frames, " + name,
				Work: result.Frames,
				Unit: "frames",
				Runs: []time.Duration{result.Took},
			})
			continue
		case c.Store == Embedded: // on HBase a crowd has no aim
			c.aimMS("sockets", "put to frame, p99, "+name, 500, result.Latency)
		}

		// Of the first run alone: what it has left resident would be counted before the
		// second.
		if result.With > 0 {
			c.Report.Note("%s: the gateway's resident memory was %d MiB before, %d MiB with all of them: "+
				"%d KiB a socket",
				name, result.Before>>20, result.With>>20, result.BytesPerSocket(c.Crowd)>>10)
		}
	}

	if c.Server.Process != nil {
		m, err := c.Server.Process.Memory()
		if err != nil {
			return err
		}
		c.Report.Note("%s: the gateway's memory was %d MiB at most", name, m.Peak>>20)
	}

	return nil
}

// load puts a data set, which is to be closed.
func (c *Config) load(ctx context.Context, d workload.Devops) (*history, error) {
	p := c.Progress("load, points, "+c.Store, int64(d.Points()))
	defer p.End()
	h, err := newHistory(ctx, c.Server, d, p)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return h, nil
}

// tick measures the cost of a tick, and puts its figures and its aim into the report.
func (c *Config) tick(ctx context.Context, h *history) error {
	p := c.Progress("tick, rounds, "+c.Store, int64(c.Tick.Rounds))
	defer p.End()
	t, err := measureTicks(ctx, c.Tick, c.Server, h, c.Store, p)
	if err != nil {
		return err
	}

	for _, f := range t.figures {
		if len(f.Runs) > 0 { // no round may have counted, see aim
			c.Report.Figures = append(c.Report.Figures, f)
		}
	}

	c.Report.Aims = append(c.Report.Aims, t.aim(c.Store))
	c.Report.Note("tick, %s: %d deltas came in %d s to each of %d live queries at once; the time is the "+
		"processors' of gateway and region servers, the puts' taken off. After the last put they held it within %s",
		c.Store, t.deltas/t.Plans, t.Seconds*t.Rounds, t.Plans, t.behind.Round(10*time.Millisecond))
	return nil
}

// answers measures answers over the points put so far, once all of them are stored.
func (c *Config) answers(ctx context.Context, h *history) error {
	if err := h.durable(ctx); err != nil {
		return err
	}
	p := c.Progress("answers, "+c.Store, 0)
	defer p.End()

	now := time.Now().Unix()
	a := AnswersConfig{
		Server: c.Server,
		Metric: h.data.Metric(),
		Start:  now - int64(h.data.Hours)*3600,
		Last:   now,
		Store:  c.Store,
		Rounds: c.Rounds,
	}
	if c.Floor != nil {
		var err error
		if a.Floor, err = c.Floor(ctx, a.Metric); err != nil {
			return err
		}
	}

	figures, err := Answers(ctx, a)
	c.Report.Figures = append(c.Report.Figures, figures...)
	return err
}
