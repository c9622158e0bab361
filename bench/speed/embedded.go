package speed

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/integration/e2e"
)

// usePair starts Downpour and VictoriaMetrics on empty storage and puts the data
// set into both by telnet, in time order.
func (s *stage) usePair(ctx context.Context, scale string) error {
	// A pair that runs has the data set already, from putFresh.
	if s.pair.victoria != nil && s.pair.scale == scale {
		return nil
	}
	if err := s.freshPair(ctx, scale); err != nil {
		return err
	}

	d := s.cfg.dataAt(scale)
	for _, server := range []*peer.Server{s.pair.victoria, s.pair.ours} {
		s.cfg.Progress.Sayf("loading %s: %s", server.Name, d)
		c := s.sending(server, d, workload.Telnet)
		if _, err := c.Send(ctx, c.Stream()); err != nil {
			return err
		}
	}

	return s.agreePair(ctx, d)
}

// freshPair ends the pair that runs and starts a new one on empty storage.
func (s *stage) freshPair(ctx context.Context, scale string) (err error) {
	s.dropPair()
	s.pair.scale = scale
	if s.pair.victoria, err = s.started(peer.StartVictoria(ctx)); err != nil {
		// The report tells why its rows are missing.
		s.cfg.Report.AddPeer(report.Peer{Name: peer.Victoria, Missing: err.Error()})
		return err
	}
	s.pair.ours, err = s.started(peer.StartDownpour(ctx, peer.Options{Env: s.cfg.ScanEnv}))
	return err
}

// sending returns how a data set is put to a server.
func (s *stage) sending(server *peer.Server, d workload.Data, format workload.Format) bench.SendConfig {
	return bench.SendConfig{Server: server, Data: d, Format: format, Connections: s.cfg.Connections}
}

// bucket is the width of a bucket in seconds. The times of queries to VictoriaMetrics
// vary by whole buckets, because it aligns all buckets to multiples of their width.
const bucket = 300

// agreePair waits until both give the same answer: VictoriaMetrics shows a point only
// a second or two after its put.
func (s *stage) agreePair(ctx context.Context, d workload.Devops) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	return e2e.Until(ctx, 200*time.Millisecond, func(ctx context.Context) error {
		return peer.Agree(ctx, s.pair.victoria, s.pair.ours, d.Whole("sum:5m-avg:%s"))
	})
}

// embedded measures the large query straight after loading.
func embedded(ctx context.Context, s *stage, g group) error {
	if err := s.usePair(ctx, g.scale); err != nil {
		return err
	}

	d := s.cfg.dataAt(g.scale)
	c := bench.PairConfig{A: s.pair.victoria, B: s.pair.ours, Queries: []workload.Query{d.Whole("sum:5m-avg:%s")},
		Rounds: s.cfg.roundsAt(g.scale), Slack: slack, Unit: bucket, Seed: s.cfg.Data.Seed, Prefix: g.scale + " own storage, ", Work: int64(d.Points())}
	steps, err := c.Steps(ctx)
	if err != nil {
		return err
	}

	figures, err := s.measure(ctx, s.pair.ours, steps, 1, c.Rounds)
	if err != nil {
		return err
	}

	s.aim(faster("embedded", g, "sum:5m-avg, embedded, straight after loading", 2.5, figures[c.Name(c.Queries[0], c.B)], figures[c.Name(c.Queries[0], c.A)], "VictoriaMetrics, own storage"))
	return nil
}

// maxPutRounds bounds how often a data set is put into fresh storage.
const maxPutRounds = 3

// telnet measures puts by telnet into fresh storage.
func telnet(ctx context.Context, s *stage, g group) error {
	rates, err := s.putFresh(ctx, g, workload.Telnet) // VictoriaMetrics', then ours
	if err != nil {
		return err
	}
	s.aim(s.rate("telnet", g, "put by telnet, embedded, durable", 0.5, rates[1], rates[0], "VictoriaMetrics"))
	s.aim(report.Aim{Row: "telnet", Scale: g.scale, What: "put by telnet, embedded, durable", AtLeast: true, Want: 600_000, Unit: "points/s", Figure: rates[1].Name,
		Got: report.Ratio{Median: rates[1].Rate()}})
	return nil
}

// overHTTP measures puts over HTTP into fresh storage.
func overHTTP(ctx context.Context, s *stage, g group) error {
	rates, err := s.putFresh(ctx, g, workload.JSON) // VictoriaMetrics', then ours
	if err != nil {
		return err
	}
	s.aim(s.rate("http", g, "put over HTTP, 1,000 points a request, embedded, durable", 1, rates[1], rates[0], "VictoriaMetrics over HTTP"))
	return nil
}

