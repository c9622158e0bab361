package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"downpour/integration/e2e"
)

// fault is one kind of harm. do harms, lasts as long as it has to, heals, and
// returns when it is healed: the harmed process runs, or HBase has every region
// online again. An error says that HBase would not do it.
type fault struct {
	name string
	mild bool // queries must hardly notice it
	do   func(ctx context.Context, w *world) (detail string, err error)
}

// faults are all kinds.
var faults = []fault{
	{"region split", true, split},
	{"regions merged", true, merge},
	{"region moved", true, move},
	{"hbase:meta moved", true, moveMeta},
	{"pushdown killed", true, killPushdown},
	{"pushdown hung", true, hangPushdown},
	{"pushdown drained", true, drainPushdown},
	{"all pushdown killed", true, killAllPushdown},
	{"master killed", true, killMaster},
	{"region server paused", false, pauseRegionServer},
	{"region server hung", false, hangRegionServer},
	{"region server killed", false, killRegionServer},
	{"machine lost", false, loseMachine},
	{"ZooKeeper paused", false, pauseZooKeeper},
	{"ZooKeeper killed", false, killZooKeeper},
}

// faultNamed is the fault of a name; a region server starts after one has been
// killed.
func faultNamed(name string) *fault {
	if name == started {
		name = "region server killed"
	}
	return &faults[slices.IndexFunc(faults, func(f fault) bool { return f.name == name })]
}

// started is the fault under which the return of a region server is entered.
const started = "region server started"

// sessionTimeout is the cluster's ZooKeeper session: what pauses longer is
// declared dead.
const sessionTimeout = 6 * time.Second

// mostRegions is where splitting ends.
const mostRegions = 12

func split(ctx context.Context, w *world) (string, error) {
	s := w.site()
	regions, err := w.cluster.Admin.Regions(ctx, s.Tables.Data)
	if err != nil {
		return "", err
	}
	if len(regions) >= mostRegions {
		return merge(ctx, w)
	}
	key := s.rows[w.rng.IntN(len(s.rows))]
	if w.rng.IntN(2) == 0 {
		key = key[:len(key)-1-w.rng.IntN(4)] // a key that is no row
	}
	return fmt.Sprintf("%s at %x", s.Tables.Data, key), w.cluster.Admin.Split(ctx, s.Tables.Data, key)
}

func merge(ctx context.Context, w *world) (string, error) {
	s := w.site()
	regions, err := w.cluster.Admin.Regions(ctx, s.Tables.Data)
	if err != nil {
		return "", err
	}
	if len(regions) < 3 {
		return split(ctx, w)
	}
	i := w.rng.IntN(len(regions) - 1)
	return fmt.Sprintf("%s at %x", s.Tables.Data, []byte(regions[i].Stop)),
		w.cluster.Admin.Merge(ctx, s.Tables.Data, regions[i].EncodedName, regions[i+1].EncodedName)
}

// move moves some regions of the data table, and the UID table's.
func move(ctx context.Context, w *world) (string, error) {
	s := w.site()
	for _, table := range []string{s.Tables.Data, s.Tables.Data, s.Tables.UID} {
		if detail, err := w.moveOne(ctx, table); err != nil {
			return detail, err
		}
	}
	return s.Tables.Data, nil
}

func moveMeta(ctx context.Context, w *world) (string, error) { return w.moveOne(ctx, "hbase:meta") }

// moveOne moves a region to another server.
func (w *world) moveOne(ctx context.Context, table string) (string, error) {
	regions, err := w.cluster.Admin.Regions(ctx, table)
	if err != nil {
		return table, err
	}
	region := regions[w.rng.IntN(len(regions))]
	for _, i := range w.rng.Perm(w.cluster.Len()) {
		if target := w.cluster.RegionServerAddr(i); target != region.Server {
			return fmt.Sprintf("%s from %s to %s", table, region.Server, target), w.cluster.Admin.Move(ctx, table, region.EncodedName, target)
		}
	}
	return table, errors.New("there is no other server")
}

// pushdown chooses a pushdown server.
func (w *world) pushdown() (p *e2e.Program, detail string) {
	s := w.site()
	i := w.rng.IntN(len(s.Pushdown))
	return s.Pushdown[i], fmt.Sprintf("%s, beside %s", s.Pushdown[i].Addr, s.cluster.RegionServerAddr(i))
}

