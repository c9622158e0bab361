//go:build integration

package integration

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/encoding/seedtest"
	"downpour/integration/e2e"
)

// Region servers are killed again and again while points are put, and nothing is flushed before:
// only the write-ahead log on HDFS holds what was acknowledged. Afterwards fresh gateways find
// every acknowledged point with its value, in each of the forms in which points are written. One
// more table skips the log and must lose points, which shows that the test would notice a loss.
func TestHDFS_acknowledgedPointsSurvive(t *testing.T) {
	seed, events, nodes := seedtest.Of(t), *eventsFlag, 1
	if *soak || events > 0 {
		events, nodes = cmp.Or(events, 100), 2
	}

	ctx := within(t, 20*time.Minute+time.Duration(events)*2*time.Minute)
	r := startLogRun(ctx, t, nodes, seed)
	err := r.write(ctx, func() error {
		if err := r.firstKill(ctx); err != nil {
			return err
		}
		if nodes == 1 {
			return r.secondKill(ctx)
		}
		return r.harm(ctx, events)
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	r.judge(ctx, t)
}

// eventsFlag asks for the long form with another number of faults.
var eventsFlag = flag.Int("events", 0, "faults of the long form of TestHDFS; 0 is the short form, or 100 with -soak")

// logForm is a way in which a gateway writes points.
type logForm struct {
	name     string
	env      map[string]string
	unlogged bool // edits of the data table skip the log
	writers  []func(context.Context, *e2e.Program, []e2e.Point) error
}

var logForms = []logForm{
	{name: "single", writers: bothWays},
	{name: "multi", writers: bothWays, env: map[string]string{"DOWNPOUR_PUT_CELLS": "multi"}},
	{name: "appended", writers: bothWays, env: map[string]string{"DOWNPOUR_ENABLE_APPENDS": "true"}},
	{name: unlogged, writers: bothWays[:1], unlogged: true},
}

const unlogged = "unlogged"

var bothWays = []func(context.Context, *e2e.Program, []e2e.Point) error{sendHTTP, sendTelnet, sendHTTP}

// logSite is a form with its data table, its gateway and its writers. All sites share one UID
// table.
type logSite struct {
	logForm
	gateway *e2e.Program
	writers []*logWriter
}

const none = -1

// logRun is a cluster on HDFS under puts.
type logRun struct {
	hdfs    *e2e.HDFS
	cluster *e2e.HBase
	sites   []*logSite
	rng     *rand.Rand
	began   time.Time
	events  map[string]int
	healing []time.Duration
	dead    int // the region server that is to stay down for now, or none
	killed  int // region servers
	revived int // servers of HBase that ended by themselves and were started again
	logf    func(format string, args ...any)
}

func startLogRun(ctx context.Context, t *testing.T, nodes int, seed uint64) *logRun {
	t.Helper()
	r := &logRun{
		rng:    rand.New(rand.NewPCG(seed, 0)),
		began:  time.Now(),
		events: map[string]int{},
		dead:   none,
		logf:   t.Logf,
	}

	r.hdfs = must[*e2e.HDFS](t)(e2e.StartHDFS(within(t, patience), e2e.HDFSOptions{DataNodes: nodes}))
	closeAtEnd(t, r.hdfs)
	t.Logf("HDFS: up after %.1f s", time.Since(r.began).Seconds())

	r.cluster = must[*e2e.HBase](t)(e2e.StartHBase(within(t, patience), e2e.HBaseOptions{
		HDFS: r.hdfs, RegionServers: 2, RegionServerMiB: 448, SessionTimeout: 6 * time.Second, QuickStart: true,
	}))
	closeAtEnd(t, r.cluster)
	t.Logf("HBase: up after %.1f s", time.Since(r.began).Seconds())

	if err := r.cluster.Admin.CreateTable(ctx, uidTable, "NONE", []string{"id", "name"}); err != nil {
		t.Fatal(err)
	}
	for _, form := range logForms {
		r.sites = append(r.sites, r.open(ctx, t, form))
	}
	t.Logf("gateways: up after %.1f s", time.Since(r.began).Seconds())
	return r
}

const uidTable = "uid"

// open makes the data table of a form, a region for each writer, and starts its
// gateway.
func (r *logRun) open(ctx context.Context, t *testing.T, form logForm) *logSite {
	t.Helper()
	s := &logSite{logForm: form}
	var splits [][]byte
	for i, send := range form.writers {
		s.writers = append(s.writers, &logWriter{id: len(r.sites)<<4 | i, metric: fmt.Sprintf("log%d", i), send: send})
		if i > 0 {
			splits = append(splits, []byte{0, 0, byte(i + 1)}) // UIDs of metrics start at 000001
		}
	}

	if err := r.cluster.Admin.CreateTable(ctx, s.name, "NONE", []string{"t"}, splits...); err != nil {
		t.Fatal(err)
	}
	if form.unlogged {
		if err := r.cluster.Admin.SetDurability(ctx, s.name, "SKIP_WAL"); err != nil {
			t.Fatal(err)
		}
	}
	s.gateway = startGateway(t, e2e.ProgramOptions{Env: r.env(s)})
	return s
}

func (r *logRun) env(s *logSite) map[string]string {
	env := map[string]string{
		"DOWNPOUR_STORE":        "hbase:" + r.cluster.Quorum(),
		"DOWNPOUR_TABLE_DATA":   s.name,
		"DOWNPOUR_TABLE_UID":    uidTable,
		"DOWNPOUR_AUTO_METRICS": "true",
	}
	maps.Copy(env, s.env)
	return env
}

// write lets everybody put while harm happens, and returns when all have ended.
func (r *logRun) write(ctx context.Context, harm func() error) error {
	writing, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, s := range r.sites {
		for _, w := range s.writers {
			all.Go(func() { w.run(writing, s.gateway) })
		}
	}
	defer all.Wait()
	defer stop()
	return harm()
}

// firstKill kills the server that holds the region without a log, after every writer has put and
// while no table has a store file. So what survives can only come from the log.
func (r *logRun) firstKill(ctx context.Context) error {
	if err := r.advance(ctx, 20); err != nil {
		return err
	}

	for _, table := range []string{uidTable, "single", "multi", "appended", unlogged} {
		n, err := r.cluster.Admin.StoreFiles(ctx, table)
		if err != nil {
			return err
		}
		if n != 0 && r.revived == 0 { // a restarted server writes its log to files
			return fmt.Errorf("table %s has %d files before the first kill, want none: something flushed it", table, n)
		}
	}

	regions, err := r.cluster.Admin.Regions(ctx, unlogged)
	if err != nil {
		return err
	}

	victim, err := r.index(regions[0].Server)
	if err != nil {
		return err
	}
	return r.event(ctx, "region server killed, taken over", func() error { return r.takeOver(ctx, victim) })
}

// index is the number of the region server at an address.
func (r *logRun) index(address string) (int, error) {
	for i := range r.cluster.Len() {
		if r.cluster.RegionServerAddr(i) == address {
			return i, nil
		}
	}
	return 0, fmt.Errorf("a region is at %s, want one of the %d region servers", address, r.cluster.Len())
}

// secondKill kills the server that now serves all regions, hbase:meta among them.
func (r *logRun) secondKill(ctx context.Context) error {
	if err := r.advance(ctx, 20); err != nil {
		return err
	}

	victim, err := r.victim(ctx)
	if err != nil {
		return err
	}
	return r.event(ctx, "region server killed, started again", func() error { return r.startAgain(ctx, victim) })
}

// harm does all kinds of harm, over and over, in a new random order each time. It ends after so
// many events, or, on a slow machine, after an hour and at least atLeast events.
func (r *logRun) harm(ctx context.Context, events int) error {
	var order []int
	for n := 1; n < events && (n < atLeast || time.Since(r.began) < time.Hour); n++ {
		if err := r.advance(ctx, 1+r.rng.IntN(60)); err != nil {
			return err
		}

		victim, err := r.victim(ctx)
		if err != nil {
			return err
		}
		kinds := r.kinds(victim)
		if len(order) == 0 {
			order = r.rng.Perm(len(kinds))
		}
		kind := kinds[order[0]]
		order = order[1:]
		if err := r.event(ctx, kind.name, func() error { return kind.do(ctx) }); err != nil {
			return fmt.Errorf("event %d: %w", n, err)
		}
	}
	return nil
}

// atLeast is enough for every kind of harm to be done twice.
const atLeast = 12

type logHarm struct {
	name string
	do   func(ctx context.Context) error
}

// kinds are the kinds of harm; victim is a region server.
func (r *logRun) kinds(victim int) []logHarm {
	node := r.rng.IntN(r.hdfs.Len())
	return []logHarm{
		{"region server killed, taken over", func(ctx context.Context) error { return r.takeOver(ctx, victim) }},
		{"region server killed, started again", func(ctx context.Context) error { return r.startAgain(ctx, victim) }},
		{"all region servers killed", func(ctx context.Context) error { return r.startAgain(ctx, 0, 1) }},
		{"machine lost", func(ctx context.Context) error { // the other data node has all blocks
			r.hdfs.KillDataNode(node)
			return errors.Join(r.startAgain(ctx, victim), r.hdfs.StartDataNode(ctx, node))
		}},
		{"data node killed", func(ctx context.Context) error {
			r.hdfs.KillDataNode(node)
			return errors.Join(r.last(ctx), r.hdfs.StartDataNode(ctx, node))
		}},
		{"data node paused", func(ctx context.Context) error {
			err := r.hdfs.PauseDataNode(node)
			return errors.Join(err, r.last(ctx), r.hdfs.ResumeDataNode(node))
		}},
	}
}

// last leaves a data node away for 1 to 16 s, at most twice the silence after which a connection to
// it is given up. It does not wait until everybody puts again, because after two such faults this
// data node can be the only one that has a block.
func (r *logRun) last(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second + time.Duration(r.rng.Int64N(int64(15*time.Second)))):
		return nil
	}
}

