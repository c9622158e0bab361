package builds

import (
	"context"
	"fmt"
	"time"

	"downpour/bench/live"
	"downpour/bench/report"
)

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
