//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// Region servers are killed under puts, again and again, and nothing is ever
// flushed for it: the log on HDFS alone holds what was acknowledged. Every
// acknowledged point, in each of the forms in which points are written, is found
// afterwards with its value, by gateways that know of nothing. A table whose
// edits skip the log stands beside them: it loses points, so that the test is
// seen to notice.
func TestHDFS_acknowledgedPointsSurvive(t *testing.T) {
	seed, kills, nodes := *seedFlag, 2, 1
	if seed == 0 {
		seed = rand.Uint64()
	}
	if *soak {
		kills, nodes = 100, 2
	}
	t.Logf("seed %d: -args -seed %d", seed, seed)

	ctx := within(t, 10*time.Minute+time.Duration(kills)*2*time.Minute)
	r := startLogRun(ctx, t, nodes, seed)
	r.write(ctx, t, func() {
		if err := r.firstKill(ctx); err != nil {
			t.Error(err)
			return
		}
		for n := 1; n < kills; n++ {
			if err := r.harm(ctx, n); err != nil {
				t.Errorf("event %d of seed %d: %v", n, seed, err)
				return
			}
		}
	})
	if t.Failed() {
		return
	}
	r.judge(ctx, t)
}

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

// logSite is a form with its tables, its gateway and who puts there.
type logSite struct {
	logForm
	tables  e2e.Tables
	gateway *e2e.Program
	writers []*logWriter
}

// logRun is a cluster on HDFS under puts.
type logRun struct {
	hdfs    *e2e.HDFS
	cluster *e2e.HBase
	sites   []*logSite
	rng     *rand.Rand
	seed    uint64
	began   time.Time
	events  map[string]int
	healing []time.Duration
	logf    func(format string, args ...any)
}

func startLogRun(ctx context.Context, t *testing.T, nodes int, seed uint64) *logRun {
	t.Helper()
	r := &logRun{rng: rand.New(rand.NewPCG(seed, 0)), seed: seed, began: time.Now(), events: map[string]int{}, logf: t.Logf}

	r.hdfs = must[*e2e.HDFS](t)(e2e.StartHDFS(ctx, e2e.HDFSOptions{DataNodes: nodes}))
	closeAtEnd(t, r.hdfs)
	t.Logf("HDFS: up after %.1f s", time.Since(r.began).Seconds())

	r.cluster = must[*e2e.HBase](t)(e2e.StartHBase(ctx, e2e.HBaseOptions{
		HDFS: r.hdfs, RegionServers: 2, RegionServerMiB: 448, SessionTimeout: 6 * time.Second,
	}))
	closeAtEnd(t, r.cluster)
	t.Logf("HBase: up after %.1f s", time.Since(r.began).Seconds())

	for _, form := range logForms {
		r.sites = append(r.sites, r.open(ctx, t, form))
	}
	t.Logf("gateways: up after %.1f s", time.Since(r.began).Seconds())
	return r
}

// open makes the tables of a form, a region for each writer, and starts its
// gateway.
func (r *logRun) open(ctx context.Context, t *testing.T, form logForm) *logSite {
	t.Helper()
	s := &logSite{logForm: form, tables: e2e.TablesWithPrefix(form.name)}
	var splits [][]byte
	for i, send := range form.writers {
		s.writers = append(s.writers, &logWriter{id: len(r.sites)<<4 | i, metric: fmt.Sprintf("log%d", i), send: send})
		if i > 0 {
			splits = append(splits, []byte{0, 0, byte(i + 1)}) // UIDs of metrics begin with 000001
		}
	}

	if err := r.cluster.Admin.CreateOpenTSDBTables(ctx, s.tables, splits...); err != nil {
		t.Fatal(err)
	}
	if form.unlogged {
		if err := r.cluster.Admin.SetDurability(ctx, s.tables.Data, "SKIP_WAL"); err != nil {
			t.Fatal(err)
		}
	}
	s.gateway = startGateway(t, e2e.ProgramOptions{Env: r.env(s)})
	return s
}

func (r *logRun) env(s *logSite) map[string]string {
	env := map[string]string{
		"DOWNPOUR_STORE":      "hbase:" + r.cluster.Quorum(),
		"DOWNPOUR_TABLE_DATA": s.tables.Data, "DOWNPOUR_TABLE_UID": s.tables.UID,
		"DOWNPOUR_TABLE_META": s.tables.Meta, "DOWNPOUR_TABLE_TREE": s.tables.Tree,
		"DOWNPOUR_AUTO_METRICS": "true",
	}
	maps.Copy(env, s.env)
	return env
}

// write lets everybody put while harm happens, and returns when all have ended.
func (r *logRun) write(ctx context.Context, t *testing.T, harm func()) {
	t.Helper()
	writing, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, s := range r.sites {
		for _, w := range s.writers {
			all.Go(func() { w.run(writing, s.gateway) })
		}
	}
	defer all.Wait()
	defer stop()
	harm()
}

// firstKill ends the server that holds the region without a log, once everybody
// has put, while no table has any file: what survives can only come from the log.
func (r *logRun) firstKill(ctx context.Context) error {
	if err := r.advance(ctx, 20); err != nil {
		return err
	}

	control := r.sites[slices.IndexFunc(r.sites, func(s *logSite) bool { return s.unlogged })]
	regions, err := r.cluster.Admin.Regions(ctx, control.tables.Data)
	if err != nil {
		return err
	}
	for _, s := range r.sites {
		for _, table := range []string{s.tables.Data, s.tables.UID} {
			if n, err := r.cluster.Admin.StoreFiles(ctx, table); err != nil || n != 0 {
				return fmt.Errorf("%s has %d files before the first kill, want none: something flushed it: %w", table, n, err)
			}
		}
	}

	return r.event(ctx, "region server killed, taken over", func() error { return r.takeOver(ctx, r.index(regions[0].Server)) })
}