// rate returns the aim that our rate is at least want times theirs.
func (s *stage) rate(row string, g group, what string, want float64, ours, theirs report.Figure, against string) report.Aim {
	a := faster(row, g, what, want, ours, theirs, against)
	a.Ours, a.Theirs = report.Thousands(ours.Rate())+" points/s", report.Thousands(theirs.Rate())+" points/s"
	return a
}

// putFresh puts the data set into both, on fresh storage each round, and returns the
// figures of VictoriaMetrics and of Downpour. The text of the points is made
// beforehand. After each round both must give the same answer. The storage of the last
// round stays for queries.
func (s *stage) putFresh(ctx context.Context, g group, format workload.Format) ([2]report.Figure, error) {
	d := s.cfg.dataAt(g.scale)
	rounds := min(maxPutRounds, s.cfg.Rounds)
	s.cfg.Progress.Sayf("putting %s, %d rounds, %s", d, rounds, format)
	payload := s.sending(nil, d, format).Spell()

	var figures [2]report.Figure
	for i, name := range []string{peer.Victoria, peer.Downpour} {
		figures[i] = report.Figure{Name: fmt.Sprintf("%s put, %s, %s", g.scale, format, name), Work: int64(d.Points()), Unit: "points"}
	}

	figures[1].Of = figures[0].Name

	for round := range rounds {
		if err := s.freshPair(ctx, g.scale); err != nil {
			return figures, err
		}

		// Each round begins with the other one.
		for n := range 2 {
			i := (n + round) % 2
			server := []*peer.Server{s.pair.victoria, s.pair.ours}[i]
			took, err := s.sending(server, d, format).Send(ctx, payload)
			if err != nil {
				return figures, err
			}
			figures[i].Runs = append(figures[i].Runs, took)
		}

		if err := s.agreePair(ctx, d); err != nil {
			return figures, err
		}
	}

	s.cfg.Report.Figures = append(s.cfg.Report.Figures, figures[:]...)
	s.keepAs(figures[1].Name, s.timed(repeatable{
		server: func(ctx context.Context) (*peer.Server, error) {
			return peer.StartDownpour(ctx, peer.Options{Env: s.cfg.ScanEnv})
		},
		run: func(ctx context.Context, server *peer.Server, _ int) error {
			_, err := s.sending(server, d, format).Send(ctx, payload)
			return err
		},
		fresh: true,
	}))

	s.cfg.Report.Note("put into VictoriaMetrics ends with the close of the connection, which says that the points are read; it promises nothing about a disk. Downpour's close says that they are durable.")
	return figures, nil
}

// bytesStored compares what a point takes on disk: in HBase, in rows compacted as by
// OpenTSDB, and in the embedded store once that has come to rest.
func bytesStored(ctx context.Context, s *stage, g group) error {
	// The bytes in HBase are measured when the tables are filled, usually by an earlier group.
	if s.hbaseBytes == 0 {
		if _, err := s.useSet(ctx, g); err != nil {
			return err
		}
	}

	d := s.cfg.dataAt(g.scale)
	ours, err := s.started(peer.StartDownpour(ctx, peer.Options{Env: s.cfg.ScanEnv}))
	if err != nil {
		return err
	}
	defer ours.Close()

	c := s.sending(ours, d, workload.Telnet)
	if _, err := c.Send(ctx, c.Stream()); err != nil {
		return err
	}
	size, err := quiet(ctx, filepath.Join(ours.Dir, "data"))
	if err != nil {
		return err
	}

	bytes := float64(size) / float64(d.Points())
	s.aim(report.Aim{Row: "bytes", Scale: g.scale, What: "bytes stored per point, embedded, at rest", Against: "OpenTSDB compacted, HBase files", Want: 1,
		Got: single(bytes / s.hbaseBytes), Ours: fmt.Sprintf("%.2f B", bytes), Theirs: fmt.Sprintf("%.2f B", s.hbaseBytes)})
	return nil
}

// single is the ratio of a measurement without rounds.
func single(x float64) report.Ratio { return report.Ratio{Median: x, Low: x, High: x} }

// quiet waits until the size of a directory has not changed for some seconds, and
// returns it.
func quiet(ctx context.Context, dir string) (size int64, err error) {
	const still, patience = 8 * time.Second, 90 * time.Second
	end, since := time.Now().Add(patience), time.Now()
	if size, err = treeBytes(dir); err != nil {
		return 0, err
	}

	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for time.Since(since) < still {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}

		now, err := treeBytes(dir)
		if err != nil {
			return 0, err
		}
		if now != size {
			size, since = now, time.Now()
		}

		if time.Now().After(end) {
			return 0, errors.New("the embedded store did not come to rest within " + patience.String())
		}
	}

	return size, nil
}