// victim is the region server with most regions of the tables.
func (r *logRun) victim(ctx context.Context) (int, error) {
	held := make([]int, r.cluster.Len())
	for _, s := range r.sites {
		regions, err := r.cluster.Admin.Regions(ctx, s.name)
		if err != nil {
			return 0, err
		}
		for _, region := range regions {
			i, err := r.index(region.Server)
			if err != nil {
				return 0, err
			}
			held[i]++
		}
	}
	return slices.Index(held, slices.Max(held)), nil
}

// takeOver kills a region server and starts it again once another one serves its
// regions.
func (r *logRun) takeOver(ctx context.Context, i int) error {
	r.dead = i
	defer func() { r.dead = none }()

	r.kill(i)
	return errors.Join(r.advance(ctx, 3), r.cluster.StartRegionServer(ctx, i))
}

func (r *logRun) kill(i int) {
	r.cluster.KillRegionServer(i)
	r.killed++
}

// startAgain kills region servers and starts them again at once.
func (r *logRun) startAgain(ctx context.Context, servers ...int) (err error) {
	for _, i := range servers {
		r.kill(i)
	}
	for _, i := range servers {
		err = errors.Join(err, r.cluster.StartRegionServer(ctx, i))
	}
	return err
}

// event does one harm and waits until all is well: every writer puts again, and the servers are
// back.
func (r *logRun) event(ctx context.Context, name string, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := r.advance(ctx, 3); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	took := time.Since(began)

	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := errors.Join(r.ready(ctx), r.hdfs.WaitReady(ctx)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.events[name]++
	r.healing = append(r.healing, took)
	r.logf("%6.1fs %s: everybody puts again after %.1f s", time.Since(r.began).Seconds(), name, took.Seconds())
	return nil
}

// ready waits until all region servers serve.
func (r *logRun) ready(ctx context.Context) error {
	return e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		return errors.Join(r.tend(ctx), r.cluster.Admin.Ready(ctx, r.cluster.Len()))
	})
}

