package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/place"
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
func compacting(ctx context.Context, s *stage) error {
	d := s.cfg.dataAt(s.group.scale)
	// Hours that have ended lately, where the work in the background begins.
	now := time.Now().Unix()
	d.Start = now - now%encoding.RowSeconds - int64(d.Hours+1)*encoding.RowSeconds
	var figures [2]report.Figure
	var size [2]float64
	for i, way := range []struct {
		who     string
		compact func(context.Context, *place.Place, workload.Devops) (time.Duration, error)
	}{{"OpenTSDB", s.compactTheirs}, {"Downpour", s.compactOurs}} {
		f := report.Figure{Name: "row compaction, " + way.who, Unit: "rows", Work: rowsIn(d)}
		err := s.onCells(ctx, d, func(at *place.Place) error {
			s.cfg.Progress.Sayf("%s", f.Name)
			took, err := way.compact(ctx, at, d)
			if err != nil {
				return err
			}
			f.Runs = append(f.Runs, took)
			if err := at.Compact(ctx); err != nil {
				return err
			}
			bytes, err := s.tableBytes(at)
			size[i] = float64(bytes) / float64(d.Points())
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		figures[i] = f
	}
	theirs, ours := figures[0], figures[1]
	ours.Of = theirs.Name
	s.cfg.Report.Figures = append(s.cfg.Report.Figures, ours, theirs)
	aimed := rate("compaction", 1, "").beside("OpenTSDB's row compaction")
	s.judge(aimed, "rows compacted, one region server", ours, theirs)
	inBytes := func(x float64) string { return fmt.Sprintf("%.2f B", x) }
	const stored, after = "bytes stored per point after row compaction", "after OpenTSDB's, HBase files"
	s.cfg.add(s.amounts("compaction", stored, after, 1, size[1], size[0], inBytes))

	return s.onCells(ctx, d, func(at *place.Place) error {
		return (&compactionBeside{s, at, d}).measure(ctx)
	})
}

// rowsIn is the number of rows of a data set.
func rowsIn(d workload.Devops) int64 { return int64(d.Series() * d.Hours) }

// onCells loads the data set into new tables with a cell a point, waits until none is too young to be compacted, and
// drops the tables after do.
func (s *stage) onCells(ctx context.Context, d workload.Devops, do func(at *place.Place) error) error {
	at, err := s.maker.OnHBase(ctx, nil)
	defer at.Drop()
	if err != nil {
		return err
	}
	s.cfg.Progress.Sayf("loading %s", d)
	if _, err := s.load(ctx, at, d, write.Single); err != nil {
		return err
	}
	if !bench.Until(ctx, time.Now().Add(2*compactMargin)) {
		return ctx.Err()
	}
	return do(at)
}

// compactOurs compacts the rows of a place as gateway compact does.
func (s *stage) compactOurs(ctx context.Context, at *place.Place, d workload.Devops) (time.Duration, error) {
	versioned := at.Store().Features().Versioned
	if versioned == nil {
		return 0, errors.New("the store keeps no versions of cells")
	}
	var counts compaction.Counts
	job := compaction.Job{
		Store:   versioned,
		Table:   at.Tables.Data,
		Schema:  encoding.DefaultSchema(),
		Margin:  compactMargin,
		Now:     time.Now,
		Reached: func(c compaction.Counts, _ []byte) { counts.Add(&c) },
	}
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
func (s *stage) compactTheirs(ctx context.Context, at *place.Place, d workload.Devops) (took time.Duration, err error) {
	server, err := at.Server(ctx, place.Side{Name: "compacting", System: peer.OpenTSDB, TSD: map[string]string{
		"tsd.storage.enable_compaction":              "true",
		"tsd.storage.compaction.flush_interval":      "1",
		"tsd.storage.compaction.min_flush_threshold": "1",
	}})
	if err != nil {
		return 0, err
	}
	s.cfg.Report.AddPeer(server.Peer)
	began := time.Now()
	if err := server.Drain(ctx, d.Whole(sum)); err != nil {
		return 0, err
	}
	err = untilCells(ctx, at, rowsIn(d))
	return time.Since(began), errors.Join(err, at.Stop())
}

// untilCells waits until the data table has at most so many cells.
func untilCells(ctx context.Context, at *place.Place, most int64) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return e2e.Until(ctx, 500*time.Millisecond, func(ctx context.Context) error {
		stats, err := cellsIn(ctx, at)
		if err == nil && stats.Cells > most {
			err = fmt.Errorf("the table has %d cells, want %d at most", stats.Cells, most)
		}
		return err
	})
}

// compactionBeside measures light queries and puts, by a gateway with a pushdown server, without
// and with compaction in the background, and the large query before and after it.
type compactionBeside struct {
	*stage
	at   *place.Place
	data workload.Devops
}

// server is the gateway with a pushdown server that compacts so many rows a second, 0 for none.
func (c *compactionBeside) server(ctx context.Context, rows int64) (*peer.Server, error) {
	side := place.Side{Name: pushed, Pushed: true, Env: c.cfg.ScanEnv, PushdownEnv: c.cfg.ScanEnv}
	if rows > 0 {
		state := c.at.Tables.Data + "-state"
		c.at.More = append(c.at.More, state)
		side.PushdownEnv = maps.Clone(c.cfg.ScanEnv)
		if side.PushdownEnv == nil {
			side.PushdownEnv = map[string]string{}
		}
		maps.Copy(side.PushdownEnv, map[string]string{
			"DOWNPOUR_COMPACT":        strconv.FormatInt(rows, 10),
			"DOWNPOUR_COMPACT_MARGIN": compactMargin.String(),
			"DOWNPOUR_TABLE_STATE":    state,
		})
	}
	server, err := c.at.Server(ctx, side)
	if err == nil {
		c.cfg.Report.AddPeer(server.Peer)
	}
	return server, err
}

func (c *compactionBeside) measure(ctx context.Context) error {
	server, err := c.server(ctx, 0)
	if err != nil {
		return err
	}
	whole := c.data.Whole(sum)
	answer, err := server.Ask(ctx, whole)
	if err != nil {
		return err
	}
	before, err := c.large(ctx, server, whole, "before row compaction")
	if err != nil {
		return err
	}
	without, err := c.light(ctx, server, "without compaction", 1)
	if err != nil {
		return err
	}

	// The rate is such that the rows last as long as is measured.
	if err := c.at.Stop(); err != nil {
		return err
	}
	rate := max(1, rowsIn(c.data)/int64(c.cfg.Seconds))
	if server, err = c.server(ctx, rate); err != nil {
		return err
	}
	busy, err := c.light(ctx, server, fmt.Sprintf("beside compaction of %d rows/s", rate), 2)
	if err != nil {
		return err
	}
	stats, err := cellsIn(ctx, c.at)
	if err != nil {
		return err
	}
	c.cfg.Report.Note("row compaction beside light queries and puts: %d cells are left of %d after %d s",
		stats.Cells, c.data.Points(), c.cfg.Seconds)
	for i, what := range []string{"one host of all", "put of 10 points"} {
		what := fmt.Sprintf("%s beside compaction of %d rows/s in the background, p99", what, rate)
		c.judge(within("compaction", 1.2, "").beside("without"), what, busy[i], without[i])
	}

	// The rows of the points that were put meanwhile are of an hour that goes on.
	if err := untilCells(ctx, c.at, rowsIn(c.data)+2*int64(c.cfg.Seconds)*lightPuts*putPoints+putPoints); err != nil {
		return err
	}
	again, err := server.Ask(ctx, whole)
	if err != nil {
		return err
	}
	if !slices.Equal(answer, again) {
		return errors.New("sum:5m-avg has another answer after row compaction than before")
	}
	after, err := c.large(ctx, server, whole, "after row compaction")
	if err != nil {
		return err
	}
	c.judge(faster("compaction", 2, "").beside("before it"), "sum:5m-avg after row compaction", after, before)
	return nil
}

// large measures the large query.
func (c *compactionBeside) large(
	ctx context.Context, server *peer.Server, q workload.Query, when string,
) (report.Figure, error) {
	name := "sum:5m-avg " + when
	ask := bench.Timed(func(ctx context.Context, _ int) error { return server.Drain(ctx, q) })
	steps := []bench.Step{{Name: name, Work: int64(c.data.Points()), Unit: "points", Run: ask}}
	figures, err := c.stage.measure(ctx, steps, 1, c.cfg.Rounds)
	return figures[name], err
}

// putPoints is the number of points of a light put.
const putPoints = 10

// light asks and puts lightly for some seconds, and returns the 99th percentiles of queries
// and of puts.
func (c *compactionBeside) light(
	ctx context.Context, server *peer.Server, when string, seed uint64,
) (p99 [2]report.Figure, err error) {
	c.cfg.Progress.Sayf("light queries and puts %s", when)
	// The first put gives the names their UIDs.
	if err := put(ctx, server, 0); err != nil {
		return p99, err
	}
	length := time.Duration(c.cfg.Seconds) * time.Second
	hosts := func(yield func(workload.Query) bool) {
		for i := 0; yield(c.data.OneHost((17 + 31*i) % c.data.Hosts)); i++ {
		}
	}
	queries := bench.ReplayConfig{
		Server: server, Queries: hosts, Duration: length, Rate: lightQueries, Seed: seed, Name: "queries " + when,
	}
	asked, put, err := atOnce(ctx, replaying(queries), func(ctx context.Context) (report.Latency, error) {
		return putLightly(ctx, server, length, "puts "+when, seed)
	})
	if err != nil {
		return p99, err
	}
	all := []report.Latency{asked, put}
	c.cfg.Report.Latencies = append(c.cfg.Report.Latencies, all...)
	for i, l := range all {
		p99[i] = report.Figure{Name: l.Name + ", p99", Runs: []time.Duration{l.At(99)}}
	}
	return p99, nil
}

// putLightly puts some points at random times, that are due beforehand, for a while.
func putLightly(
	ctx context.Context, server *peer.Server, length time.Duration, name string, seed uint64,
) (report.Latency, error) {
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
		if err := put(ctx, server, n+1); err != nil {
			return report.Latency{}, err
		}
		response.Record(time.Since(due))
		service.Record(time.Since(sent))
	}
	return report.NewLatency(name, fmt.Sprintf("open, %d a second", lightPuts), response, service, 0), nil
}

// put puts points of now, of a metric that no query asks for.
func put(ctx context.Context, server *peer.Server, n int64) error {
	var points []e2e.Point
	for i := range putPoints {
		points = append(points, e2e.Point{
			Metric:    "beside.compaction",
			Timestamp: time.Now().UnixMilli(),
			Value:     json.RawMessage(strconv.FormatInt(n, 10)),
			Tags:      map[string]string{"host": fmt.Sprint("h", i)},
		})
	}
	return e2e.Put(ctx, server.PutURL, points)
}
