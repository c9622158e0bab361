package chaos

import (
	"context"
	"errors"
	"slices"
	"time"

	"downpour/integration/e2e"
)

// hbaseReady waits until HBase has every region online on the servers that live, and
// its own client reads every row: before that nobody can be whole.
func (w *world) hbaseReady(ctx context.Context) error {
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

// errEnded is a region server that ended while others were waited for.
var errEnded = errors.New("a region server has ended")

// tend starts dead region servers again and waits until HBase has them. On a busy
// machine a server's session may end in a pause that was to be shorter, and the
// server itself some time later: it is started again as well.
func (w *world) tend(ctx context.Context) error {
	for {
		if err := w.startDead(ctx); err != nil {
			return err
		}
		watched, cancel := w.whileAllLive(ctx)
		err := w.hbaseReady(watched)
		ended := errors.Is(context.Cause(watched), errEnded)
		cancel()
		if !ended {
			return err
		}
	}
}

// startDead starts the region servers that have ended or were declared dead.
func (w *world) startDead(ctx context.Context) error {
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
	return nil
}

// whileAllLive makes a context that ends, because of errEnded, with the first
// region server that does.
func (w *world) whileAllLive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	for i := range w.cluster.Len() {
		done := w.cluster.RegionServerDone(i)
		go func() {
			select {
			case <-done:
				end(errEnded)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { end(nil) }
}
