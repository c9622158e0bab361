package chaos

import (
	"context"
	"slices"
	"time"

	"downpour/integration/e2e"
)

// ready waits until HBase has every region online on the servers that live, and
// its own client reads every row: before that nobody can be whole.
func (w *world) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := w.cluster.WaitReady(ctx, w.cluster.Len()-len(w.dead)); err != nil {
		return err
	}
	return e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		for _, s := range w.sites {
			for _, table := range []string{s.Tables.UID, s.Tables.Data} {
				if _, err := w.cluster.Admin.Scan(ctx, table); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// tend starts dead region servers again and waits until HBase has them.
func (w *world) tend(ctx context.Context) error {
	for i := range w.cluster.Len() {
		select {
		case <-w.cluster.RegionServerDone(i):
			if !slices.Contains(w.dead, i) {
				w.dead = append(w.dead, i) // its session ended in a pause
			}
		default:
		}
	}
	for _, i := range w.dead {
		w.cluster.KillRegionServer(i) // one that was declared dead may be slow to go
		if err := w.cluster.StartRegionServer(ctx, i); err != nil {
			return err
		}
	}
	w.dead = nil
	return w.ready(ctx)
}
