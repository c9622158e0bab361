package scenario

import (
	"context"
	"fmt"
	"iter"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
)

// boards is how many dashboards are open at once.
const boards = 8

// eight measures eight dashboards that refresh by the clock, whether the last
// answers are there or not: response times count from the moment a panel was
// due. The rate is half of what OpenTSDB can answer, found out beforehand; more
// would only measure how long its queue has grown.
func eight(ctx context.Context, s *stage) error {
	if err := s.use(ctx); err != nil {
		return err
	}
	servers, err := s.sides(ctx, []string{tsd, users})
	if err != nil {
		return err
	}
	panels := s.set.dashboards()
	for _, q := range workload.Take(len(s.set.data.Dashboard(0, 1, 0)), panels) {
		if err := s.agree(ctx, q, tsd, users); err != nil {
			return err
		}
	}

	rate, err := s.sustained(ctx, servers[0], panels)
	if err != nil {
		return err
	}
	s.cfg.Progress.Sayf("eight dashboards: %.3g panels a second", rate)
	var figures [2]report.Figure
	for round := range 2 {
		for i, server := range servers {
			l, err := s.replay(ctx, bench.ReplayConfig{
				Server: server, Queries: panels, Duration: time.Duration(s.cfg.Seconds) * time.Second,
				// A dashboard asks for its six panels at once.
				Rate: rate, Burst: 6, Seed: uint64(round), Name: fmt.Sprintf("eight dashboards, %s, run %d", server.Name, round+1),
			})
			if err != nil {
				return err
			}
			figures[i].Name = "eight dashboards, p99, " + server.Name
			figures[i].Runs = append(figures[i].Runs, l.At(99))
		}
	}

	// If the aim is missed, a profile shows what the panels of one dashboard take.
	one := bench.Question{Name: "eight dashboards, p99", Of: bench.Batches([][]workload.Query{s.set.data.Dashboard(0, int64(max(s.set.data.Hours-1, 1)), 0)})}
	s.keep(servers[1], []bench.Step{one.Step(servers[1], servers[1].Name, "")})
	s.judge(faster("eight", 4, tsd), fmt.Sprintf("eight dashboards at once, p99 at %.3g panels/s, compacted rows", rate), figures[1], figures[0])
	return s.lightBesideHeavy(ctx, servers[1])
}

// dashboards yields the panels of eight dashboards in turn, their windows moving
// on.
func (t *set) dashboards() iter.Seq[workload.Query] {
	return func(yield func(workload.Query) bool) {
		// A window is an hour shorter than the data, which leaves twelve positions five minutes
		// apart. All eight stand at one before they move on; each has hosts of its own.
		hours := int64(max(t.data.Hours-1, 1))
		for i := int64(0); ; i++ {
			for _, q := range t.data.Dashboard(i/boards%12*300, hours, int(i%boards)*101%t.data.Hosts) {
				if !yield(q) {
					return
				}
			}
		}
	}
}

// sustained is half the rate at which a server answers when it is always asked.
func (s *stage) sustained(ctx context.Context, server *peer.Server, panels iter.Seq[workload.Query]) (float64, error) {
	const clients, rounds = 2, 3
	start, n := time.Now(), 6*rounds*clients // a dashboard has six panels
	_, err := s.replay(ctx, bench.ReplayConfig{Server: server, Queries: panels, Requests: n, Clients: clients, Name: "all it can, " + server.Name})
	return min(float64(n)/time.Since(start).Seconds()/2, 200), err
}

// lightBesideHeavy asks for one host ten times a second, first alone and then while
// another client asks for everything without a break. If heavy queries held up light
// ones, a light one would take as long as a heavy one. So the aim is that the p99 of
// light ones stays below the median of heavy ones.
func (s *stage) lightBesideHeavy(ctx context.Context, server *peer.Server) error {
	d := s.set.data
	light := func(yield func(workload.Query) bool) {
		for i := 0; yield(d.OneHost(i * 7 % d.Hosts)); i++ {
		}
	}
	heavy := d.Whole("sum:1m-avg:%s{host=*}").Vary(hour, 1, s.cfg.Data.Seed)
	if err := server.Drain(ctx, workload.Take(1, heavy)[0]); err != nil { // warms the server
		return err
	}

	c := bench.ReplayConfig{Server: server, Queries: light, Duration: time.Duration(s.cfg.Seconds) * time.Second / 2, Rate: 10, Seed: 1}
	c.Name = "light query alone"
	alone, err := s.replay(ctx, c)
	if err != nil {
		return err
	}

	c.Name = "light query beside a heavy one"
	var beside, burden report.Latency
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) { beside, err = bench.Replay(ctx, c); return err })
	both.Go(func() (err error) {
		burden, err = bench.Replay(ctx, bench.ReplayConfig{Server: server, Queries: heavy, Duration: c.Duration, Clients: 1, Name: "heavy query"})
		return err
	})
	if err := both.Wait(); err != nil {
		return err
	}

	s.cfg.Report.Latencies = append(s.cfg.Report.Latencies, beside, burden)
	p99, median := report.Figure{Runs: []time.Duration{beside.At(99)}}, report.Figure{Runs: []time.Duration{burden.At(50)}}
	s.judge(within("eight", 1, "").beside("the heavy query's median"), "light query beside a heavy one, p99 (alone "+report.MS(alone.At(99))+")", p99, median)
	return nil
}
