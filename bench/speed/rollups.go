package speed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"downpour/bench/peer"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/integration/differential"
	"downpour/pushdown/store"
)

// Sizes of the data of rollups and histograms: sums and counts of 30 days of hours, and a
// histogram a minute for 1,000 minutes, both of all hosts.
const (
	rollupDays       = 30
	histogramMinutes = 1000
)

// rollups measures a query over rollups and one over histograms. They have tables and
// servers of their own.
func rollups(ctx context.Context, s *stage, g group) error {
	if err := s.useRollups(ctx, g); err != nil {
		return err
	}
	d := s.set.data
	if g.has("rollup") {
		const days = rollupDays * 24 * 3600
		q := workload.Query{Start: rollupStart(d), End: rollupStart(d) + days - 1, M: "sum:1h-avg:" + d.Metric()}
		what := fmt.Sprintf("sum:1h-avg of rollups, %d days of %d series", rollupDays, d.Hosts)
		// An average reads two cells, a sum and a count.
		b := besides{row: "rollup", what: what, want: 3, query: q, slack: 24 * 3600, unit: 3600, work: d.Hosts * rollupDays * 24 * 2}
		if err := s.besideOpenTSDB(ctx, g, b); err != nil {
			return err
		}
	}
	if g.has("percentiles") {
		q := workload.Query{Start: d.Start, End: d.Start + histogramMinutes*60 - 1, M: "sum:10m-sum:percentiles[50,99]:rollup_raw:" + d.Metric()}
		what := fmt.Sprintf("percentiles of %d histograms by 10 min", d.Hosts*histogramMinutes)
		return s.besideOpenTSDB(ctx, g, besides{row: "percentiles", what: what, want: 5, query: q, slack: slack, unit: 60, work: d.Hosts * histogramMinutes})
	}
	return nil
}

// rollupStart is the midnight at or before the start of the data: rows of the rollup table
// span a day.
func rollupStart(d workload.Devops) int64 { return d.Start - d.Start%(24*3600) }

// useRollups loads rollups and histograms into new tables and starts servers over them.
func (s *stage) useRollups(ctx context.Context, g group) error {
	// The OpenTSDB is started last, and do has dropped the set of another form or scale: one
	// that runs has the rollups.
	if s.set.tsd != nil {
		return nil
	}
	s.set = tableSet{form: g.form, scale: g.scale, data: s.cfg.dataAt(g.scale)}
	var err error
	if s.set.tables, err = s.newTables(ctx); err != nil {
		return err
	}
	t := s.set.tables
	s.set.rollup, s.set.rollups = t.Data+"-1h", differential.RollupTables(t.Data)
	all := tables.Names{Data: t.Data, UID: t.UID, Meta: t.Meta, Tree: t.Tree, Rollups: s.set.rollups}
	// newTables has made four of them; Create makes those that are missing.
	if err := tables.Create(ctx, s.store, tables.Specs(all, encoding.DefaultSchema(), "NONE")); err != nil {
		return err
	}
	if err := s.fillRollups(ctx); err != nil {
		return err
	}

	file := filepath.Join(os.TempDir(), t.Data+"-rollups.json") // OpenTSDB takes a file or one line
	if err := os.WriteFile(file, []byte(differential.RollupConfig(t.Data)), 0o600); err != nil {
		return err
	}
	defer os.Remove(file)

	env := map[string]string{"DOWNPOUR_ROLLUPS": file, "DOWNPOUR_HISTOGRAMS": differential.HistogramConfig}
	for key, value := range s.cfg.ScanEnv {
		env[key] = value
	}
	o := peer.Options{Quorum: s.hbase.Quorum(), Tables: s.set.tables, Env: env,
		TSD: map[string]string{"tsd.rollups.enable": "true", "tsd.rollups.config": file, "tsd.core.histograms.config": differential.HistogramConfig}}
	if s.set.ours, err = s.started(peer.StartDownpour(ctx, o)); err != nil {
		return err
	}
	s.set.tsd, err = s.started(peer.StartOpenTSDB(ctx, o))
	return err
}