// index is the number of the region server at an address.
func (r *logRun) index(address string) int {
	for i := range r.cluster.Len() {
		if r.cluster.RegionServerAddr(i) == address {
			return i
		}
	}
	return 0
}

// harm does one of the kinds of harm, those with one data node in turn, the
// others at random.
func (r *logRun) harm(ctx context.Context, n int) error {
	if err := r.advance(ctx, 1+r.rng.IntN(60)); err != nil {
		return err
	}

	victim, err := r.victim(ctx)
	if err != nil {
		return err
	}
	kinds := r.kinds(victim)
	k := n % 2
	if r.hdfs.Len() > 1 {
		k = r.rng.IntN(len(kinds))
	}
	return r.event(ctx, kinds[k].name, func() error { return kinds[k].do(ctx) })
}

type logHarm struct {
	name string
	do   func(ctx context.Context) error
}

// kinds are the kinds of harm; victim is a region server.
func (r *logRun) kinds(victim int) []logHarm {
	node := r.rng.IntN(r.hdfs.Len())
	return []logHarm{
		{"region server killed, taken over", func(ctx context.Context) error { return r.takeOver(ctx, victim) }},
		{"region server killed, started again", func(ctx context.Context) error { return r.restart(ctx, victim) }},
		{"all region servers killed", func(ctx context.Context) error { return r.restart(ctx, 0, 1) }},
		{"machine lost", func(ctx context.Context) error { // the other data node has all blocks
			r.hdfs.KillDataNode(node)
			return errors.Join(r.restart(ctx, victim), r.hdfs.StartDataNode(ctx, node))
		}},
		{"data node killed", func(ctx context.Context) error {
			r.hdfs.KillDataNode(node)
			return errors.Join(r.advance(ctx, 3), r.hdfs.StartDataNode(ctx, node))
		}},
		{"data node paused", func(ctx context.Context) error {
			err := r.hdfs.PauseDataNode(node)
			return errors.Join(err, r.advance(ctx, 3), r.hdfs.ResumeDataNode(node))
		}},
	}
}

// victim is the region server with most regions of the tables.
func (r *logRun) victim(ctx context.Context) (int, error) {
	held := make([]int, r.cluster.Len())
	for _, s := range r.sites {
		regions, err := r.cluster.Admin.Regions(ctx, s.tables.Data)
		if err != nil {
			return 0, err
		}
		for _, region := range regions {
			held[r.index(region.Server)]++
		}
	}
	return slices.Index(held, slices.Max(held)), nil
}

// takeOver kills a region server and starts it again once another one serves its
// regions.
func (r *logRun) takeOver(ctx context.Context, i int) error {
	r.cluster.KillRegionServer(i)
	return errors.Join(r.advance(ctx, 3), r.cluster.StartRegionServer(ctx, i))
}

// restart kills region servers and starts them again at once.
func (r *logRun) restart(ctx context.Context, servers ...int) (err error) {
	for _, i := range servers {
		r.cluster.KillRegionServer(i)
	}
	for _, i := range servers {
		err = errors.Join(err, r.cluster.StartRegionServer(ctx, i))
	}
	return err
}

// event does harm and waits until all is well: everybody puts again, and the
// servers are back.
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
	if err := errors.Join(r.cluster.WaitReady(ctx, r.cluster.Len()), r.hdfs.WaitReady(ctx, r.hdfs.Len())); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.events[name]++
	r.healing = append(r.healing, took)
	r.logf("%6.1fs %s: everybody puts again after %.1f s", time.Since(r.began).Seconds(), name, took.Seconds())
	return nil
}

// patience is how long everybody may take to put again, on a busy machine.
const patience = 5 * time.Minute

// advance waits until every writer has had so many batches more acknowledged.
func (r *logRun) advance(ctx context.Context, batches int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	goal := map[*logWriter]int64{}
	for _, s := range r.sites {
		for _, w := range s.writers {
			// The batch on its way may have been sent before.
			goal[w] = w.acknowledged.Load() + int64(batches+1)*crashBatch
		}
	}
	return e2e.Until(ctx, 20*time.Millisecond, func(context.Context) error {
		for w, n := range goal {
			if have := w.acknowledged.Load(); have < n {
				return fmt.Errorf("%s: %d points acknowledged, waiting for %d; last refusal: %v", w.metric, have, n, w.last.Load())
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
	fmt.Fprintf(&b, "all put again after %.1f s (median), %.1f s (longest)\n",
		r.healing[len(r.healing)/2].Seconds(), r.healing[len(r.healing)-1].Seconds())

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
		fmt.Fprintf(&b, "%-10s %8d points acknowledged, %d lost, %d wrong, %d batches refused and sent again\n", s.name, sum.acknowledged, sum.lost, sum.wrong, refused)

		switch {
		case sum.wrong > 0 || !s.unlogged && sum.lost > 0:
			t.Errorf("%s: %d points lost, %d wrong, seed %d; %s", s.name, sum.lost, sum.wrong, r.seed, sum.first)
		case s.unlogged && sum.lost == 0:
			t.Errorf("nothing of the table without a log is lost: this test would not see a loss")
		}
	}
	t.Logf("seed %d, after %.0f s: %s", r.seed, time.Since(r.began).Seconds(), b.String())
}
