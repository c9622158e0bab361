package bench

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// drainer is a store that can throw away what a scan brings before it becomes
// rows: the barest scan there is.
type drainer interface {
	Drain(ctx context.Context, s store.Scan) (store.ScanStats, error)
}

// BareScan reads all rows of a key range and throws them away: the floor.
func BareScan(ctx context.Context, s store.Reader, scan store.Scan) (store.ScanStats, error) {
	if d, ok := s.(drainer); ok {
		return d.Drain(ctx, scan)
	}
	sc, err := s.Scan(ctx, scan)
	if err != nil {
		return store.ScanStats{}, err
	}
	defer sc.Close()

	for {
		if _, err := sc.Next(); err == io.EOF {
			return sc.Stats(), nil
		} else if err != nil {
			return sc.Stats(), err
		}
	}
}

// Floor is the bare scan of the rows that a query reads.
type Floor struct {
	Store  store.Reader
	Schema encoding.Schema
	Table  string
	Metric encoding.UID
	// Scanners read side by side, each a share of the hours. Default 1.
	Scanners int
}

// Scan reads the rows of all hours that hold a second from start to end.
func (f Floor) Scan(ctx context.Context, start, end int64) (store.ScanStats, error) {
	// No downsampler widens the range.
	from, to := plan.ScanRange(start*1000, end*1000, nil)
	scanners := max(int64(f.Scanners), 1)
	hours := (to - from + encoding.RowSeconds - 1) / encoding.RowSeconds
	all := make([]store.ScanStats, scanners)
	work, ctx := errgroup.WithContext(ctx)
	for i := range scanners {
		work.Go(func() (err error) {
			all[i], err = f.hours(ctx, from+hours*i/scanners*encoding.RowSeconds,
				min(from+hours*(i+1)/scanners*encoding.RowSeconds, to))
			return err
		})
	}

	err := work.Wait()
	var sum store.ScanStats
	for _, s := range all {
		sum.Rows += s.Rows
		sum.Cells += s.Cells
		sum.Bytes += s.Bytes
		sum.RPCs += s.RPCs
	}
	return sum, err
}

// hours reads the rows of the hours in [from, to), seconds, in every salt bucket.
func (f Floor) hours(ctx context.Context, from, to int64) (sum store.ScanStats, err error) {
	for bucket := range f.Schema.Buckets() {
		s, err := BareScan(ctx, f.Store, store.Scan{Table: f.Table, Family: "t",
			Start: f.Schema.AppendRangeKey(nil, bucket, f.Metric, uint32(from)),
			Stop:  f.Schema.AppendRangeKey(nil, bucket, f.Metric, uint32(to))})
		if err != nil {
			return sum, err
		}
		sum.Rows += s.Rows
		sum.Cells += s.Cells
		sum.Bytes += s.Bytes
		sum.RPCs += s.RPCs
	}
	return sum, nil
}

// ScanConfig says what Scan measures.
type ScanConfig struct {
	Store  store.Store
	Schema encoding.Schema
	Data   workload.Devops
	// Form is how the points are stored; Batch, of the append form, how many
	// points come at a time.
	Form  write.Form
	Batch int
	// Load writes the data set first; without it the tables hold it already.
	Load bool
	// Scanners of the floor.
	Scanners int
	// Settle, if set, is called between the first round of measurements,
	// straight after loading, and the second: it lets the store come to rest.
	Settle   func(context.Context) error
	Queries  []string // as the m parameter of GET /api/query, %s for the metric
	Rounds   int
	Progress *progress.Progress
}

// Queries are the ones of the README's figures.
var Queries = []string{"sum:5m-avg:%s", "sum:5m-avg:%s{region=*}", "avg:5m-max:%s{host=*}"}

// TableNames are the tables that workloads of this process use.
func TableNames(prefix string) tables.Names {
	return tables.Names{Data: prefix, UID: prefix + "-uid", Meta: prefix + "-meta", Tree: prefix + "-tree"}
}

// local is a data set in a store and an engine in this process over it.
type local struct {
	store  store.Store
	schema encoding.Schema
	names  *uid.Dictionary
	tables tables.Names
	engine *engine.Engine
}

// newLocal makes the tables whose names begin with prefix, if they do not exist, and an
// engine over them.
func newLocal(ctx context.Context, st store.Store, schema encoding.Schema, prefix string) (*local, error) {
	l := &local{store: st, schema: schema, tables: TableNames(prefix)}
	if err := tables.Create(ctx, st, tables.Specs(l.tables, schema, "NONE")); err != nil {
		return nil, err
	}
	l.names = uid.New(uid.Config{Store: st, Table: l.tables.UID, Schema: schema})
	l.engine = engine.New(engine.Config{
		Names:   l.names,
		Exec:    dispatch.New(dispatch.Config{Store: st}),
		Compile: l.compile(),
	})
	return l, nil
}