// fillRollups writes the cells, flushed and compacted into one file a region.
func (s *stage) fillRollups(ctx context.Context) error {
	d := s.set.data
	s.cfg.Progress.Sayf("loading rollups and histograms of %d series", d.Hosts)
	schema := encoding.DefaultSchema()
	names := uid.Staged{Dictionary: uid.New(uid.Config{Store: s.store, Table: s.set.tables.UID, Schema: schema})}
	series := write.NewSeries(write.SeriesConfig{Schema: schema, Names: names, Auto: write.Auto{Metrics: true, TagKs: true, TagVs: true}})

	l := cellLoader{ctx: ctx, to: s.store, r: rand.New(rand.NewPCG(d.Seed, 9))}
	for host := range d.Hosts {
		var tags []write.Tag
		for _, tag := range d.Host(host) {
			tags = append(tags, write.Tag{K: tag.K, V: tag.V})
		}
		key, err := series.Resolve(ctx, d.Metric(), tags)
		if err != nil {
			return err
		}
		for day := range rollupDays {
			l.rollups(s.set.rollup, schema.AppendRowKey(nil, key.Metric, uint32(rollupStart(d)+int64(day)*24*3600), key.Tags))
		}
		// A row holds an hour; the last one holds what is left.
		for minute := 0; minute < histogramMinutes; minute += 60 {
			l.histograms(s.set.tables.Data, schema.AppendRowKey(nil, key.Metric, uint32(d.Start+int64(minute)*60), key.Tags), min(60, histogramMinutes-minute))
		}
	}

	// After an error, which the loader keeps, flush writes nothing.
	l.flush(s.set.rollup)
	l.flush(s.set.tables.Data)
	for _, table := range []string{s.set.rollup, s.set.tables.Data} {
		if l.err == nil {
			l.err = s.hbase.Admin.Compact(ctx, table)
		}
	}
	return l.err
}

// cellLoader collects the cells of many rows before it writes them. The first error stays.
type cellLoader struct {
	ctx context.Context
	to  store.Store
	r   *rand.Rand
	err error
	all map[string][]store.Mutation
}

// cellsAtOnce is how many cells are written together.
const cellsAtOnce = 5000

func (l *cellLoader) add(table string, m store.Mutation) {
	if l.all == nil {
		l.all = map[string][]store.Mutation{}
	}
	m.Kind, m.Family = store.Put, encoding.FamilyData
	if l.all[table] = append(l.all[table], m); len(l.all[table]) >= cellsAtOnce {
		l.flush(table)
	}
}

func (l *cellLoader) flush(table string) {
	if l.err == nil && len(l.all[table]) > 0 {
		l.err = l.to.Apply(l.ctx, table, l.all[table])
	}
	l.all[table] = l.all[table][:0]
}

// rollups adds the sums and counts of a day.
func (l *cellLoader) rollups(table string, row []byte) {
	for hour := range 24 {
		// By differential.RollupConfig id 0 is the sum and 1 the count, of a point every 10 s.
		for id, v := range []int64{l.r.Int64N(36000), 360} {
			value := encoding.AppendInt(nil, v)
			l.add(table, store.Mutation{Row: row, Qualifier: encoding.AppendRollupQualifier(nil, byte(id), hour, false, len(value)), Value: value})
		}
	}
}

// histograms adds a histogram of eight buckets for each minute.
func (l *cellLoader) histograms(table string, row []byte, minutes int) {
	edges := []float32{0, 1, 2.5, 5, 10, 25, 50, 100, 1000}
	for minute := range minutes {
		h := encoding.Histogram{Overflow: l.r.Int64N(3)}
		for i, lower := range edges[:len(edges)-1] {
			h.Buckets = append(h.Buckets, encoding.HistogramBucket{Lower: lower, Upper: edges[i+1], Count: l.r.Int64N(300)})
		}
		l.add(table, store.Mutation{Row: row, Qualifier: encoding.AppendHistogramQualifier(nil, int32(minute)*60_000, false),
			Value: encoding.AppendHistogram([]byte{differential.HistogramCodec}, &h)})
	}
}
