package speed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/integration/e2e"
)

// Of each pod there are two points in each of three rows.
const (
	podHours   = 3
	podPerHour = 2
)

// podMemory is the DOWNPOUR_MEMORY of the gateway: about what VictoriaMetrics takes for the
// same queries.
const podMemory = "1GiB"

// podRounds bounds how often all pods are summed up: it takes seconds.
const podRounds = 5

// podPair is VictoriaMetrics and a gateway, each with the pods in storage of its own.
type podPair struct {
	data           workload.Pods
	dir            directory // of the gateway, which is started several times
	env            map[string]string
	victoria, ours *peer.Server
}

// pods measures a great many series: how they are put while they are new, how one of them is
// found, and how all are summed up.
func pods(ctx context.Context, s *stage, g group) error {
	p := &s.pods
	*p = podPair{data: workload.Pods{Count: s.cfg.Pods, Start: s.cfg.Data.Start, Hours: podHours, PerHour: podPerHour, Seed: s.cfg.Data.Seed},
		env: map[string]string{"DOWNPOUR_MEMORY": podMemory}}
	maps.Copy(p.env, s.cfg.ScanEnv)
	var err error
	if p.dir, err = tempDir(); err != nil {
		return err
	}
	if p.victoria, err = s.started(peer.StartVictoria(ctx)); err != nil {
		return err
	}
	if err := p.startOurs(ctx, s); err != nil {
		return err
	}
	if err := p.put(ctx, s, g); err != nil {
		return err
	}
	if g.has("firstlook") {
		if err := p.firstLook(ctx, s, g); err != nil {
			return err
		}
	}
	if g.has("sparse") {
		return p.sums(ctx, s, g)
	}
	return nil
}

// dropPods ends the servers of the pods and removes what they hold.
func (s *stage) dropPods() {
	p := s.pods
	s.pods = podPair{}
	p.ours.Close()
	p.victoria.Close()
	if p.dir.path != "" {
		p.dir.remove()
	}
}

// startOurs starts the gateway over what its directory holds.
func (p *podPair) startOurs(ctx context.Context, s *stage) (err error) {
	p.ours, err = s.started(peer.StartDownpour(ctx, peer.Options{Dir: p.dir.path, Env: p.env}))
	return err
}

// put puts the pods into both, once: that takes minutes. Then both must give the same answer.
func (p *podPair) put(ctx context.Context, s *stage, g group) error {
	s.cfg.Progress.Sayf("putting %s", p.data)
	c := bench.SendConfig{Data: p.data, Format: workload.Telnet, Connections: s.cfg.Connections}
	payload := c.Spell()
	var figures [2]report.Figure
	for i, server := range []*peer.Server{p.victoria, p.ours} {
		c.Server = server
		took, err := c.Send(ctx, payload)
		if err != nil {
			return err
		}
		figures[i] = report.Figure{Name: "new series put, " + server.Name, Work: int64(p.data.Points()), Unit: "points", Runs: []time.Duration{took}}
	}
	figures[1].Of = figures[0].Name

	if g.has("newseries") {
		s.cfg.Report.Figures = append(s.cfg.Report.Figures, figures[:]...)
		what := fmt.Sprintf("%s new series of 3 tags put by telnet, %d points each, embedded, durable", report.Thousands(float64(p.data.Series())), podHours*podPerHour)
		s.aim(s.rate("newseries", g, what, 0.7, figures[1], figures[0], "VictoriaMetrics"))
		s.aim(report.Aim{Row: "newseries", Scale: g.scale, What: what, AtLeast: true, Want: 300_000, Unit: "points/s", Figure: figures[1].Name,
			Got: single(figures[1].Rate())})
	}

	// VictoriaMetrics shows a point only a second or two after its put.
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return e2e.Until(ctx, time.Second, func(ctx context.Context) error {
		return peer.Agree(ctx, p.victoria, p.ours, p.data.Whole("sum:5m-avg:%s{zone=*}"))
	})
}

