//go:build integration

package bench_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"downpour/bench"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/live"
	"downpour/gateway/live/changefeed"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/integration/e2e"
	"downpour/integration/e2e/e2etest"
	"downpour/pushdown/store"
	hstore "downpour/pushdown/store/hbase"
)

// BenchmarkLive_hbaseTick compares a tick of a live query with asking the same query again, in turn
// in one run. The query covers 1,000 series over 6 hours and more, with a cell for each point as
// puts leave them; each second brings 100 new points. Run 45 rounds or more: a tick also scans for
// late points every 20 seconds (changefeed.Poll.Late), and the mean should include such ticks.
func BenchmarkLive_hbaseTick(b *testing.B) {
	ctx, h, tables := context.Background(), e2etest.HBase(b), e2etest.CreateTables(b)
	cfg, err := hstore.ParseAddress(h.Quorum())
	if err != nil {
		b.Fatal(err)
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	st, err := hstore.Open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	counted := &countedStore{Store: st}
	t := newTicker(b, ctx, counted, tables)
	source := changefeed.New(changefeed.Config{Engine: t.engine, Store: counted}).
		Open(live.Question{Body: json.RawMessage(t.query)})
	defer source.Close()
	if _, err := source.Next(ctx, t.clock); err != nil {
		b.Fatal(err)
	}
	var ticks, again work
	for i := range b.N {
		t.second()
		ticks.of(h, counted, b, func() error {
			_, err := source.Next(ctx, t.clock)
			return err
		})
		if i%5 == 0 {
			again.of(h, counted, b, t.ask)
		}
	}
	ticks.report(b, "tick", ticks.rounds)
	again.report(b, "again", again.rounds)
	per := func(of func(w *work) float64) float64 {
		return of(&again) / float64(again.rounds) / (of(&ticks) / float64(ticks.rounds))
	}
	b.ReportMetric(per(func(w *work) float64 { return w.took.Seconds() }), "times-cheaper")
	b.ReportMetric(per(func(w *work) float64 { return w.cpu.Seconds() }), "times-cheaper-cpu")
	b.ReportMetric(per(func(w *work) float64 { return float64(w.cells) }), "times-fewer-cells")
}

// work is what some rounds took: time on the clock; processor time here and in HBase, which other
// load on the machine disturbs less; and the cells and bytes that HBase delivered.
type work struct {
	rounds       int
	took, cpu    time.Duration
	cells, bytes int64
}

// of runs one round and adds what it took.
func (w *work) of(h *e2e.HBase, st *countedStore, b *testing.B, do func() error) {
	b.Helper()
	cells, bytes, cpu := st.cells.Load(), st.bytes.Load(), processors(h, b)
	began := time.Now()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	w.took += time.Since(began)
	w.cpu += processors(h, b) - cpu
	w.cells += st.cells.Load() - cells
	w.bytes += st.bytes.Load() - bytes
	w.rounds++
}

func (w *work) report(b *testing.B, name string, rounds int) {
	n := float64(rounds)
	b.ReportMetric(w.took.Seconds()*1000/n, name+"-ms")
	b.ReportMetric(w.cpu.Seconds()*1000/n, name+"-cpu-ms")
	b.ReportMetric(float64(w.cells)/n, name+"-cells")
	b.ReportMetric(float64(w.bytes)/1000/n, name+"-KB")
}

// processors is the processor time taken so far, by HBase and by this process.
func processors(h *e2e.HBase, b *testing.B) time.Duration {
	b.Helper()
	theirs, err := h.CPU()
	var own syscall.Rusage
	if err == nil {
		err = syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	}
	if err != nil {
		b.Fatal(err)
	}
	return theirs + time.Duration(own.Utime.Nano()+own.Stime.Nano())
}

// countedStore counts what a store delivers.
type countedStore struct {
	store.Store
	cells, bytes atomic.Int64
}

func (*countedStore) Features() store.Features { return store.Features{} }

func (c *countedStore) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	sc, err := c.Store.Scan(ctx, s)
	if err != nil {
		return nil, err
	}
	return &countedScan{sc, c}, nil
}

