package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/place"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// memoryAsked is how often a gateway is asked: the second answer uses memory that
// the first has left, or it does not.
const memoryAsked = 2

// memory measures the gateway's peak of resident memory for a query over many
// points, and over a tenth of them, on the embedded store. Series and hours are
// the same, so that the answer is, and what is merged for it.
func memory(ctx context.Context, s *stage) error {
	var peaks [2]float64
	var points [2]string
	d := s.cfg.Data
	d.Hours = s.cfg.MemoryHours
	for i, step := range memorySteps(d.Step) {
		d.Step = step
		peak, err := s.peak(ctx, d)
		if err != nil {
			return err
		}
		points[i], peaks[i] = report.Thousands(float64(d.Points())), float64(peak)
	}

	// d is the larger data set now.
	what := fmt.Sprintf("memory of the gateway for a query over %s points", points[1])
	s.keepAs(what, func(ctx context.Context) (report.Profile, error) { return s.memoryProfile(ctx, d) })
	s.cfg.add(report.Aim{
		Row: "memory", Scale: s.group.scale, What: what, Figure: what,
		Want: 512, Unit: "MiB", Got: report.Single(peaks[1] / (1 << 20)),
	})
	fewer := fmt.Sprintf("over %s points in as many hours", points[0])
	grown := s.amounts("memory", "the same", fewer, 1.5, peaks[1], peaks[0], inMiB)
	grown.Figure = what
	s.cfg.add(grown)
	return nil
}

// memorySteps are the seconds between two points of the smaller data set and of
// the larger, which has ten times the points: those of the data set at 1x and a
// tenth, or about that where a step would be no divisor of an hour.
func memorySteps(step int) [2]int {
	for short := max(step/10, 1); ; short-- {
		if 3600%(10*short) == 0 {
			return [2]int{10 * short, short}
		}
	}
}

// peak is the most memory, in bytes, that a gateway ever had that was asked one
// large query over a data set.
func (s *stage) peak(ctx context.Context, d workload.Devops) (peak int64, err error) {
	s.cfg.Progress.Sayf("memory: loading %s", d)
	err = s.onRows(ctx, d, func(at *place.Place) error {
		return s.onGateway(ctx, at, d, func(ours *peer.Server, ask func() error) error {
			if err := ask(); err != nil {
				return err
			}
			m, err := ours.Process.Memory()
			peak = m.Peak
			return err
		})
	})
	return peak, err
}

// onRows loads a data set straight as rows of an embedded store for as long as do runs; dir is where a
// gateway finds them.
func (s *stage) onRows(ctx context.Context, d workload.Devops, do func(at *place.Place) error) error {
	at, err := s.maker.Embedded()
	if err != nil {
		return err
	}
	defer at.Drop()
	err = s.opened(at, func(st store.Store) error {
		return bench.Fill(ctx, st, encoding.DefaultSchema(), "tsdb", d, write.Appended, nil)
	})
	if err != nil {
		return err
	}
	return do(at)
}

// opened opens the embedded store of a place where no gateway runs, for as long as do runs.
func (s *stage) opened(at *place.Place, do func(st store.Store) error) error {
	st, err := s.cfg.Open(at.Address())
	if err != nil {
		return err
	}
	return errors.Join(do(st), st.Close())
}

// onGateway calls do with a gateway of its own over a place, and ends it; ask asks
// the large query memoryAsked times.
func (s *stage) onGateway(
	ctx context.Context, at *place.Place, d workload.Devops, do func(server *peer.Server, ask func() error) error,
) error {
	server, err := s.sideAt(ctx, at, users)
	if err != nil {
		return err
	}
	err = do(server, func() (err error) {
		for range memoryAsked {
			if err == nil {
				err = server.Drain(ctx, d.Whole(sum))
			}
		}
		return err
	})
	return errors.Join(err, at.Stop())
}

// memoryEvery is the time between two looks at a gateway's memory.
const memoryEvery = 25 * time.Millisecond

// memoryProfile asks again, and in the meantime looks at the gateway's memory: at what
// it consists of, and, in a gateway whose garbage is collected for each look, at
// which functions hold it. The profile keeps of either kind the look that found the most.
func (s *stage) memoryProfile(ctx context.Context, d workload.Devops) (report.Profile, error) {
	p := report.Profile{Runs: memoryAsked}
	var heaps []peer.Heap
	looks := []func(*peer.Server) error{
		func(ours *peer.Server) error {
			bytes, parts, err := ours.Resident(ctx)
			if bytes > p.Bytes {
				p.Bytes, p.Parts = bytes, parts
			}
			return err
		},
		func(ours *peer.Server) error {
			h, err := ours.Heap(ctx)
			heaps = append(heaps, h)
			return err
		},
	}

	err := s.onRows(ctx, d, func(at *place.Place) error {
		// Each kind has a gateway of its own: the garbage that the second one collects would be
		// missing from what the first one finds.
		for _, look := range looks {
			err := s.onGateway(ctx, at, d, func(ours *peer.Server, ask func() error) error {
				return observe(ask, memoryEvery, func() error { return look(ours) })
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		p.Functions, err = mostHeld(heaps)
	}

	return p, err
}

// mostHeld is what functions held at the moment when it was most.
func mostHeld(heaps []peer.Heap) (functions []report.Share, err error) {
	most := int64(-1)
	for _, h := range heaps {
		all, sum, err := h.Held()
		if err != nil {
			return nil, err
		}
		if sum > most {
			functions, most = all, sum
		}
	}
	return functions, nil
}

// observe looks again and again while do runs, and once when it has ended.
func observe(do func() error, every time.Duration, look func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var failed error
	for {
		select {
		case err := <-ended:
			if err == nil {
				err = failed
			}
			if err == nil {
				err = look()
			}
			return err
		case <-tick.C:
			if failed == nil { // after a look that failed only the end of do is waited for
				failed = look()
			}
		}
	}
}
