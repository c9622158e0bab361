package speed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/write"
	"downpour/integration/e2e"
	"downpour/pushdown/compaction"
	"downpour/pushdown/store"
)

// compactMargin is more than the clocks of one machine differ.
const compactMargin = time.Second

// Asked and put each second while rows are compacted in the background, and without that.
const (
	lightQueries = 20
	lightPuts    = 20
)

// compacting measures row compaction, each time from a cell a point: by ourselves as fast as
// it goes, beside OpenTSDB's, and in the background beside light queries and puts.
func compacting(ctx context.Context, s *stage, g group) error {
	d := s.cfg.dataAt(g.scale)
	// Hours that have ended lately, where the work in the background begins.
	now := time.Now().Unix()
	d.Start = now - now%encoding.RowSeconds - int64(d.Hours+1)*encoding.RowSeconds
	ours, theirs := report.Figure{Name: "row compaction, Downpour", Unit: "rows"}, report.Figure{Name: "row compaction, OpenTSDB", Unit: "rows"}
	ours.Work, theirs.Work, ours.Of = rowsIn(d), rowsIn(d), theirs.Name
	var size [2]int64
	for i, f := range []*report.Figure{&ours, &theirs} {
		compact := []func(context.Context, workload.Devops) (time.Duration, error){s.compactOurs, s.compactTheirs}[i]
		if err := s.useCells(ctx, g, d); err != nil {
			return err
		}
		s.cfg.Progress.Sayf("%s", f.Name)
		took, err := compact(ctx, d)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		f.Runs = append(f.Runs, took)
		if size[i], err = s.sizeOfSet(ctx); err != nil {
			return err
		}
		s.dropSet()
	}
	s.cfg.Report.Figures = append(s.cfg.Report.Figures, ours, theirs)
	a := faster("compaction", g, "rows compacted, one region server", 1, ours, theirs, "OpenTSDB's row compaction")
	a.Ours, a.Theirs = report.Thousands(ours.Rate())+" rows/s", report.Thousands(theirs.Rate())+" rows/s"
	s.aim(a)
	each := func(bytes int64) string { return fmt.Sprintf("%.2f B", float64(bytes)/float64(d.Points())) }
	s.aim(report.Aim{Row: "compaction", Scale: g.scale, What: "bytes stored per point after row compaction", Against: "after OpenTSDB's, HBase files", Want: 1,
		Got: single(float64(size[0]) / float64(size[1])), Ours: each(size[0]), Theirs: each(size[1])})

	return s.besideCompaction(ctx, g, d)
}

// rowsIn is the number of rows of a data set.
func rowsIn(d workload.Devops) int64 { return int64(d.Series() * d.Hours) }

// useCells loads the data set into new tables with a cell a point, and waits until none is too
// young to be compacted.
func (s *stage) useCells(ctx context.Context, g group, d workload.Devops) error {
	if err := s.useLoaded(ctx, g, d, write.Single); err != nil {
		return err
	}
	if !bench.Until(ctx, time.Now().Add(2*compactMargin)) {
		return ctx.Err()
	}
	return nil
}

// compactOurs compacts the rows of the set as gateway compact does.
func (s *stage) compactOurs(ctx context.Context, d workload.Devops) (time.Duration, error) {
	versioned := s.store.Features().Versioned
	if versioned == nil {
		return 0, errors.New("the store keeps no versions of cells")
	}
	var counts compaction.Counts
	job := compaction.Job{Store: versioned, Table: s.set.tables.Data, Schema: encoding.DefaultSchema(), Margin: compactMargin, Now: time.Now,
		Reached: func(c compaction.Counts, _ []byte) { counts.Add(&c) }}
	began := time.Now()
	if err := job.Run(ctx, store.KeyRange{}, nil); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if counts.Compacted != rowsIn(d) {
		return 0, fmt.Errorf("got %v, want %d rows compacted", &counts, rowsIn(d))
	}
	return took, nil
}

