package chaos

import (
	"context"
	"errors"
	"time"

	"downpour/integration/e2e"
)

// sessionTimeout is the cluster's ZooKeeper session: what pauses longer is
// declared dead.
const sessionTimeout = 6 * time.Second

func killMaster(ctx context.Context, w *world) (string, error) {
	w.cluster.KillMaster()
	w.pause(ctx, 3*time.Second)
	if err := w.cluster.StartMaster(ctx); err != nil {
		return "", err
	}
	return "", w.hbaseReady(ctx)
}

// pauseRegionServer stops one for less than its session, as a long collection
// of garbage does.
func pauseRegionServer(ctx context.Context, w *world) (string, error) {
	i := w.rng.IntN(w.cluster.Len())
	if err := w.cluster.PauseRegionServer(i); err != nil {
		return "", err
	}
	w.pause(ctx, sessionTimeout/2)
	return w.cluster.RegionServerAddr(i), w.cluster.ResumeRegionServer(i)
}

// hangRegionServer stops one until its regions have been given to others; when
// it goes on it finds itself declared dead.
func hangRegionServer(ctx context.Context, w *world) (string, error) {
	i, err := w.victim(ctx)
	if err != nil {
		return "", err
	}
	detail := w.cluster.RegionServerAddr(i)
	if err := w.cluster.PauseRegionServer(i); err != nil {
		return detail, err
	}
	w.dead = append(w.dead, i)
	err = w.hbaseReady(ctx)
	return detail, errors.Join(err, w.cluster.ResumeRegionServer(i))
}

func killRegionServer(ctx context.Context, w *world) (string, error) {
	i, err := w.victim(ctx)
	if err != nil {
		return "", err
	}
	w.cluster.KillRegionServer(i)
	w.dead = append(w.dead, i)
	return w.cluster.RegionServerAddr(i), w.hbaseReady(ctx)
}

// loseMachine kills a region server and the pushdown servers next to it.
func loseMachine(ctx context.Context, w *world) (string, error) {
	i, err := w.victim(ctx)
	if err != nil {
		return "", err
	}
	w.cluster.KillRegionServer(i)
	w.dead = append(w.dead, i)
	var beside []*e2e.Program
	for _, s := range w.sites {
		s.Pushdown[i].Process.Kill()
		beside = append(beside, s.Pushdown[i])
	}
	return w.cluster.RegionServerAddr(i), errors.Join(w.hbaseReady(ctx), restart(ctx, beside))
}

// victim chooses a region server to die, every other time the one with
// hbase:meta. Unless logs survive their server, it first flushes what is in them
// alone, so that no acknowledged row is lost.
func (w *world) victim(ctx context.Context) (int, error) {
	i := w.rng.IntN(w.cluster.Len())
	if w.rng.IntN(2) == 0 {
		regions, err := w.regions(ctx, "hbase:meta")
		if err != nil {
			return 0, err
		}
		for k := range w.cluster.Len() {
			if w.cluster.RegionServerAddr(k) == regions[0].Server {
				i = k
			}
		}
	}
	if w.cluster.Durable() {
		return i, nil
	}

	return i, w.tended(ctx, func(ctx context.Context) error {
		for _, s := range w.sites {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
		return w.cluster.Admin.Flush(ctx, "hbase:meta")
	})
}

// pauseZooKeeper stops ZooKeeper for less than the sessions.
func pauseZooKeeper(ctx context.Context, w *world) (string, error) {
	if err := w.cluster.PauseZooKeeper(); err != nil {
		return "", err
	}
	w.pause(ctx, sessionTimeout/3)
	return "", w.cluster.ResumeZooKeeper()
}

// killZooKeeper takes it away for a while; the sessions live on in its files.
func killZooKeeper(ctx context.Context, w *world) (string, error) {
	w.cluster.KillZooKeeper()
	w.pause(ctx, sessionTimeout/3)
	return "", w.cluster.StartZooKeeper(ctx)
}