func (l *local) compile() plan.Options {
	return plan.Options{Schema: l.schema, Table: l.tables.Data}
}

// load writes a data set into the tables; see Target.
func (l *local) load(ctx context.Context, d workload.Devops, form write.Form, batch int, p *progress.Progress) error {
	target := Target{
		Store:  l.store,
		Schema: l.schema,
		Table:  l.tables.Data,
		Names:  uid.Staged{Dictionary: l.names},
		Form:   form,
		Batch:  batch,
	}
	_, err := target.Load(ctx, d, p)
	return err
}

// ask runs a query in this process. It is an error if fewer than the given points were read.
// More are usual, because whole hours are read, and one behind the query's end.
func (l *local) ask(ctx context.Context, e *engine.Engine, q *query.Query, points int64) (engine.Stats, error) {
	results, stats, err := e.Run(ctx, q, engine.Options{})
	if err != nil {
		return stats, err
	}
	if len(results) == 0 || stats.Points < points {
		return stats, fmt.Errorf("%d groups of %d points, want at least %d points", len(results), stats.Points, points)
	}
	return stats, nil
}

// parse reads a query of a workload as the gateway would.
func parse(q workload.Query) (*query.Query, error) {
	return query.ParseURI(url.Values{"start": {fmt.Sprint(q.Start)}, "end": {fmt.Sprint(q.End)}, "m": {q.M}},
		time.Now())
}

const floorName = "bare scan"

// Scan loads a data set and measures queries over all of it against the bare scan
// of the same rows, on one engine in this process.
func Scan(ctx context.Context, cfg ScanConfig, r *report.Report) error {
	l, err := newLocal(ctx, cfg.Store, cfg.Schema, ScanTable)
	if err != nil {
		return err
	}
	r.Data, r.Cache = cfg.Data.String(), "warm: one round before those that count"
	if cfg.Load {
		start := time.Now()
		if err := l.load(ctx, cfg.Data, cfg.Form, cfg.Batch, cfg.Progress); err != nil {
			return err
		}
		r.Figures = append(r.Figures, report.Figure{
			Name: "load, straight as rows",
			Work: int64(cfg.Data.Points()),
			Unit: "points",
			Runs: []time.Duration{time.Since(start)},
		})
	}

	if err := l.measure(ctx, cfg, "straight after loading", r); err != nil {
		return err
	}
	if cfg.Settle != nil {
		if err := cfg.Settle(ctx); err != nil {
			return err
		}
		if err := l.measure(ctx, cfg, "at rest", r); err != nil {
			return err
		}
	}

	r.Note("peak resident memory of the process, client and engine together: %d MiB", report.PeakMemory()>>20)
	return nil
}

// ScanTable is the table that Scan loads the points into.
const ScanTable = "bench-tsdb"

// measure measures the queries and the bare scan in turn. state says in the names of
// figures how the store was.
func (l *local) measure(ctx context.Context, cfg ScanConfig, state string, r *report.Report) error {
	metric, err := l.names.Resolve(ctx, encoding.UIDMetric, cfg.Data.Metric())
	if err != nil {
		return err
	}
	points := int64(cfg.Data.Points() / cfg.Data.MetricCount)
	floor := Floor{Store: l.store, Schema: l.schema, Table: l.tables.Data, Metric: metric, Scanners: cfg.Scanners}
	base := floorName + ", " + state
	steps := []Step{{Name: base, Work: points, Unit: "points", Run: Timed(func(ctx context.Context, _ int) error {
		_, err := floor.Scan(ctx, cfg.Data.Start, cfg.Data.End()-1)
		return err
	})}}
	for _, text := range cfg.Queries {
		q := cfg.Data.Whole(text)
		parsed, err := parse(q)
		if err != nil {
			return err
		}
		steps = append(steps, Step{
			Name: q.M + ", " + state,
			Of:   base,
			Work: points,
			Unit: "points",
			Run: Timed(func(ctx context.Context, _ int) error {
				_, err := l.ask(ctx, l.engine, parsed, points)
				return err
			}),
		})
	}

	figures, err := Interleave(ctx, steps, 1, cfg.Rounds, nil)
	r.Figures = append(r.Figures, figures...)
	return err
}