// compactTheirs has a TSD compact the rows, as it does with rows that it reads. The time is
// that from the query until each row has one cell, and has the query in it, as ours has the
// reading of the rows.
func (s *stage) compactTheirs(ctx context.Context, d workload.Devops) (took time.Duration, err error) {
	tsd, err := s.started(peer.StartOpenTSDB(ctx, peer.Options{Quorum: s.hbase.Quorum(), Tables: s.set.tables, TSD: map[string]string{
		"tsd.storage.enable_compaction": "true", "tsd.storage.compaction.flush_interval": "1", "tsd.storage.compaction.min_flush_threshold": "1",
	}}))
	if err != nil {
		return 0, err
	}
	defer tsd.Close()
	began := time.Now()
	if err := tsd.Drain(ctx, d.Whole("sum:5m-avg:%s")); err != nil {
		return 0, err
	}
	err = s.untilCells(ctx, rowsIn(d))
	return time.Since(began), err
}

// untilCells waits until the data table of the set has at most so many cells.
func (s *stage) untilCells(ctx context.Context, most int64) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return e2e.Until(ctx, 500*time.Millisecond, func(ctx context.Context) error {
		stats, err := bench.BareScan(ctx, s.store, store.Scan{Table: s.set.tables.Data, Family: encoding.FamilyData})
		if err == nil && stats.Cells > most {
			err = fmt.Errorf("the table has %d cells, want %d at most", stats.Cells, most)
		}
		return err
	})
}

// sizeOfSet returns the bytes of the data table's files after a major compaction.
func (s *stage) sizeOfSet(ctx context.Context) (int64, error) {
	if err := s.hbase.Admin.Compact(ctx, s.set.tables.Data); err != nil {
		return 0, err
	}
	return compactedBytes(filepath.Join(s.hbase.Dir(), "root", "data", "default", s.set.tables.Data))
}

// besideCompaction measures light queries and puts, by a gateway with a pushdown server, without
// and with compaction in the background, and the large query before and after it.
func (s *stage) besideCompaction(ctx context.Context, g group, d workload.Devops) error {
	if err := s.useCells(ctx, g, d); err != nil {
		return err
	}
	if err := s.startPushed(ctx); err != nil {
		return err
	}
	whole := d.Whole("sum:5m-avg:%s")
	answer, err := s.set.pushed.Ask(ctx, whole)
	if err != nil {
		return err
	}
	before, err := s.large(ctx, whole, "before row compaction")
	if err != nil {
		return err
	}
	without, err := s.light(ctx, d, "without compaction", 1)
	if err != nil {
		return err
	}

	// The rate is such that the rows last as long as is measured.
	s.set.pushed.Close()
	s.set.pushed = nil
	if err := s.set.pushdown.Close(); err != nil {
		return err
	}
	s.set.pushdown = nil
	rate := max(1, rowsIn(d)/int64(s.cfg.Seconds))
	if err := s.startPushed(ctx, "DOWNPOUR_COMPACT", strconv.FormatInt(rate, 10), "DOWNPOUR_COMPACT_MARGIN", compactMargin.String(), "DOWNPOUR_TABLE_STATE", s.set.tables.Data+"-state"); err != nil {
		return err
	}
	s.set.rollups = append(s.set.rollups, s.set.tables.Data+"-state") // dropped with the others
	busy, err := s.light(ctx, d, fmt.Sprintf("beside compaction of %d rows/s", rate), 2)
	if err != nil {
		return err
	}
	stats, err := bench.BareScan(ctx, s.store, store.Scan{Table: s.set.tables.Data, Family: encoding.FamilyData})
	if err != nil {
		return err
	}
	s.cfg.Report.Note("row compaction beside light queries and puts: %d cells are left of %d after %d s", stats.Cells, d.Points(), s.cfg.Seconds)
	for i, what := range []string{"one host of all", "put of 10 points"} {
		s.aim(within("compaction", g, fmt.Sprintf("%s beside compaction of %d rows/s in the background, p99", what, rate), 1.2, busy[i], without[i], "without"))
	}

	// The rows of the points that were put meanwhile are of an hour that goes on.
	if err := s.untilCells(ctx, rowsIn(d)+2*int64(s.cfg.Seconds)*lightPuts*putPoints+putPoints); err != nil {
		return err
	}
	again, err := s.set.pushed.Ask(ctx, whole)
	if err != nil {
		return err
	}
	if !slices.Equal(answer, again) {
		return errors.New("sum:5m-avg has another answer after row compaction than before")
	}
	after, err := s.large(ctx, whole, "after row compaction")
	if err != nil {
		return err
	}
	s.aim(faster("compaction", g, "sum:5m-avg after row compaction", 2, after, before, "before it"))
	return nil
}