// firstLook measures the first query of a new gateway, for one pod of all, another one each
// round. VictoriaMetrics goes on running.
func (p *podPair) firstLook(ctx context.Context, s *stage, g group) error {
	s.cfg.Progress.Sayf("looking at one pod of %d", p.data.Count)
	// 7,919 is a prime: no pod comes twice as long as Count is no multiple of it.
	asked := func(round int) workload.Query { return p.data.OnePod((round*7919 + 4711) % p.data.Count) }
	if err := peer.Agree(ctx, p.victoria, p.ours, asked(s.cfg.Rounds)); err != nil {
		return err
	}

	names := [2]string{"one pod, first query, " + peer.Victoria, "one pod, first query, " + peer.Downpour}
	figures, err := s.interleave(ctx, []bench.Step{
		{Name: names[0], Unit: "queries", Work: 1, Run: bench.Timed(func(ctx context.Context, round int) error { return p.victoria.Drain(ctx, asked(round)) })},
		{Name: names[1], Of: names[0], Unit: "queries", Work: 1, Run: func(ctx context.Context, round int) (time.Duration, error) {
			if err := errors.Join(p.ours.Close(), p.startOurs(ctx, s)); err != nil {
				return 0, err
			}
			began := time.Now()
			err := p.ours.Drain(ctx, asked(round))
			return time.Since(began), err
		}},
	}, 0, s.cfg.Rounds)
	if err != nil {
		return err
	}

	what := fmt.Sprintf("one of %s series, first query of a process", report.Thousands(float64(p.data.Series())))
	s.aim(within("firstlook", g, what, 2, figures[names[1]], figures[names[0]], "VictoriaMetrics, running, first query of this series"))
	return nil
}

// sums measures sums of all pods, and the memory that they take.
func (p *podPair) sums(ctx context.Context, s *stage, g group) error {
	s.cfg.Progress.Sayf("comparing answers, then measuring sums of %d pods", p.data.Count)
	c := bench.PairConfig{A: p.victoria, B: p.ours, Rounds: min(podRounds, s.cfg.Rounds), Slack: 2 * bucket, Unit: bucket, Verify: 1,
		Seed: s.cfg.Data.Seed, Prefix: "pods, ", Work: int64(p.data.Points()),
		Queries: []workload.Query{p.data.Whole("sum:5m-avg:%s"), p.data.Whole("sum:5m-avg:%s{zone=*}")}}
	// The puts have had a peak of their own.
	if err := errors.Join(p.victoria.Process.ResetPeak(), p.ours.Process.ResetPeak()); err != nil {
		return err
	}
	steps, err := c.Steps(ctx)
	if err != nil {
		return err
	}
	figures, err := s.measure(ctx, p.ours, steps, 0, c.Rounds)
	if err != nil {
		return err
	}

	rows := report.Thousands(float64(p.data.Series() * podHours))
	for _, q := range c.Queries {
		what := fmt.Sprintf("%s, %s rows of %d points, embedded", q.M, rows, podPerHour)
		s.aim(faster("sparse", g, what, 2, figures[c.Name(q, p.ours)], figures[c.Name(q, p.victoria)], "VictoriaMetrics, own storage"))
	}

	var peaks [2]float64
	for i, server := range []*peer.Server{p.victoria, p.ours} {
		m, err := server.Process.Memory()
		if err != nil {
			return err
		}
		peaks[i] = float64(m.Peak) / (1 << 20)
	}
	s.aim(report.Aim{Row: "sparse", Scale: g.scale, What: "memory meanwhile, with DOWNPOUR_MEMORY=" + podMemory, Against: "VictoriaMetrics", Want: 1, Got: single(peaks[1] / peaks[0]),
		Ours: fmt.Sprintf("%.0f MiB", peaks[1]), Theirs: fmt.Sprintf("%.0f MiB", peaks[0])})
	return nil
}