func killPushdown(ctx context.Context, w *world) (string, error) {
	p, detail := w.pushdown()
	p.Process.Kill()
	w.last(ctx, w.upTo(9*time.Second))
	return detail, p.Restart(ctx)
}

// upTo is a random time, at least a tenth of d.
func (w *world) upTo(d time.Duration) time.Duration {
	return d/10 + time.Duration(w.rng.Int64N(int64(d)))
}

// killAllPushdown leaves a site's gateway to itself.
func killAllPushdown(ctx context.Context, w *world) (string, error) {
	s := w.site()
	for _, p := range s.Pushdown {
		p.Process.Kill()
	}
	w.last(ctx, w.upTo(5*time.Second))
	return s.Recording.Name, restart(ctx, s.Pushdown)
}

func restart(ctx context.Context, programs []*e2e.Program) (err error) {
	for _, p := range programs {
		err = errors.Join(err, p.Restart(ctx))
	}
	return err
}

func hangPushdown(ctx context.Context, w *world) (string, error) {
	p, detail := w.pushdown()
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		return detail, err
	}
	w.last(ctx, w.upTo(9*time.Second))
	return detail, p.Process.Signal(syscall.SIGCONT)
}

func drainPushdown(ctx context.Context, w *world) (string, error) {
	p, detail := w.pushdown()
	stop, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := p.Process.Stop(stop); err != nil {
		return detail, err
	}
	w.last(ctx, 2*time.Second)
	return detail, p.Restart(ctx)
}

func killMaster(ctx context.Context, w *world) (string, error) {
	w.cluster.KillMaster()
	w.last(ctx, 3*time.Second)
	if err := w.cluster.StartMaster(ctx); err != nil {
		return "", err
	}
	return "", w.ready(ctx)
}

// pauseRegionServer stops one for less than its session, as a long collection
// of garbage does.
func pauseRegionServer(ctx context.Context, w *world) (string, error) {
	i := w.rng.IntN(w.cluster.Len())
	if err := w.cluster.PauseRegionServer(i); err != nil {
		return "", err
	}
	w.last(ctx, sessionTimeout/2)
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
	err = w.ready(ctx)
	return detail, errors.Join(err, w.cluster.ResumeRegionServer(i))
}

func killRegionServer(ctx context.Context, w *world) (string, error) {
	i, err := w.victim(ctx)
	if err != nil {
		return "", err
	}
	w.cluster.KillRegionServer(i)
	w.dead = append(w.dead, i)
	return w.cluster.RegionServerAddr(i), w.ready(ctx)
}

// loseMachine kills a region server and the pushdown servers beside it.
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
	return w.cluster.RegionServerAddr(i), errors.Join(w.ready(ctx), restart(ctx, beside))
}

// victim chooses a region server to die, every other time the one with
// hbase:meta, after what is in its log alone has been flushed.
func (w *world) victim(ctx context.Context) (int, error) {
	i := w.rng.IntN(w.cluster.Len())
	if w.rng.IntN(2) == 0 {
		regions, err := w.cluster.Admin.Regions(ctx, "hbase:meta")
		if err != nil {
			return 0, err
		}
		for k := range w.cluster.Len() {
			if w.cluster.RegionServerAddr(k) == regions[0].Server {
				i = k
			}
		}
	}
	for _, s := range w.sites {
		if err := s.Flush(ctx); err != nil {
			return i, err
		}
	}
	return i, w.cluster.Admin.Flush(ctx, "hbase:meta")
}

// pauseZooKeeper stops ZooKeeper for less than the sessions.
func pauseZooKeeper(ctx context.Context, w *world) (string, error) {
	if err := w.cluster.PauseZooKeeper(); err != nil {
		return "", err
	}
	w.last(ctx, sessionTimeout/3)
	return "", w.cluster.ResumeZooKeeper()
}

// killZooKeeper takes it away for a while; the sessions live on in its files.
func killZooKeeper(ctx context.Context, w *world) (string, error) {
	w.cluster.KillZooKeeper()
	w.last(ctx, sessionTimeout/3)
	return "", w.cluster.StartZooKeeper(ctx)
}

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
