package builds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"downpour/bench"
	"downpour/bench/live"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/integration/e2e"
)

// round is one round on one store: both builds, A first.
type round struct {
	*run
	scene scene
	index int // from 0
	sides [2]*side
}

// play plays one round on one store.
func (r *run) play(ctx context.Context, s scene, index int) (err error) {
	o := &round{run: r, scene: s, index: index}
	defer func() {
		for _, side := range o.sides {
			r.drop(side)
		}
	}()
	for i, b := range []Build{r.cfg.A, r.cfg.B} {
		if o.sides[i], err = r.open(ctx, b, s); err != nil {
			return err
		}
	}

	// The servers start anew for each, so that neither settings nor what the
	// work before has left in memory is carried over.
	if err := o.live(ctx, phase{}, o.load); err != nil {
		return fmt.Errorf("puts: %w", err)
	}
	if err := o.live(ctx, phase{uncached: true}, o.askUncached); err != nil {
		return fmt.Errorf("queries: %w", err)
	}
	if s.pushdown {
		if err := o.live(ctx, phase{uncached: true, pushdown: true}, o.askPushdown); err != nil {
			return fmt.Errorf("queries by pushdown: %w", err)
		}
	}
	if err := o.live(ctx, phase{}, o.askAgain); err != nil {
		return fmt.Errorf("queries again: %w", err)
	}
	return nil
}

// live runs the servers of both for as long as do runs.
func (o *round) live(ctx context.Context, p phase, do func(context.Context) error) error {
	for _, s := range o.sides {
		if err := s.start(ctx, p); err != nil {
			return err
		}
	}
	if err := do(ctx); err != nil {
		return err
	}
	return errors.Join(o.sides[0].stop(), o.sides[1].stop())
}

// inTurn measures both builds, one after the other, A B B A, and returns the
// samples of each.
func (o *round) inTurn(turns int, measure func(s *side, turn int) (sample, error)) (samples [2][]sample, err error) {
	for turn := range turns {
		for n := range o.sides {
			// The next round begins with the other build, so that with one
			// turn, too, each is as often the first.
			i := (n + turn + o.index) % len(o.sides)
			one, err := measure(o.sides[i], turn)
			if err != nil {
				return samples, fmt.Errorf("build %s: %w", o.sides[i].build.Name, err)
			}
			samples[i] = append(samples[i], one)
		}
	}
	return samples, nil
}

// load puts the data set by telnet, and on an embedded store more of it by HTTP,
// and takes the peak of memory.
func (o *round) load(ctx context.Context) error {
	if err := o.putNames(ctx); err != nil {
		return err
	}
	if err := o.put(ctx, putTelnet, "by telnet", workload.Telnet, o.cfg.Data); err != nil {
		return err
	}
	if !o.scene.hbase && o.cfg.wants(putHTTP) {
		// Hours of its own, for the queries know only the first.
		d := o.cfg.Data
		d.Start = d.End()
		if err := o.put(ctx, putHTTP, "over HTTP, 1,000 points a request", workload.JSON, d); err != nil {
			return err
		}
	}
	if err := o.peaks(memoryPut, o.scene.name, "memory of the gateway while points are put, peak"); err != nil {
		return err
	}
	if !o.scene.hbase {
		return nil
	}

	// What HBase does with its files by itself must not fall into the one
	// build's time.
	for _, s := range o.sides {
		if err := o.hbase.Admin.Compact(ctx, s.tables.Data); err != nil {
			return err
		}
	}
	return nil
}

// putNames puts a point of each series, one after the other: names have the same
// UIDs in both then, and so rows and answers the same order.
func (o *round) putNames(ctx context.Context) error {
	d := o.cfg.Data
	d.Start, d.Hours, d.Step = d.Start-3600, 1, 3600
	for _, s := range o.sides {
		c := bench.SendConfig{Server: s.server, Data: d, Format: workload.Telnet, Connections: 1}
		if _, err := c.Send(ctx, c.Stream()); err != nil {
			return err
		}
	}
	return nil
}

