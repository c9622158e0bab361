package background

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

// serverLease is the name of the lease that a worker next to a region server holds while it lives,
// so that others leave that server's regions to it.
func serverLease(table, server string) string {
	return fmt.Sprintf("compact-beside/%s/%s", table, server)
}

// holdServer holds that lease until ctx ends, or waits for it while another worker next to the same
// server has it.
func (w *Worker) holdServer(ctx context.Context) {
	for ctx.Err() == nil {
		l, ok, _ := w.cfg.Leases.Try(ctx, serverLease(w.cfg.Table, w.cfg.Beside))
		if ok {
			// It ends with ctx, or when it is lost: then it is taken again.
			_ = l.Do(ctx, func(under context.Context) error {
				<-under.Done()
				return nil
			})
		}
		_ = wait.For(ctx, heldWait)
	}
}

// dead are the dead holders of leases of other region servers.
type dead struct {
	mu      sync.Mutex
	holders map[string]bool
}

func (d *dead) set(holders map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holders = holders
}

func (d *dead) has(holder string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.holders[holder]
}

// findUnattended sets unattended, the other region servers that have no living worker, and dead, the workers that were
// there: their leases on regions may be taken at once, see lease.Keeper.
func (w *Worker) findUnattended(ctx context.Context) error {
	w.looked = time.Now()
	others := map[string]bool{}
	for _, r := range w.all {
		if r.Server != "" && r.Server != w.cfg.Beside {
			others[r.Server] = true
		}
	}
	servers := slices.Sorted(maps.Keys(others))
	if len(servers) == 0 {
		w.unattended = nil
		w.dead.set(nil)
		return nil
	}

	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = serverLease(w.cfg.Table, s)
	}
	sights, err := w.cfg.Leases.Statuses(ctx, names)
	if err != nil {
		return err
	}
	w.unattended = map[string]bool{}
	holders := map[string]bool{}
	for i, s := range servers {
		switch {
		case !sights[i].Held:
			w.unattended[s] = true
		case sights[i].Expired:
			w.unattended[s] = true
			holders[sights[i].Holder] = true
		}
	}
	w.dead.set(holders)
	return nil
}

// mine reports whether a region is this worker's: all are if it has no region server, else those of
// that server and of servers without a living worker.
func (w *Worker) mine(r store.Region) bool {
	return w.cfg.Beside == "" || r.Server == w.cfg.Beside || w.unattended[r.Server]
}