// large measures the large query at the gateway with a pushdown server.
func (s *stage) large(ctx context.Context, q workload.Query, when string) (report.Figure, error) {
	name := "sum:5m-avg " + when
	figures, err := s.interleave(ctx, []bench.Step{{Name: name, Work: int64(s.set.data.Points()), Unit: "points", Run: bench.Timed(func(ctx context.Context, _ int) error {
		return s.set.pushed.Drain(ctx, q)
	})}}, 1, s.cfg.Rounds)
	return figures[name], err
}

// putPoints is the number of points of a light put.
const putPoints = 10

// light asks and puts lightly for some seconds, and returns the 99th percentiles of queries
// and of puts.
func (s *stage) light(ctx context.Context, d workload.Devops, when string, seed uint64) (p99 [2]report.Figure, err error) {
	s.cfg.Progress.Sayf("light queries and puts %s", when)
	// The first put gives the names their UIDs.
	if err := s.put(ctx, 0); err != nil {
		return p99, err
	}
	length := time.Duration(s.cfg.Seconds) * time.Second
	var puts report.Latency
	var putErr error
	var putting sync.WaitGroup
	putting.Go(func() { puts, putErr = s.putLightly(ctx, length, "puts "+when, seed) })
	hosts := func(yield func(workload.Query) bool) {
		for i := 0; yield(d.OneHost((17 + 31*i) % d.Hosts)); i++ {
		}
	}
	queries, err := bench.Replay(ctx, bench.ReplayConfig{Server: s.set.pushed, Queries: hosts, Duration: length, Rate: lightQueries, Seed: seed, Name: "queries " + when})
	putting.Wait()
	if err := errors.Join(err, putErr); err != nil {
		return p99, err
	}
	for i, l := range []report.Latency{queries, puts} {
		s.cfg.Report.Latencies = append(s.cfg.Report.Latencies, l)
		p99[i] = report.Figure{Name: l.Name + ", p99", Runs: []time.Duration{l.At(99)}}
	}
	return p99, nil
}

// putLightly puts some points at random times, that are due beforehand, for a while.
func (s *stage) putLightly(ctx context.Context, length time.Duration, name string, seed uint64) (report.Latency, error) {
	response, service := report.NewHistogram(), report.NewHistogram()
	rng := rand.New(rand.NewPCG(seed, 5))
	began, n := time.Now(), int64(0)
	for due := began; ; n++ {
		due = due.Add(time.Duration(rng.ExpFloat64() / lightPuts * float64(time.Second)))
		if due.Sub(began) >= length {
			break
		}
		if !bench.Until(ctx, due) {
			return report.Latency{}, ctx.Err()
		}
		sent := time.Now()
		if err := s.put(ctx, n+1); err != nil {
			return report.Latency{}, err
		}
		response.Record(time.Since(due))
		service.Record(time.Since(sent))
	}
	return report.NewLatency(name, fmt.Sprintf("open, %d a second", lightPuts), response, service, 0), nil
}

// put puts points of now, of a metric that no query asks for.
func (s *stage) put(ctx context.Context, n int64) error {
	var points []e2e.Point
	for i := range putPoints {
		points = append(points, e2e.Point{Metric: "beside.compaction", Timestamp: time.Now().UnixMilli(), Value: json.RawMessage(strconv.FormatInt(n, 10)),
			Tags: map[string]string{"host": fmt.Sprint("h", i)}})
	}
	return e2e.Put(ctx, s.set.pushed.PutURL, points)
}
