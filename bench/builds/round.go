package builds

import (
	"context"
	"errors"
	"fmt"

	"downpour/bench"
	"downpour/bench/place"
	"downpour/bench/report"
	"downpour/bench/workload"
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
		for _, s := range o.sides {
			if s != nil {
				s.at.Drop()
			}
		}
	}()

	for i, b := range []Build{r.cfg.A, r.cfg.B} {
		o.sides[i] = &side{build: b, scene: s}
		if o.sides[i].at, err = r.place(ctx, s); err != nil {
			return err
		}
	}

	// Each phase has new processes, so that neither settings nor memory of the phase
	// before has an effect on it.
	if err := o.withServers(ctx, phase{}, o.load); err != nil {
		return fmt.Errorf("puts: %w", err)
	}
	if err := o.withServers(ctx, phase{uncached: true}, o.askUncached); err != nil {
		return fmt.Errorf("queries: %w", err)
	}

	if s.pushdown {
		if err := o.withServers(ctx, phase{uncached: true, pushdown: true}, o.askPushdown); err != nil {
			return fmt.Errorf("queries by pushdown: %w", err)
		}
	}

	if err := o.withServers(ctx, phase{}, o.askAgain); err != nil {
		return fmt.Errorf("queries again: %w", err)
	}
	return nil
}

// place makes new storage of a scene.
func (r *run) place(ctx context.Context, s scene) (*place.Place, error) {
	if s.hbase {
		return r.maker.OnHBase(ctx, nil)
	}
	return r.maker.Embedded()
}

// withServers starts the servers of both builds, calls do, and ends the servers.
func (o *round) withServers(ctx context.Context, p phase, do func(context.Context) error) error {
	for _, s := range o.sides {
		if err := s.start(ctx, p); err != nil {
			return err
		}
	}
	if err := do(ctx); err != nil {
		return err // play drops the sides, and ends their servers by that
	}
	return errors.Join(o.sides[0].at.Stop(), o.sides[1].at.Stop())
}

// alternate measures both builds in turn, A B B A, and returns the samples of each.
func (o *round) alternate(turns int, measure func(s *side, turn int) (sample, error)) (samples [2][]sample, err error) {
	for turn := range turns {
		for n := range o.sides {
			// The next round begins with the other build, so that each is the first
			// equally often, even with one turn.
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

// load puts the data set by telnet, and on an embedded store more of it over HTTP. It
// measures the time and the peak of memory.
func (o *round) load(ctx context.Context) error {
	// First, and over one connection: names get the same UIDs in both builds.
	if err := o.putNames(ctx); err != nil {
		return err
	}
	if err := o.put(ctx, putTelnet, "by telnet", workload.Telnet, o.cfg.Data); err != nil {
		return err
	}

	if !o.scene.hbase && o.cfg.wants(putHTTP) {
		// Into hours that no query asks for.
		d := o.cfg.Data
		d.Start = d.End()
		if err := o.put(ctx, putHTTP, "over HTTP, 1,000 points a request", workload.JSON, d); err != nil {
			return err
		}
	}

	if err := o.peaks(memoryPut, o.scene.name, "memory of the gateway while points are put, peak"); err != nil {
		return err
	}

	// A compaction that HBase starts by itself would slow down the build that is asked
	// at that moment.
	return errors.Join(o.sides[0].at.Compact(ctx), o.sides[1].at.Compact(ctx))
}

// putNames puts one point of each series over a single connection, so that names have
// the same UIDs in both builds, and rows and answers the same order.
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

// put puts a data set into both builds, each after all work of earlier puts is done.
// The text of the points is made beforehand.
func (o *round) put(ctx context.Context, row, how string, format workload.Format, d workload.Devops) error {
	payload := bench.SendConfig{Data: d, Format: format, Connections: o.cfg.Connections}.Spell()
	samples, err := o.alternate(1, func(s *side, _ int) (sample, error) {
		if err := o.awaitIdle(ctx); err != nil {
			return sample{}, err
		}
		return s.put(ctx, d, o.cfg.Connections, payload, format)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", row, err)
	}

	if o.cfg.wants(row) {
		what := fmt.Sprintf("put %s points %s", report.Thousands(float64(d.Points())), how)
		o.rows.entry(row, o.scene.name, what, report.Seconds).add(samples)
	}
	return nil
}

// peaks records the peaks of memory.
func (o *round) peaks(row, store, what string) error {
	if !o.cfg.wants(row) {
		return nil
	}
	samples, err := o.alternate(1, func(s *side, _ int) (sample, error) { return s.peak() })
	if err != nil {
		return fmt.Errorf("%s: %w", row, err)
	}
	o.rows.entry(row, store, what, report.Bytes).add(samples)
	return nil
}
