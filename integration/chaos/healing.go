package chaos

import (
	"context"
	"slices"
	"time"

	"downpour/integration/e2e"
)

// hbaseReady waits until HBase has every region online on the servers that live, and
// its own client reads every row: before that nobody can be whole.
func (w *world) hbaseReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	live := w.cluster.Len() - len(w.dead)
	return w.tended(ctx, func(ctx context.Context) error {
		return e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
			if err := w.cluster.Admin.Ready(ctx, live); err != nil {
				return err
			}
			return w.readable(ctx)
		})
	})
}

// readable reads every row of the sites.
func (w *world) readable(ctx context.Context) error {
	for _, s := range w.sites {
		for _, table := range []string{s.Tables.UID, s.Tables.Data} {
			if _, err := w.cluster.Admin.Scan(ctx, table); err != nil {
				return err
			}
		}
	}
	return nil
}

// tend starts the region servers again that a fault has killed, or that HBase has declared dead,
// and waits until HBase has them.
func (w *world) tend(ctx context.Context) error {
	for _, i := range w.dead {
		w.cluster.KillRegionServer(i) // one that was declared dead may be slow to go
		if err := w.cluster.StartRegionServer(ctx, i); err != nil {
			return err
		}
	}
	w.dead = nil
	return w.hbaseReady(ctx)
}

// servers are HBase's processes, as far as the code that restarts them has to know them.
type servers interface {
	MasterDone() <-chan struct{}
	StartMaster(ctx context.Context) error
	Len() int // region servers
	RegionServerDone(i int) <-chan struct{}
	StartRegionServer(ctx context.Context, i int) error
}

// tendEvery is the time between two looks at the servers while something is waited for.
const tendEvery = 100 * time.Millisecond

// tended waits for something of HBase and in the meantime restarts servers that end by themselves: without
// them it would never come. Once a fault has done its harm, all its waiting is done this way: on a busy
// machine a server's session may end in any pause, and the server itself some time later.
func (w *world) tended(ctx context.Context, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- wait(ctx) }()
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		if err := w.revive(ctx); err != nil {
			cancel()
			<-done
			return err
		}
	}
}

// revive starts the servers that have ended by themselves: all that have ended but those of w.dead. What is asked
// from then on is entered under a fault of its own.
func (w *world) revive(ctx context.Context) error {
	found := w.revived
	if ended(w.servers.MasterDone()) {
		w.revived++
		if err := w.servers.StartMaster(ctx); err != nil {
			return err
		}
	}
	for i := range w.servers.Len() {
		if slices.Contains(w.dead, i) || !ended(w.servers.RegionServerDone(i)) {
			continue
		}
		w.revived++
		if err := w.servers.StartRegionServer(ctx, i); err != nil {
			return err
		}
	}
	if w.revived > found {
		w.now.Store(&endedItself)
		w.Logf("%d servers of HBase have ended by themselves and are started again", w.revived-found)
	}
	return nil
}

// endedItself is what goes on when a server has ended by itself, until all is whole again.
var endedItself = fault{name: "server ended by itself"}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
