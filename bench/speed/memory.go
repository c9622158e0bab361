package speed

import (
	"context"
	"fmt"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/write"
)

// memoryAsked is how often a gateway is asked: the second answer uses memory that
// the first has left, or it does not.
const memoryAsked = 2

// memory measures the gateway's peak of resident memory for a query over many
// points, and over a tenth of them, on the embedded store. Series and hours are
// the same, so that the answer is, and what is merged for it.
func memory(ctx context.Context, s *stage, g group) error {
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
		points[i], peaks[i] = report.Thousands(float64(d.Points())), float64(peak)/(1<<20)
	}

	// d is the larger data set now.
	what := fmt.Sprintf("memory of the gateway for a query over %s points", points[1])
	s.keepAs(what, func(ctx context.Context) (report.Profile, error) { return s.memoryProfile(ctx, d) })
	s.aim(report.Aim{Row: "memory", Scale: g.scale, What: what, Want: 512, Unit: "MiB", Got: single(peaks[1]), Figure: what})
	s.aim(report.Aim{Row: "memory", Scale: g.scale, What: "the same", Against: fmt.Sprintf("over %s points in as many hours", points[0]), Want: 1.5,
		Got: single(peaks[1] / peaks[0]), Ours: fmt.Sprintf("%.0f MiB", peaks[1]), Theirs: fmt.Sprintf("%.0f MiB", peaks[0]), Figure: what})
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
	err = s.onRows(ctx, d, func(dir string) error {
		return s.onGateway(ctx, dir, d, func(ours *peer.Server, ask func() error) error {
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

// onRows loads a data set straight as rows for as long as do runs; dir is where a
// gateway finds them.
func (s *stage) onRows(ctx context.Context, d workload.Devops, do func(dir string) error) error {
	dir, err := tempDir()
	if err != nil {
		return err
	}
	defer dir.remove()
	if err := s.fillEmbedded(ctx, dir.store(), d); err != nil {
		return err
	}
	return do(dir.path)
}

// fillEmbedded writes a data set as rows into the store at an address.
func (s *stage) fillEmbedded(ctx context.Context, address string, d workload.Devops) error {
	st, err := s.cfg.Open(address)
	if err != nil {
		return err
	}
	defer st.Close()
	return bench.Fill(ctx, st, encoding.DefaultSchema(), "tsdb", d, write.Appended, nil)
}

// onGateway calls do with a gateway of its own over the rows in dir, and ends it; ask asks
// the large query memoryAsked times.
func (s *stage) onGateway(ctx context.Context, dir string, d workload.Devops, do func(ours *peer.Server, ask func() error) error) error {
	ours, err := s.started(peer.StartDownpour(ctx, peer.Options{Dir: dir}))
	if err != nil {
		return err
	}
	defer ours.Close()
	return do(ours, func() (err error) {
		for range memoryAsked {
			if err == nil {
				err = ours.Drain(ctx, d.Whole("sum:5m-avg:%s"))
			}
		}
		return err
	})
}

// memoryEvery is the time between two looks at a gateway's memory.
const memoryEvery = 25 * time.Millisecond

// memoryProfile asks again, and looks at the gateway's memory meanwhile: at what
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

	err := s.onRows(ctx, d, func(dir string) error {
		// Each kind has a gateway of its own: the garbage that the second one collects would be
		// missing from what the first one finds.
		for _, look := range looks {
			err := s.onGateway(ctx, dir, d, func(ours *peer.Server, ask func() error) error {
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
