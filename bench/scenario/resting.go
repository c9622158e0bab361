package scenario

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/encoding"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// putAndSeal puts the data set into both systems, and has the embedded store seal it.
func putAndSeal(ctx context.Context, s *stage) error {
	if err := putIntoBoth(ctx, s); err != nil {
		return err
	}
	if err := s.set.at.Stop(); err != nil {
		return err
	}
	return s.opened(s.set.at, func(st store.Store) error { return s.seal(ctx, st) })
}

// fillAndSeal writes the data set straight into the embedded store, and seals it.
func fillAndSeal(ctx context.Context, s *stage) error {
	return s.opened(s.set.at, func(st store.Store) error {
		err := bench.Fill(ctx, st, encoding.DefaultSchema(), "tsdb", s.set.data, write.Appended, nil)
		if err != nil {
			return err
		}
		return s.seal(ctx, st)
	})
}

// seal writes all rows of the data set in their compact form, as DOWNPOUR_SEAL does in the background.
func (s *stage) seal(ctx context.Context, st store.Store) error {
	s.cfg.Progress.Sayf("sealing %s", s.set.name)
	done, err := st.Features().Seal(ctx, "tsdb", time.Time{}, time.Now(), func(store.SealReport) error { return nil })
	if err == nil && done.Sealed != rowsIn(s.set.data) {
		err = fmt.Errorf("got %+v, want %d rows sealed", done, rowsIn(s.set.data))
	}
	return err
}

// bytesAtRest compares, as a row, what both systems take on disk once they have come to rest.
func bytesAtRest(row string) func(ctx context.Context, s *stage) error {
	return func(ctx context.Context, s *stage) error {
		if err := s.use(ctx); err != nil {
			return err
		}
		servers, err := s.sides(ctx, onOwn)
		if err != nil {
			return err
		}
		var disk [2]float64
		for i, server := range servers {
			dir := server.Dir
			if server.Name == peer.Downpour {
				dir = filepath.Join(s.set.at.Dir, "data")
			}
			size, err := quiet(ctx, dir)
			if err != nil {
				return fmt.Errorf("%s: %w", server.Name, err)
			}
			disk[i] = float64(size) / float64(s.set.data.Points())
		}
		what := fmt.Sprintf("bytes stored per point of %s, embedded, sealed, at rest", s.set.data.Metric())
		s.cfg.add(s.amounts(row, what, "VictoriaMetrics, own storage", 1, disk[1], disk[0], inBytes))
		return nil
	}
}

// pause is longer than any server here waits before it gives memory back.
const pause = 30 * time.Second

// memoryAtRest compares resident memory, straight after queries and once both systems have had a pause.
func memoryAtRest(ctx context.Context, s *stage) error {
	if err := compareMemory(ctx, s, "straight after these queries"); err != nil {
		return err
	}
	s.cfg.Progress.Sayf("a pause of %v", pause)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
	}
	return compareMemory(ctx, s, fmt.Sprintf("%v after these queries", pause))
}

func compareMemory(ctx context.Context, s *stage, when string) error {
	servers, err := s.sides(ctx, onOwn)
	if err != nil {
		return err
	}
	var memory [2]float64
	for i, server := range servers {
		m, err := server.Process.Memory()
		if err != nil {
			return err
		}
		memory[i] = float64(m.Resident)
	}
	s.cfg.add(s.amounts("rest", "resident memory "+when, "VictoriaMetrics", 1.2,
		memory[1], memory[0], inMiB))
	return nil
}
