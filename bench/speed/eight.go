package speed

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

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
func eight(ctx context.Context, s *stage, g group) error {
	set, err := s.useSet(ctx, g)
	if err != nil {
		return err
	}
	ours, err := s.caching(ctx)
	if err != nil {
		return err
	}

	panels := set.dashboards()
	for _, q := range workload.Take(len(set.data.Dashboard(0, 1, 0)), panels) {
		if err := peer.Agree(ctx, set.tsd, ours, q); err != nil {
			return err
		}
	}

	rate, err := s.sustained(ctx, set.tsd, panels)
	if err != nil {
		return err
	}
	s.cfg.Progress.Sayf("eight dashboards: %.3g panels a second", rate)
	figures := map[*peer.Server]*report.Figure{}
	for round := range 2 {
		for _, server := range []*peer.Server{set.tsd, ours} {
			l, err := bench.Replay(ctx, bench.ReplayConfig{Server: server, Queries: panels, Duration: time.Duration(s.cfg.Seconds) * time.Second,
				// A dashboard asks for its six panels at once.
				Rate: rate, Burst: 6, Seed: uint64(round), Name: fmt.Sprintf("eight dashboards, %s, run %d", server.Name, round+1)})
			if err != nil {
				return err
			}
			s.cfg.Report.Latencies = append(s.cfg.Report.Latencies, l)
			if figures[server] == nil {
				figures[server] = &report.Figure{Name: "eight dashboards, p99, " + server.Name}
			}
			figures[server].Runs = append(figures[server].Runs, l.At(99))
		}
	}

	// If the aim is missed, a profile shows what the panels of one dashboard take.
	one := set.data.Dashboard(0, int64(max(set.data.Hours-1, 1)), 0)
	s.keep(ours, []bench.Step{bench.Repeat(ours, "", figures[ours].Name, [][]workload.Query{one})})
	s.aim(faster("eight", g, fmt.Sprintf("eight dashboards at once, p99 at %.3g panels/s, compacted rows", rate), 4, *figures[ours], *figures[set.tsd], "OpenTSDB, same tables"))
	return s.lightBesideHeavy(ctx, g, ours)
}

// dashboards yields the panels of eight dashboards in turn, their windows moving
// on.
func (t *tableSet) dashboards() iter.Seq[workload.Query] {
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
	l, err := bench.Replay(ctx, bench.ReplayConfig{Server: server, Queries: panels, Requests: n, Clients: clients, Name: "all it can, " + server.Name})
	if err != nil {
		return 0, err
	}
	s.cfg.Report.Latencies = append(s.cfg.Report.Latencies, l)
	return min(float64(n)/time.Since(start).Seconds()/2, 200), nil
}

// lightBesideHeavy asks for one host ten times a second, first alone and then while
// another client asks for everything without a break. If heavy queries held up light
// ones, a light one would take as long as a heavy one. So the aim is that the p99 of
// light ones stays below the median of heavy ones.
func (s *stage) lightBesideHeavy(ctx context.Context, g group, server *peer.Server) error {
	set := s.set
	light := func(yield func(workload.Query) bool) {
		for i := 0; yield(set.data.OneHost(i * 7 % set.data.Hosts)); i++ {
		}
	}
	heavy := set.data.Whole("sum:1m-avg:%s{host=*}").Vary(slack, 1, s.cfg.Data.Seed)
	for q := range heavy {
		if err := server.Drain(ctx, q); err != nil { // the first of endless ones warms the server
			return err
		}
		break
	}

	c := bench.ReplayConfig{Server: server, Queries: light, Duration: time.Duration(s.cfg.Seconds) * time.Second / 2, Rate: 10, Seed: 1}
	c.Name = "light query alone"
	alone, err := bench.Replay(ctx, c)
	if err != nil {
		return err
	}

	c.Name = "light query beside a heavy one"
	var beside, burden report.Latency
	var err1, err2 error
	var both sync.WaitGroup
	both.Go(func() { beside, err1 = bench.Replay(ctx, c) })
	both.Go(func() {
		burden, err2 = bench.Replay(ctx, bench.ReplayConfig{Server: server, Queries: heavy, Duration: c.Duration, Clients: 1, Name: "heavy query"})
	})
	both.Wait()
	for _, err := range []error{err1, err2} {
		if err != nil {
			return err
		}
	}

	s.cfg.Report.Latencies = append(s.cfg.Report.Latencies, alone, beside, burden)
	p99, median := report.Figure{Runs: []time.Duration{beside.At(99)}}, report.Figure{Runs: []time.Duration{burden.At(50)}}
	s.aim(within("eight", g, "light query beside a heavy one, p99 (alone "+report.MS(alone.At(99))+")", 1, p99, median, "the heavy query's median"))
	return nil
}