func (c *countedStore) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	rows, err := c.Store.Get(ctx, table, family, keys)
	c.count(rows)
	return rows, err
}

// count adds rows. Each cell counts 24 bytes more for its lengths, family, time and type.
func (c *countedStore) count(rows []store.Row) {
	for i := range rows {
		for j := range rows[i].Cells {
			c.cells.Add(1)
			c.bytes.Add(int64(24 + len(rows[i].Key) + len(rows[i].Cells[j].Qualifier) + len(rows[i].Cells[j].Value)))
		}
	}
}

type countedScan struct {
	store.Scanner
	of *countedStore
}

func (c *countedScan) Next() ([]store.Row, error) {
	rows, err := c.Scanner.Next()
	c.of.count(rows)
	return rows, err
}

// ticker writes points second by second, and asks the query that a live query keeps up to date.
type ticker struct {
	*testing.B
	ctx    context.Context
	store  store.Store
	engine *engine.Engine
	table  string
	query  string
	clock  time.Time
	keys   []*write.SeriesKey
}

func newTicker(b *testing.B, ctx context.Context, st store.Store, tables e2e.Tables) *ticker {
	b.Helper()
	schema := encoding.DefaultSchema()
	names := uid.New(uid.Config{Store: st, Table: tables.UID, Schema: schema})
	d := workload.Default()
	now := time.Now()
	d.Start = now.Unix() - now.Unix()%3600 - int64(d.Hours)*3600
	target := bench.Target{
		Store:  st,
		Schema: schema,
		Table:  tables.Data,
		Names:  uid.Staged{Dictionary: names},
		Form:   write.Single,
		Batch:  1,
	}
	if _, err := target.Load(ctx, d, nil); err != nil {
		b.Fatal(err)
	}
	t := &ticker{B: b, ctx: ctx, store: st, table: tables.Data, clock: now,
		query: `{"start":"6h-ago","queries":[{"metric":"` + workload.Metrics[0].Name +
			`","aggregator":"sum","downsample":"5m-avg"}]}`,
		engine: engine.New(engine.Config{Names: names, Exec: dispatch.New(dispatch.Config{Store: st}),
			Compile: plan.Options{Schema: schema, Table: tables.Data}})}
	series := write.NewSeries(write.SeriesConfig{Schema: schema, Names: uid.Staged{Dictionary: names}})
	for i := range d.Hosts {
		var tags []write.Tag
		for _, tag := range d.Host(i) {
			tags = append(tags, write.Tag{K: tag.K, V: tag.V})
		}
		key, err := series.Resolve(ctx, workload.Metrics[0].Name, tags)
		if err != nil {
			b.Fatal(err)
		}
		t.keys = append(t.keys, key)
	}
	for at := d.End(); at < now.Unix(); at++ { // this hour, until now
		t.write(at)
	}
	return t
}

// write puts one point into every tenth series: series 0, 10, 20 in the first of ten seconds, and
// so on.
func (t *ticker) write(at int64) {
	t.Helper()
	var all []store.Mutation
	base := encoding.KeyTime(encoding.Hour(at))
	q := encoding.Qualifier{OffsetMS: int32(at-int64(base)) * 1000, Width: 1}
	for i := int(at % 10); i < len(t.keys); i += 10 {
		row := encoding.DefaultSchema().AppendRowKey(nil, t.keys[i].Metric, base, t.keys[i].Tags)
		all = append(all, store.Mutation{
			Row:       row,
			Family:    "t",
			Qualifier: encoding.AppendQualifier(nil, q),
			Value:     []byte{byte(at % 100)},
		})
	}
	if err := t.store.Apply(t.ctx, t.table, all); err != nil {
		t.Fatal(err)
	}
}

func (t *ticker) second() {
	t.clock = t.clock.Add(time.Second)
	t.write(t.clock.Unix())
}

// ask runs the whole query, with nothing kept from earlier ticks.
func (t *ticker) ask() error {
	q, err := query.Parser{Now: t.clock}.JSON([]byte(t.query))
	if err != nil {
		return err
	}
	_, _, err = t.engine.Run(t.ctx, q, engine.Options{})
	return err
}