// tend starts servers of HBase that have ended by themselves. A server gives up when it gets no
// processor time for longer than its session, or finds no data node.
func (r *logRun) tend(ctx context.Context) error {
	if ended(r.cluster.MasterDone()) {
		r.revived++
		if err := r.cluster.StartMaster(ctx); err != nil {
			return err
		}
	}
	for i := range r.cluster.Len() {
		if i == r.dead || !ended(r.cluster.RegionServerDone(i)) {
			continue
		}
		r.revived++
		if err := r.cluster.StartRegionServer(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// patience is how long a start, or everybody to put again, may take on a busy
// machine.
const patience = 5 * time.Minute

// advance waits until every writer has had so many batches more acknowledged.
func (r *logRun) advance(ctx context.Context, batches int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	goal := map[*logWriter]int64{}
	for _, s := range r.sites {
		for _, w := range s.writers {
			// One batch more: the one on its way may have been sent before this call.
			goal[w] = w.acknowledged.Load() + int64(batches+1)*crashBatch
		}
	}
	return e2e.Until(ctx, 20*time.Millisecond, func(context.Context) error {
		if err := r.tend(ctx); err != nil {
			return err
		}
		for w, n := range goal {
			if have := w.acknowledged.Load(); have < n {
				return fmt.Errorf("%s: %d points acknowledged, waiting for %d; last refusal: %v",
					w.metric, have, n, w.last.Load())
			}
		}
		return nil
	})
}

// judge asks fresh gateways for every point.
func (r *logRun) judge(ctx context.Context, t *testing.T) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.events)) {
		fmt.Fprintf(&b, "%d x %s; ", r.events[name], name)
	}
	slices.Sort(r.healing)
	fmt.Fprintf(&b, "in all %d region servers killed, %d servers of HBase ended by themselves; "+
		"all put again after %.1f s (median), %.1f s (longest)\n",
		r.killed, r.revived, r.healing[len(r.healing)/2].Seconds(), r.healing[len(r.healing)-1].Seconds())

	for _, s := range r.sites {
		var sum account
		var refused int64
		fresh := startGateway(t, e2e.ProgramOptions{Env: r.env(s)})
		for _, w := range s.writers {
			a, err := w.count(ctx, fresh.URL)
			if err != nil {
				t.Error(err)
			}
			sum.add(a)
			refused += w.refused.Load()
		}
		fmt.Fprintf(&b, "%-10s %8d points acknowledged, %d lost, %d wrong, %d batches refused and sent again\n",
			s.name, sum.acknowledged, sum.lost, sum.wrong, refused)

		switch {
		case sum.wrong > 0 || !s.unlogged && sum.lost > 0:
			t.Errorf("%s: %d points lost, %d wrong; %s", s.name, sum.lost, sum.wrong, sum.first)
		case s.unlogged && sum.lost == 0:
			t.Errorf("no point of the table without a log is lost, want some: this test would not notice a loss")
		}
	}
	t.Logf("after %.0f s: %s", time.Since(r.began).Seconds(), b.String())
}
