package builds

import (
	"context"
	"fmt"
	"time"

	"downpour/bench/live"
	"downpour/bench/report"
)

// A turn puts frameShown points and waits for each at all sockets, which takes a
// second, so there are few turns.
const (
	frameQueries = 4
	frameSockets = 20
	frameShown   = 5
	frameTurns   = 2
)

// measureFrames measures the time from a put to its frame at every socket, and the
// processor time that it costs to keep the live queries up to date.
func (o *round) measureFrames(ctx context.Context) error {
	samples, err := o.alternate(min(frameTurns, o.cfg.Turns), func(s *side, _ int) (sample, error) {
		one, err := s.timed(func() (time.Duration, error) {
			f, err := live.Frames(ctx, live.FramesConfig{
				Server:  s.server,
				Sockets: frameSockets,
				Plans:   frameQueries,
				Puts:    frameShown,
			})
			return f.Took, err
		})
		one.amount /= frameShown
		one.processor /= frameShown
		return one, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", frames, err)
	}

	what := fmt.Sprintf("put to frame at %d sockets on %d live queries", frameSockets, frameQueries)
	if o.cfg.wants(frames) {
		o.rows.entry(frames, o.scene.name, what, report.Seconds).add(samples)
	}

	// A frame waits for the next tick most of the time, so only the processor time
	// shows what a tick costs.
	if o.cfg.wants(framesCost) {
		o.rows.entry(framesCost, o.scene.name, what+", processor time", report.Seconds).add(costs(samples))
	}
	return nil
}

// costs returns samples whose amounts are the processor times.
func costs(samples [2][]sample) (out [2][]sample) {
	for i, all := range samples {
		for _, s := range all {
			out[i] = append(out[i], sample{amount: s.processor.Seconds()})
		}
	}
	return out
}
