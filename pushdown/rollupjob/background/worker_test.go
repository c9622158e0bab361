package background

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"downpour/encoding"
	"downpour/pushdown/lease"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/rollup"
	"downpour/pushdown/rollupjob"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
)

const hour = encoding.RowSeconds

// born is the time at which simulated time begins, a midnight.
var born = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// config is one of rollups by hour in rows of a day.
func config(t *testing.T) *rollup.Config {
	c, err := rollup.Parse([]byte(`{"aggregationIds":{"sum":0,"count":1,"min":2,"max":3},"intervals":[
		{"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
		{"table":"r1h","preAggregationTable":"r1h-pre","interval":"1h","rowSpan":"1d"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// world is a store with points in simulated time, and workers on it.
type world struct {
	*testing.T
	st      store.Store
	fake    *hbasefake.Cluster // nil if the store is embedded
	config  *rollup.Config
	metrics int
	points  int64
	all     sync.WaitGroup
	log     logtest.Log
}

var rollupTables = []store.TableSpec{
	opentest.Table("tsdb", encoding.FamilyData), opentest.Table("r1h", encoding.FamilyData),
}

// simulate runs a test on an embedded store.
func simulate(t *testing.T, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		st := opentest.Embedded(t, rollupTables...)
		w := &world{T: t, st: st, config: config(t)}
		f(w)
		w.all.Wait()
	})
}

// simulateHBase runs a test on a fake HBase.
func simulateHBase(t *testing.T, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		fake := opentest.Fake(t, hbasefake.Options{})
		st := opentest.HBaseWith(t, fake, hbase.Config{}, rollupTables...)
		w := &world{T: t, st: st, fake: fake, config: config(t)}
		f(w)
		w.all.Wait()
	})
}

func uid(metric int) encoding.UID { return encoding.UID{0, 0, byte(metric)} }

func rowKey(metric int, base int64) []byte {
	return encoding.DefaultSchema().AppendRowKey(nil, uid(metric), uint32(base), []byte{0, 0, 1, 0, 0, 1})
}

// put puts a point, of a metric and a time in s.
func (w *world) put(metric int, at int64) {
	w.Helper()
	base := at - at%hour
	m := store.Mutation{
		Row:       rowKey(metric, base),
		Family:    encoding.FamilyData,
		Qualifier: binary.BigEndian.AppendUint16(nil, uint16(at-base)<<4),
		Value:     []byte{byte(at)},
	}
	if err := w.st.Apply(w.Context(), "tsdb", []store.Mutation{m}); err != nil {
		w.Fatal(err)
	}
	w.points++
	if metric > w.metrics { // else a worker may read it
		w.metrics = metric
	}
}

// fill puts two points a day of some metrics, from some days ago to today.
func (w *world) fill(metrics int, days int64) {
	for metric := 1; metric <= metrics; metric++ {
		for at := born - days*day; at < born; at += day / 2 {
			w.put(metric, at+7)
		}
	}
}

// worker starts a worker, with another store if there is one.
func (w *world) worker(ctx context.Context, change func(*Config)) *Worker {
	w.Helper()
	cfg := Config{Store: w.st, Rate: 1_000_000, Log: w.log.Logger(), Metrics: w.each,
		Job: rollupjob.Job{
			Tables: rollupjob.Tables{Data: "tsdb", State: "state"},
			Schema: encoding.DefaultSchema(),
			Config: w.config,
			Margin: 10 * time.Minute,
			Now:    time.Now,
		}}
	if change != nil {
		change(&cfg)
	}
	cfg.Leases = &lease.Keeper{Store: cfg.Store, Table: "state", Holder: lease.Holder()}
	worker, err := New(cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.all.Go(func() { worker.Run(ctx) })
	return worker
}

// each lists the metrics, the last first.
func (w *world) each(context.Context) iter.Seq2[Metric, error] {
	return func(yield func(Metric, error) bool) {
		for metric := w.metrics; metric > 0; metric-- {
			if !yield(Metric{UID: uid(metric)}, nil) {
				return
			}
		}
	}
}

// proven returns from when to when queries may read rollups of a metric.
func (w *world) proven(metric int) []rollupjob.Range {
	w.Helper()
	p := rollupjob.Prover{
		Store:  w.st,
		Tables: rollupjob.Tables{Data: "tsdb", State: "state"},
		Schema: encoding.DefaultSchema(),
		Config: w.config,
	}
	proof, err := p.Prove(w.Context(), w.config.ByName("1h"), uid(metric),
		rollupjob.Range{From: born - 1000*day, To: born + 1000*day})
	if err != nil {
		w.Fatal(err)
	}
	return proof.Ranges
}

// wantProven checks that the rollups of all metrics can be read between two times.
func (w *world) wantProven(what string, from, to int64) {
	w.Helper()
	for metric := 1; metric <= w.metrics; metric++ {
		covered := false
		for _, r := range w.proven(metric) {
			covered = covered || r.From <= from && r.To >= to
		}
		if !covered {
			w.Errorf("%s: metric %d is read from %+v, want %d to %d", what, metric, w.proven(metric), from, to)
		}
	}
}

func (w *Worker) did() rollupjob.Counts {
	return w.totals.Read().Counts
}

// TestWorker: all hours of all metrics are rolled up and proven, the newest first, and each point is
// read once; then newly sealed hours, days that change, and those that changed long ago.
func TestWorker(t *testing.T) {
	simulate(t, func(w *world) {
		w.fill(3, 100)
		w.put(1, born-700*day) // one is far in the past
		ctx, cancel := context.WithCancel(w.Context())
		worker := w.worker(ctx, func(c *Config) { c.Alone = true })
		time.Sleep(30 * time.Minute)
		w.wantProven("at first", born-100*day, born)
		if c := worker.did(); c.Points != w.points || c.Unproven > 0 {
			w.Errorf("got %+v, want each of %d points read once", c, w.points)
		}
		if r := w.proven(1); len(r) < 2 || r[0].From > born-700*day {
			w.Errorf("got %+v, want the point of long ago in them", r)
		}
		var ends []string
		for _, line := range w.log.Lines("rollups made") {
			_, to, _ := strings.Cut(line, " to=")
			ends = append(ends, to[:len("2006-01-02T15")])
		}
		// The last hours of the day are sealed after ten minutes.
		if n := len(ends); n < 6 || ends[0] != "1999-12-31T18" || ends[n-1] != "2000-01-01T00" {
			w.Fatalf("passes that end at %q, want the newest days first", ends)
		}
		for i := 2; i < len(ends)-1; i++ { // the second one is the month with the newest days
			if ends[i] >= ends[i-1] {
				w.Errorf("passes that end at %q, want newer ones first", ends)
			}
		}

		before := worker.did()
		w.put(2, born+1700)
		w.put(3, born-day+30)    // a late point of yesterday
		w.put(1, born-50*day+30) // one of long ago
		time.Sleep(6 * time.Hour)
		w.wantProven("six hours later", born-40*day, born+6*hour)
		if n := worker.did().Points - before.Points; n > 20 {
			w.Errorf("%d points were read after three were put", n)
		}
		time.Sleep(25 * time.Hour)
		w.wantProven("a day later", born-100*day, born+day)
		if c := worker.did(); c.Points-before.Points > 40 || c.Unproven > 0 {
			w.Errorf("got %+v after %+v", c, before)
		}
		if lines := w.log.Lines("level=WARN"); len(lines) > 0 {
			w.Errorf("warnings: %q", lines)
		}
		cancel()
		w.all.Wait()
		checkMetrics(w, worker)
	})
}

// TestWorker_held: while somebody else has a metric, its hours do not count as rolled up. Installations with other
// tables in the same HBase do not wait for each other.
func TestWorker_held(t *testing.T) {
	simulateHBase(t, func(w *world) {
		w.fill(2, 3)
		ctx, cancel := context.WithCancel(w.Context())
		other := &lease.Keeper{Store: w.st, Table: "state", Holder: "other"}
		if err := lease.CreateTable(ctx, w.st, "state"); err != nil {
			w.Fatal(err)
		}
		for _, name := range []string{"rollups/tsdb2", "rollup/tsdb/000001"} {
			held, ok, err := other.Try(ctx, name)
			if err != nil || !ok {
				w.Fatal(name, ok, err)
			}
			w.all.Go(func() {
				_ = held.Do(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					return nil
				})
			})
		}
		worker := w.worker(ctx, nil)
		time.Sleep(time.Hour)
		if r := w.proven(2); len(r) == 0 {
			w.Error("the other metric is not proven")
		}
		if until := gathered(w, worker, "downpour_rollup_made_until_seconds"); until != 0 {
			w.Errorf("made until %v, want 0: a metric is held by somebody else", until)
		}
		if lines := w.log.Lines("level=WARN"); len(lines) > 0 {
			w.Errorf("warnings: %q", lines)
		}
		cancel()
		w.all.Wait()
	})
}

// gathered returns the value of one of a worker's metrics.
func gathered(w *world, worker *Worker, name string) float64 {
	w.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(worker)
	families, err := registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	w.Fatalf("no metric %s", name)
	return 0
}

// checkMetrics gathers a worker's metrics.
func checkMetrics(w *world, worker *Worker) {
	w.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(worker)
	families, err := registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			got[strings.TrimPrefix(f.GetName(), "downpour_rollup_made_")] += m.GetCounter().GetValue() +
				m.GetGauge().GetValue()
		}
	}
	if got["rate"] != 1_000_000 || got["until_seconds"] != float64(born+day+6*hour) ||
		got["points_total"] != float64(worker.did().Points) || got["days_total"] == 0 || got["failures_total"] != 0 {
		w.Errorf("metrics: %v", got)
	}
}

// TestWorker_restart: the next process continues a worker's work, and no point is read again.
func TestWorker_restart(t *testing.T) {
	simulate(t, func(w *world) {
		w.fill(5, 60)
		slow := func(c *Config) { c.Alone, c.Rate = true, 200 }
		var read int64
		for range 4 {
			ctx, cancel := context.WithCancel(w.Context())
			worker := w.worker(ctx, slow)
			time.Sleep(45 * time.Second)
			cancel()
			w.all.Wait()
			if c := worker.did(); c.Points == 0 && c.Kept == 0 {
				w.Errorf("got %+v, want something done", c)
			}
			read += worker.did().Points
		}
		ctx, cancel := context.WithCancel(w.Context())
		worker := w.worker(ctx, func(c *Config) { c.Alone = true })
		time.Sleep(30 * time.Minute)
		cancel()
		w.all.Wait()
		w.wantProven("at the end", born-60*day, born)
		// An interrupted month of a metric is read again as far as it was not recorded.
		if n := read + worker.did().Points; n > w.points+4*64 || read == 0 {
			w.Errorf("%d points were read, %d of them by workers that were cut, want each of %d about once",
				n, read, w.points)
		}
	})
}

// dying is the store of a process that may die: from then on no call returns.
type dying struct {
	*hbase.Store
	mu    sync.Mutex
	dead  bool
	first time.Time // of a scan of raw rows
	at    int       // the metric of that
}

func (m *dying) Features() store.Features { return m.Store.Features() }

func (m *dying) pass(ctx context.Context) error {
	m.mu.Lock()
	dead := m.dead
	m.mu.Unlock()
	if dead {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (m *dying) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

// began returns when raw rows were first read.
func (m *dying) began() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first
}

func (m *dying) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if err := m.pass(ctx); err != nil {
		return nil, err
	}
	return m.Store.Get(ctx, table, family, keys)
}

func (m *dying) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	if err := m.pass(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	if s.Table == "tsdb" && m.first.IsZero() {
		m.first, m.at = time.Now(), int(s.Start[2])
	}
	m.mu.Unlock()
	return m.Store.Scan(ctx, s)
}

func (m *dying) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	if err := m.pass(ctx); err != nil {
		return err
	}
	return m.Store.Apply(ctx, table, mutations)
}

func (m *dying) CompareAndPut(
	ctx context.Context, table string, cell store.CellKey, expected, value []byte,
) (bool, error) {
	if err := m.pass(ctx); err != nil {
		return false, err
	}
	return m.Store.CompareAndPut(ctx, table, cell, expected, value)
}

// TestWorker_killed: one of two processes works. When it dies the other one continues within a
// minute where it was.
func TestWorker_killed(t *testing.T) {
	simulateHBase(t, func(w *world) {
		w.fill(40, 20)
		ctx, cancel := context.WithCancel(w.Context())
		a, b := &dying{Store: w.st.(*hbase.Store)}, &dying{Store: w.st.(*hbase.Store)}
		slow := func(of *dying) func(*Config) {
			return func(c *Config) { c.Store, c.Rate, c.ProveAfter = of, 500, 6*time.Minute }
		}
		first := w.worker(ctx, slow(a))
		time.Sleep(time.Second)
		second := w.worker(ctx, slow(b))
		time.Sleep(64 * time.Second)
		if c := first.did(); c.Points == 0 || !b.began().IsZero() {
			w.Fatalf("after a minute the first has done %+v, the second has read at %v", c, b.began())
		}

		a.kill()
		death, before := time.Now(), first.did().Points
		looked := int(first.totals.Read().metrics)
		time.Sleep(time.Minute)
		if after := b.began().Sub(death); b.began().IsZero() || after < 30*time.Second {
			w.Errorf("the second goes on %v after the death, want it within a minute, and not from a living one", after)
		}
		// Progress is saved every ten seconds.
		if b.at < looked-10 || b.at > looked || looked < 15 {
			w.Errorf("the second goes on with metric %d, the first has looked at %d of %d", b.at, looked, w.metrics)
		}
		time.Sleep(30 * time.Minute)
		cancel()
		w.all.Wait()
		n := first.did().Points + second.did().Points
		if n < w.points || n > w.points+w.points/4 || first.did().Points != before {
			w.Errorf("%d and %d points were read, want each of %d about once",
				first.did().Points, second.did().Points, w.points)
		}
	})
}

// TestWorker_unprovable: if a region of HBase is written to all the time nothing is
// proven. Then the rows are not read again and again, and the log has the reason.
func TestWorker_unprovable(t *testing.T) {
	simulateHBase(t, func(w *world) {
		w.fill(2, 20)
		ctx, cancel := context.WithCancel(w.Context())
		w.all.Go(func() {
			for ctx.Err() == nil {
				at := rowKey(9, born)
				m := store.Mutation{Row: at, Family: encoding.FamilyData, Qualifier: []byte{0, 0}, Value: []byte{1}}
				_ = w.st.Apply(ctx, "tsdb", []store.Mutation{m})
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
			}
		})
		worker := w.worker(ctx, func(c *Config) { c.ProveAfter = 6 * time.Minute })
		time.Sleep(50 * time.Hour)
		cancel()
		w.all.Wait()
		c := worker.did()
		if c.Proven > 0 || c.Unproven == 0 || c.Points > 3*w.points {
			w.Errorf("got %+v, want nothing proven and few of %d points read again", c, w.points)
		}
		lines := w.log.Lines("nothing proves them")
		if len(lines) == 0 || len(lines) > 20 || !strings.Contains(lines[0], "read point is the only proof") {
			w.Errorf("the log has %q", lines)
		}
	})
}

// failing is a store whose raw rows cannot be read for a while.
type failing struct {
	store.Store
	mu     sync.Mutex
	broken bool
}

func (f *failing) Features() store.Features { return f.Store.Features() }

func (f *failing) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken && s.Table == "tsdb" {
		return nil, errors.New("no region")
	}
	return f.Store.Scan(ctx, s)
}

// TestWorker_fails: unreadable rows are retried, and logged once.
func TestWorker_fails(t *testing.T) {
	simulate(t, func(w *world) {
		w.fill(2, 20)
		f := &failing{Store: w.st, broken: true}
		ctx, cancel := context.WithCancel(w.Context())
		worker := w.worker(ctx, func(c *Config) { c.Alone, c.Store = true, f })
		time.Sleep(50 * time.Second)
		f.mu.Lock()
		f.broken = false
		f.mu.Unlock()
		time.Sleep(10 * time.Minute)
		cancel()
		w.all.Wait()
		w.wantProven("afterwards", born-20*day, born)
		if lines := w.log.Lines("no region"); len(lines) != 1 || worker.totals.Read().failures == 0 {
			w.Errorf("%d failures, and the log has %q", worker.totals.Read().failures, lines)
		}
	})
}

// TestWorker_retained: where retention has deleted raw rows their rollups are kept, and expired raw
// rows that are not yet deleted are ignored.
func TestWorker_retained(t *testing.T) {
	simulate(t, func(w *world) {
		w.fill(1, 30)
		cut := int64(0)
		change := func(c *Config) {
			c.Alone = true
			c.Metrics = func(context.Context) iter.Seq2[Metric, error] {
				return func(yield func(Metric, error) bool) { yield(Metric{uid(1), cut}, nil) }
			}
		}
		run := func() rollupjob.Counts {
			ctx, cancel := context.WithCancel(w.Context())
			worker := w.worker(ctx, change)
			time.Sleep(20 * time.Minute)
			cancel()
			w.all.Wait()
			return worker.did()
		}
		run()
		before := w.rolled()
		if len(before) != 30*2*4 {
			w.Fatalf("%d cells, want 4 for each of 60 hours", len(before))
		}

		cut = born - 10*day + 5*hour
		for at := born - 30*day; at < cut; at += hour {
			m := store.Mutation{Kind: store.DeleteRow, Row: rowKey(1, at), Family: encoding.FamilyData}
			if err := w.st.Apply(w.Context(), "tsdb", []store.Mutation{m}); err != nil {
				w.Fatal(err)
			}
		}
		w.put(1, born-20*day) // late, of a day that was deleted
		if c := run(); c.Made != 0 {
			w.Errorf("got %+v, want nothing made", c)
		}
		if d := cmp.Diff(before, w.rolled()); d != "" {
			w.Errorf("rollups of deleted raw rows (-before +after)\n%s", d)
		}
		for _, r := range w.proven(1) {
			if r.To > born-30*day && r.From < cut {
				w.Errorf("%+v is read, want the days that are kept", r)
			}
		}
		w.wantProven("the days that are kept", cut-cut%day+day, born)
	})
}

// rolled returns the cells of the rollup table as text.
func (w *world) rolled() (out []string) {
	w.Helper()
	for row, err := range store.Rows(w.Context(), w.st, store.Scan{Table: "r1h", Family: encoding.FamilyData}) {
		if err != nil {
			w.Fatal(err)
		}
		for _, c := range row.Cells {
			out = append(out, fmt.Sprintf("%x %x %x", row.Key, c.Qualifier, c.Value))
		}
	}
	return out
}

// TestWorker_calm: the rate is kept, and the work waits while queries run.
func TestWorker_calm(t *testing.T) {
	simulate(t, func(w *world) {
		for at := born - 20*day; at < born-6*hour; at += 900 { // what is sealed
			w.put(1, at)
		}
		ctx, cancel := context.WithCancel(w.Context())
		began := time.Now()
		worker := w.worker(ctx, func(c *Config) { c.Alone, c.Rate = true, 100 })
		for worker.did().Points < w.points && time.Since(began) < time.Hour {
			time.Sleep(time.Second)
		}
		// Rows have a cost, too, and checks for their existence.
		if took := time.Since(began); took < time.Duration(w.points)*time.Second/100 || took > 5*time.Minute {
			w.Errorf("%d points took %v at 100 a second", w.points, took)
		}
		cancel()
		w.all.Wait()

		ctx, cancel = context.WithCancel(w.Context())
		// So slow that the rows take many pages.
		worker = w.worker(ctx, func(c *Config) { c.Alone, c.Rate, c.Busy = true, 100, func() int { return 1 } })
		time.Sleep(time.Minute)
		cancel()
		w.all.Wait()
		if _, yielded := worker.pace.State(); yielded < 40*time.Second {
			w.Errorf("it has waited for queries that always run for %v of a minute", yielded)
		}
	})
}

// Checks of metrics without new rows do not wait one by one for queries that always run: a hundred
// metrics are checked in a minute, though each check alone would wait for 5 s.
func TestWorker_checksDuringQueries(t *testing.T) {
	simulate(t, func(w *world) {
		var all []Metric
		for i := range 100 {
			all = append(all, Metric{UID: encoding.UID{1, 0, byte(i)}})
		}
		ctx, cancel := context.WithCancel(w.Context())
		worker := w.worker(ctx, func(c *Config) {
			c.Alone, c.Busy = true, func() int { return 1 }
			c.Metrics = func(context.Context) iter.Seq2[Metric, error] {
				return func(yield func(Metric, error) bool) {
					for _, m := range all {
						if !yield(m, nil) {
							return
						}
					}
				}
			}
		})
		time.Sleep(time.Minute)
		cancel()
		w.all.Wait()
		if n := worker.totals.Read().metrics; n < int64(len(all)) {
			w.Errorf("%d looks in a minute, want all %d metrics", n, len(all))
		}
	})
}