// put puts a data set into both, each when nothing is left to do of what was put
// before. The points are spelled beforehand.
func (o *round) put(ctx context.Context, row, how string, format workload.Format, d workload.Devops) error {
	payload := bench.SendConfig{Data: d, Format: format, Connections: o.cfg.Connections}.Spell()
	samples, err := o.inTurn(1, func(s *side, _ int) (sample, error) {
		if err := o.rest(ctx); err != nil {
			return sample{}, err
		}
		return s.put(ctx, d, o.cfg.Connections, payload, format)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", row, err)
	}

	if o.cfg.wants(row) {
		what := fmt.Sprintf("put %s points %s", report.Thousands(float64(d.Points())), how)
		o.ledger.entry(row, o.scene.name, what, report.Seconds).add(samples)
	}
	return nil
}

// peaks takes the peaks of memory.
func (o *round) peaks(row, store, what string) error {
	if !o.cfg.wants(row) {
		return nil
	}
	samples, err := o.inTurn(1, func(s *side, _ int) (sample, error) { return s.peak() })
	if err != nil {
		return fmt.Errorf("%s: %w", row, err)
	}
	o.ledger.entry(row, store, what, report.Bytes).add(samples)
	return nil
}

// askUncached asks everything that reads every row.
func (o *round) askUncached(ctx context.Context) error {
	return o.askAll(ctx, o.scene.name, "memory of the gateway while it is asked, peak")
}

// askPushdown asks the same, answered by pushdown servers.
func (o *round) askPushdown(ctx context.Context) error {
	return o.askAll(ctx, "HBase, pushdown", "memory of gateway and pushdown server, peaks")
}

func (o *round) askAll(ctx context.Context, store, memory string) error {
	if err := o.rest(ctx); err != nil {
		return err
	}
	for _, s := range o.sides {
		for _, p := range s.processes() {
			if err := p.ResetPeak(); err != nil {
				// They have just been started, so that is about the same.
				o.cfg.Report.Note("peaks of memory of queries count from the start of the process: %v", err)
			}
		}
	}
	for _, q := range questions {
		if err := o.ask(ctx, store, q); err != nil {
			return err
		}
	}
	return o.peaks(memoryQueries, store, memory)
}

// askAgain asks what gateways may remember, and follows live queries.
func (o *round) askAgain(ctx context.Context) error {
	if err := o.rest(ctx); err != nil {
		return err
	}
	for _, q := range again {
		if err := o.ask(ctx, o.scene.name, q); err != nil {
			return err
		}
	}
	// On HBase a point is shown within two seconds, which is how often it looks.
	if o.scene.hbase || !o.cfg.wants(frames) && !o.cfg.wants(framesCost) {
		return nil
	}
	return o.follow(ctx)
}

// ask measures a question. In the first round the answers of both are compared.
func (o *round) ask(ctx context.Context, store string, q question) error {
	if !o.cfg.wants(q.row) {
		return nil
	}
	e := o.ledger.entry(q.row, store, q.what, report.Seconds)
	if e.err != nil {
		return nil // they differed
	}
	if e.err = o.agree(ctx, q); e.err != nil {
		return ctx.Err()
	}

	longest, err := o.warm(ctx, q)
	if err != nil {
		return fmt.Errorf("%s: %w", q.row, err)
	}
	turns, count := o.cfg.divide(longest)
	samples, err := o.inTurn(turns, func(s *side, turn int) (sample, error) {
		return s.ask(ctx, q, o.cfg.Data, (o.index*o.cfg.Turns+turn)*count, count)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", q.row, err)
	}
	e.add(samples)
	return nil
}

// warm asks both a question that does not count yet, and returns how long it
// takes, the longer time of the two.
func (o *round) warm(ctx context.Context, q question) (longest time.Duration, err error) {
	for _, s := range o.sides {
		if _, err := s.ask(ctx, q, o.cfg.Data, 0, max(q.warm, 1)); err != nil {
			return 0, err
		}
		one, err := s.ask(ctx, q, o.cfg.Data, 0, 1)
		if err != nil {
			return 0, err
		}
		longest = max(longest, time.Duration(one.amount*float64(time.Second)))
	}
	return longest, nil
}

// most is how often a question is asked in one turn, at most.
const most = 200

// divide returns in how many turns a question is asked that takes so long, and
// how often in each: the same for both builds, or they would not do the same.
func (c *Config) divide(takes time.Duration) (turns, count int) {
	takes = max(takes, time.Microsecond)
	times := func(whole time.Duration) int { return int((whole + takes - 1) / takes) }

	// An even number, so that each build is first as often as second.
	turns = times(time.Duration(c.Turns) * c.TurnFor)
	turns += turns % 2
	return min(max(turns, 2), c.Turns), min(max(times(c.TurnFor), 1), most)
}

// agree compares the answers of both in the first round.
func (o *round) agree(ctx context.Context, q question) error {
	if o.index > 0 || q.opaque || q.accept != "" {
		return nil
	}
	for _, one := range q.of(o.cfg.Data, 0) {
		if err := peer.AgreeInValues(ctx, o.sides[0].server, o.sides[1].server, one); err != nil {
			return err
		}
	}
	return nil
}

// Live queries that are followed, by so many sockets, and how many points they
// are shown in a turn. It lasts a second, so there are few turns.
const (
	followed    = 4
	followers   = 20
	shown       = 5
	followTurns = 2
)

// follow measures the time from a put to its frame at every socket, and the
// processor time that it costs to keep them up to date.
func (o *round) follow(ctx context.Context) error {
	samples, err := o.inTurn(min(followTurns, o.cfg.Turns), func(s *side, _ int) (sample, error) {
		one, err := s.timed(func() (time.Duration, error) {
			f, err := live.Frames(ctx, live.FramesConfig{Server: s.server, Sockets: followers, Plans: followed, Puts: shown})
			return f.Took, err
		})
		one.amount /= shown
		one.processor /= shown
		return one, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", frames, err)
	}

	what := fmt.Sprintf("put to frame at %d sockets on %d live queries", followers, followed)
	if o.cfg.wants(frames) {
		o.ledger.entry(frames, o.scene.name, what, report.Seconds).add(samples)
	}
	// The time to a frame is mostly that to the next tick, which hides what a
	// tick costs.
	if o.cfg.wants(framesCost) {
		o.ledger.entry(framesCost, o.scene.name, what+", processor time", report.Seconds).add(costs(samples))
	}
	return nil
}

// costs makes the processor times of samples their amounts.
func costs(samples [2][]sample) (out [2][]sample) {
	for i, all := range samples {
		for _, s := range all {
			out[i] = append(out[i], sample{amount: s.processor.Seconds()})
		}
	}
	return out
}

// Servers are at rest when they use less than a twentieth of a processor for a
// quarter of a second. They are not waited for without end: what they do then is
// a part of how they are.
const (
	restFor   = 250 * time.Millisecond
	restShare = 20
	restAfter = 30 * time.Second
)

var errBusy = errors.New("still busy")

// rest waits until both builds' processes, and HBase's, have nothing to do.
func (o *round) rest(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, restAfter)
	defer cancel()
	used, err := o.used()
	if err != nil {
		return err
	}

	// The first look comes at once and finds nothing used since.
	began := time.Now()
	err = e2e.Until(limited, restFor, func(context.Context) error {
		passed := time.Since(began)
		now, err := o.used()
		if err != nil {
			return err
		}
		quiet := passed >= restFor/2 && now-used < passed/restShare
		used, began = now, time.Now()
		if !quiet {
			return errBusy
		}
		return nil
	})
	if errors.Is(err, errBusy) && ctx.Err() == nil {
		o.cfg.Report.Note("%s: the servers did not come to rest within %s", o.scene.name, restAfter)
		return nil
	}
	return err
}

// used is the processor time of all that works for the builds.
func (o *round) used() (sum time.Duration, err error) {
	for _, s := range o.sides {
		one, err := s.processor()
		if err != nil {
			return 0, err
		}
		sum += one
	}
	if o.scene.hbase {
		theirs, err := o.hbase.CPU()
		return sum + theirs, err
	}
	return sum, nil
}

// startHBase starts the one HBase: one region server, for there are two cores.
func (r *run) startHBase(ctx context.Context) error {
	if r.store != nil {
		return nil
	}
	version := e2e.Version("hbase")
	if r.hbase = r.cfg.HBase; r.hbase == nil {
		r.cfg.Progress.Sayf("starting HBase")
		h, err := e2e.StartHBase(ctx, e2e.HBaseOptions{RegionServers: 1, RegionServerMiB: 3072})
		if err != nil {
			return err
		}
		r.hbase, version = h, version+", one region server of 3 GiB"
	}
	r.cfg.Report.AddPeer(report.Peer{Name: peer.HBase, Version: version})

	var err error
	r.store, err = r.cfg.Open("hbase:" + r.hbase.Quorum())
	return err
}
