//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"downpour/bench"
	"downpour/bench/workload"
	"downpour/encoding"
	asking "downpour/gateway/ask"
	"downpour/gateway/compile"
	"downpour/gateway/exec"
	"downpour/gateway/live/follow"
	writing "downpour/gateway/put"
	"downpour/gateway/query"
	"downpour/gateway/uid"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
	hstore "downpour/pushdown/store/hbase"
)

// BenchmarkLive_hbaseTick is a tick with 100 new points of 1,000 series over 6
// hours and more, a cell a point as puts leave them, looks for late points
// amortised, against asking the same again: both in one run, in turn. Ask for 45
// rounds or more, so that there are looks for late points in them.
func BenchmarkLive_hbaseTick(b *testing.B) {
	h, err := sharedHBase()
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	tables := e2e.TablesWithPrefix(fmt.Sprintf("live-bench%d", tableSets.Add(1)))
	if err := h.Admin.CreateOpenTSDBTables(ctx, tables); err != nil {
		b.Fatal(err)
	}
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
	t := newTicker(b, ctx, st, tables)
	source := follow.New(follow.Config{Engine: t.engine, Store: st}).Follow(json.RawMessage(t.query))
	defer source.Close()
	if _, err := source.Next(ctx, t.clock); err != nil {
		b.Fatal(err)
	}
	var ticks, again time.Duration
	asked := 0
	for i := range b.N {
		t.second()
		began := time.Now()
		if _, err := source.Next(ctx, t.clock); err != nil {
			b.Fatal(err)
		}
		ticks += time.Since(began)
		if i%5 == 0 {
			again += t.ask()
			asked++
		}
	}
	tick, whole := ticks.Seconds()*1000/float64(b.N), again.Seconds()*1000/float64(asked)
	b.ReportMetric(tick, "tick-ms")
	b.ReportMetric(whole, "again-ms")
	b.ReportMetric(whole/tick, "times-cheaper")
}

// ticker writes the points of one second after the other.
type ticker struct {
	*testing.B
	ctx    context.Context
	store  store.Store
	engine *asking.Engine
	table  string
	query  string
	clock  time.Time
	keys   []*writing.SeriesKey
}

func newTicker(b *testing.B, ctx context.Context, st store.Store, tables e2e.Tables) *ticker {
	b.Helper()
	schema := encoding.DefaultSchema()
	names := uid.New(uid.Config{Store: st, Table: tables.UID, Schema: schema})
	d := workload.Default()
	now := time.Now()
	d.Start = now.Unix() - now.Unix()%3600 - int64(d.Hours)*3600
	target := bench.Target{Store: st, Schema: schema, Table: tables.Data, Names: names, Form: writing.Cells, Batch: 1}
	if _, err := target.Load(ctx, d, nil); err != nil {
		b.Fatal(err)
	}
	t := &ticker{B: b, ctx: ctx, store: st, table: tables.Data, clock: now,
		query: `{"start":"6h-ago","queries":[{"metric":"` + workload.Metrics[0].Name + `","aggregator":"sum","downsample":"5m-avg"}]}`,
		engine: asking.New(asking.Config{Names: names, Exec: exec.New(exec.Config{Store: st}),
			Compile: compile.Options{Schema: schema, Table: tables.Data}})}
	series := writing.NewSeries(schema, names, writing.Auto{})
	for i := range d.Hosts {
		var tags []writing.Tag
		for _, tag := range d.Host(i) {
			tags = append(tags, writing.Tag{K: tag.K, V: tag.V})
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

// write puts a point of each tenth series.
func (t *ticker) write(at int64) {
	t.Helper()
	var all []store.Mutation
	base := encoding.BaseTime(at)
	q := encoding.Qualifier{OffsetMS: int32(at-int64(base)) * 1000, Width: 1}
	for i := int(at % 10); i < len(t.keys); i += 10 {
		row := encoding.DefaultSchema().AppendRowKey(nil, t.keys[i].Metric, base, t.keys[i].Tags)
		all = append(all, store.Mutation{Row: row, Family: "t", Qualifier: encoding.AppendQualifier(nil, q), Value: []byte{byte(at % 100)}})
	}
	if err := t.store.Apply(t.ctx, t.table, all); err != nil {
		t.Fatal(err)
	}
}

func (t *ticker) second() {
	t.clock = t.clock.Add(time.Second)
	t.write(t.clock.Unix())
}

// ask asks whole and returns how long that took.
func (t *ticker) ask() time.Duration {
	t.Helper()
	q, err := query.Parser{Now: t.clock}.JSON([]byte(t.query))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, _, err := t.engine.Run(t.ctx, q); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}
