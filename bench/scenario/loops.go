package scenario

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/bench"
	"downpour/bench/report"
	"downpour/bench/workload"
)

// loop is the step that asks sides in an open loop, one after another, for Config.Seconds each: requests have their
// times beforehand, whatever the answers take, and response times count from there. Its figures are p99.
type loop struct {
	sides   []string // one that is in no aim that is wanted is left out
	name    string   // of its figures, before that of the side
	queries func(s *stage) iter.Seq[workload.Query]
	rate    func(ctx context.Context, s *stage) (perSecond float64, err error)
	burst   int // queries that are due together
	runs    int // of each side, in turn
	cutOff  int // ends requests after so many times Config.Seconds; 0 is never
	clients func(c *Config) int
	what    string // {rate} is that of the queries
	aims    []aim  // each of a side of its own
}

func (l loop) run(ctx context.Context, s *stage) error {
	rate, err := l.rate(ctx, s)
	if err != nil {
		return err
	}
	for run := range max(l.runs, 1) {
		for _, side := range l.sides {
			if !l.wants(s, side) {
				continue
			}
			p99, err := l.once(ctx, s, side, rate, run)
			if err != nil {
				return err
			}
			f := s.figures[l.figure(s, side)]
			f.Name, f.Runs = l.figure(s, side), append(f.Runs, p99)
			s.figures[f.Name] = f
		}
	}

	for _, one := range l.aims {
		what := s.text(l.what, "{rate}", fmt.Sprintf("%.3g", rate))
		s.judge(one, what, s.figures[l.figure(s, one.of)], s.figures[l.figure(s, one.than)])
	}
	return nil
}

// figure is the name of a side's figure; of the only side it has no name. What is no side is the name of a figure.
func (l loop) figure(s *stage, side string) string {
	switch {
	case !slices.Contains(l.sides, side) && side != "":
		return s.text(side)
	case len(l.sides) == 1:
		return s.text(l.name) + ", p99"
	}
	return s.text(l.name) + ", p99, " + reported(side)
}

// wants reports whether an aim that is wanted is of a side.
func (l loop) wants(s *stage, side string) bool {
	for _, one := range l.aims {
		if s.group.has(one.row) && (one.of == side || one.than == side) {
			return true
		}
	}
	return len(l.sides) == 1
}

// once asks a side, and returns the p99.
func (l loop) once(ctx context.Context, s *stage, name string, rate float64, run int) (time.Duration, error) {
	server, err := s.side(ctx, name)
	if err != nil {
		return 0, err
	}
	seconds := time.Duration(s.cfg.Seconds) * time.Second
	c := bench.ReplayConfig{
		Server: server, Queries: l.queries(s), Duration: seconds, Rate: rate, Burst: l.burst, Seed: uint64(run),
		CutOff: time.Duration(l.cutOff) * seconds, Name: s.text(l.name),
	}
	if len(l.sides) > 1 {
		c.Name += ", " + reported(name)
	}
	if l.runs > 1 {
		c.Name += fmt.Sprintf(", run %d", run+1)
	}
	if l.clients != nil {
		c.Clients = l.clients(s.cfg)
	}

	s.cfg.Progress.Sayf("%s", c.Name)
	sent, began := s.sent.Load(), time.Now()
	got, err := s.replay(ctx, c)
	if put := s.sent.Load() - sent; err == nil && put > 0 {
		s.cfg.Report.Note("%s: median %s, p99 %s; %s points/s came meanwhile", c.Name,
			report.MS(got.At(50)), report.MS(got.At(99)), report.Thousands(float64(put)/time.Since(began).Seconds()))
	}
	return got.At(99), err
}

// boards is how many dashboards are open at once.
const boards = 8

// panelsOfBoard is how many panels a dashboard of the data set has.
const panelsOfBoard = 6

// eightBoards yields the panels of eight dashboards in turn, their windows moving on.
func eightBoards(s *stage) iter.Seq[workload.Query] {
	d := s.set.data
	return func(yield func(workload.Query) bool) {
		// A window is an hour shorter than the data, which leaves twelve positions five minutes
		// apart. All eight stand at one before they move on; each has hosts of its own.
		hours := int64(max(d.Hours-1, 1))
		for i := int64(0); ; i++ {
			for _, q := range d.Dashboard(i/boards%12*300, hours, int(i%boards)*101%d.Hosts) {
				if !yield(q) {
					return
				}
			}
		}
	}
}

// oneBoard asks for the panels of one of them.
func oneBoard(s *stage) []workload.Query { return workload.Take(panelsOfBoard, eightBoards(s)) }

// halfOf is half the rate at which a side answers when it is always asked; more would only measure how long its queue
// has grown.
func halfOf(name string) func(context.Context, *stage) (float64, error) {
	return func(ctx context.Context, s *stage) (float64, error) {
		const clients, rounds = 2, 3
		server, err := s.side(ctx, name)
		if err != nil {
			return 0, err
		}
		start, n := time.Now(), panelsOfBoard*rounds*clients
		_, err = s.replay(ctx, bench.ReplayConfig{
			Server: server, Queries: eightBoards(s), Requests: n, Clients: clients, Name: "all it can, " + server.Name,
		})
		return min(float64(n)/time.Since(start).Seconds()/2, 200), err
	}
}

// keepBoard has the panels of one dashboard profiled, if the aim of the eight is missed.
func keepBoard(_ context.Context, s *stage) error {
	one := s.set.data.Dashboard(0, int64(max(s.set.data.Hours-1, 1)), 0)
	s.keep("eight dashboards, p99, "+reported(users), users, bench.Question{Of: bench.Batches([][]workload.Query{one})})
	return nil
}

// lightBesideHeavy asks for one host ten times a second, first alone and then while
// another client asks for everything without a break. If heavy queries held up light
// ones, a light one would take as long as a heavy one. So the aim is that the p99 of
// light ones stays below the median of heavy ones.
func lightBesideHeavy(ctx context.Context, s *stage) error {
	server, err := s.side(ctx, users)
	if err != nil {
		return err
	}
	d := s.set.data
	light := func(yield func(workload.Query) bool) {
		for i := 0; yield(d.OneHost(i * 7 % d.Hosts)); i++ {
		}
	}
	heavy := d.Whole("sum:1m-avg:%s{host=*}").Vary(hour, 1, s.cfg.Data.Seed)
	if err := server.Drain(ctx, workload.Take(1, heavy)[0]); err != nil { // warms the server
		return err
	}

	half := time.Duration(s.cfg.Seconds) * time.Second / 2
	c := bench.ReplayConfig{Server: server, Queries: light, Duration: half, Rate: 10, Seed: 1}
	c.Name = "light query alone"
	alone, err := s.replay(ctx, c)
	if err != nil {
		return err
	}

	c.Name = "light query beside a heavy one"
	var burden report.Latency
	beside, err := atOnce(ctx, func(ctx context.Context) (err error) {
		burden, err = bench.Replay(ctx, bench.ReplayConfig{
			Server: server, Queries: heavy, Duration: half, Clients: 1, Name: "heavy query",
		})
		return err
	}, func(ctx context.Context) (report.Latency, error) { return bench.Replay(ctx, c) })
	if err != nil {
		return err
	}

	s.cfg.Report.Latencies = append(s.cfg.Report.Latencies, beside, burden)
	p99 := report.Figure{Runs: []time.Duration{beside.At(99)}}
	median := report.Figure{Runs: []time.Duration{burden.At(50)}}
	what := "light query beside a heavy one, p99 (alone " + report.MS(alone.At(99)) + ")"
	s.judge(within("eight", 1, "").beside("the heavy query's median"), what, p99, median)
	return nil
}

// atOnce measures something while something else runs, and waits for both.
func atOnce(
	ctx context.Context, run func(context.Context) error, measure func(context.Context) (report.Latency, error),
) (l report.Latency, err error) {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return run(ctx) })
	both.Go(func() (err error) { l, err = measure(ctx); return err })
	err = both.Wait()
	return l, err
}
