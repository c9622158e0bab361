package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
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
	"downpour/integration/e2e"
	"downpour/pushdown/compaction"
	"downpour/pushdown/store"
)

// compactMargin is more than the clocks of one machine differ.
const compactMargin = time.Second

// Asked and put each second while rows are compacted in the background, and without that; each put has so many points.
const (
	lightQueries = 20
	lightPuts    = 20
	putPoints    = 10
)

// compacts is the step that compacts the rows of the set in a way, and notes what they take on disk then.
func compacts(who string, way func(context.Context, *stage) (time.Duration, error)) step {
	return do(func(ctx context.Context, s *stage) error {
		if err := s.use(ctx); err != nil {
			return err
		}
		f := report.Figure{Name: "row compaction, " + who, Unit: "rows", Work: rowsIn(s.set.data)}
		s.cfg.Progress.Sayf("%s", f.Name)
		took, err := way(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		f.Of = "row compaction, " + peer.OpenTSDB
		f.Runs = append(f.Runs, took)
		s.figures[f.Name] = f
		s.cfg.Report.Figures = append(s.cfg.Report.Figures, f)

		if err := s.set.at.Compact(ctx); err != nil {
			return err
		}
		size, err := s.tableBytes(s.set.at)
		s.bytes[who] = float64(size) / float64(s.set.data.Points())
		return err
	})
}

// compareCompacted compares both ways.
func compareCompacted(_ context.Context, s *stage) error {
	theirs, ours := s.figures["row compaction, "+peer.OpenTSDB], s.figures["row compaction, "+peer.Downpour]
	faster := rate("compaction", 1, "").beside("OpenTSDB's row compaction")
	s.judge(faster, "rows compacted, one region server", ours, theirs)
	const stored, after = "bytes stored per point after row compaction", "after OpenTSDB's, HBase files"
	s.cfg.add(s.amounts("compaction", stored, after, 1, s.bytes[peer.Downpour], s.bytes[peer.OpenTSDB], inBytes))
	return nil
}

// rowsIn is the number of rows of a data set.
func rowsIn(d workload.Devops) int64 { return int64(d.Series() * d.Hours) }

// endedLately is the data set in hours that have ended lately, where the work in the background begins.
func endedLately(c *Config, scale string) workload.Devops {
	d := c.dataAt(scale)
	now := time.Now().Unix()
	d.Start = now - now%encoding.RowSeconds - int64(d.Hours+1)*encoding.RowSeconds
	return d
}

// fillCells writes a cell a point, and waits until none is too young to be compacted.
func fillCells(ctx context.Context, s *stage) error {
	if err := fillRows(ctx, s); err != nil {
		return err
	}
	if !bench.Until(ctx, time.Now().Add(2*compactMargin)) {
		return ctx.Err()
	}
	return nil
}

// renewed makes the data set from scratch.
func renewed(ctx context.Context, s *stage) error {
	s.dropSet()
	return s.use(ctx)
}

// compactOurs compacts the rows of the set as gateway compact does.
func compactOurs(ctx context.Context, s *stage) (time.Duration, error) {
	at := s.set.at
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
	if counts.Compacted != rowsIn(s.set.data) {
		return 0, fmt.Errorf("got %v, want %d rows compacted", &counts, rowsIn(s.set.data))
	}
	return took, nil
}

// compactTheirs has a TSD compact the rows, as it does with rows that it reads. The time is
// that from the query until each row has one cell, and has the query in it, as ours has the
// reading of the rows.
func compactTheirs(ctx context.Context, s *stage) (time.Duration, error) {
	server, err := s.side(ctx, compactingTSD)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := server.Drain(ctx, s.set.whole(sum)); err != nil {
		return 0, err
	}
	err = untilCells(ctx, s.set.at, rowsIn(s.set.data))
	return time.Since(began), errors.Join(err, s.set.at.Stop(compactingTSD))
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

// compactRate is such that the rows last as long as is measured.
func (s *stage) compactRate() int64 {
	return max(1, rowsIn(s.cfg.dataAt(s.group.scale))/int64(s.cfg.Seconds))
}

// compactsBeside are the settings of a pushdown server that compacts rows in the background.
func compactsBeside(s *stage) map[string]string {
	state := s.set.at.Tables.Data + "-state"
	s.set.at.More = append(s.set.at.More, state)
	return map[string]string{
		"DOWNPOUR_COMPACT":        strconv.FormatInt(s.compactRate(), 10),
		"DOWNPOUR_COMPACT_MARGIN": compactMargin.String(),
		"DOWNPOUR_TABLE_STATE":    state,
	}
}

// begun ends the pushdown server that compacts nothing.
func begun(_ context.Context, s *stage) error { return s.set.at.Stop(pushed) }

// ended waits until all rows are compacted, and compares the answer with the one before.
func ended(ctx context.Context, s *stage) error {
	stats, err := cellsIn(ctx, s.set.at)
	if err != nil {
		return err
	}
	s.cfg.Report.Note("row compaction beside light queries and puts: %d cells are left of %d after %d s",
		stats.Cells, s.set.data.Points(), s.cfg.Seconds)
	// The rows of the points that were put in the meantime are of an hour that goes on.
	if err := untilCells(ctx, s.set.at, rowsIn(s.set.data)+s.lightly); err != nil {
		return err
	}
	before := s.answer
	if err := keepAnswer(compactor)(ctx, s); err != nil {
		return err
	}
	if !slices.Equal(before, s.answer) {
		return errors.New("sum:5m-avg has another answer after row compaction than before")
	}
	return nil
}

// keepAnswer keeps the answer of a side for ended.
func keepAnswer(side string) do {
	return func(ctx context.Context, s *stage) error {
		server, err := s.side(ctx, side)
		if err == nil {
			s.answer, err = server.Ask(ctx, s.set.whole(sum))
		}
		return err
	}
}

// lightly is the step that asks one host of all of a side, and puts some points, for a while. Its figures are p99.
type lightly struct {
	side, when string
	aims       [2]aim // of queries and of puts
}

func (l lightly) run(ctx context.Context, s *stage) error {
	server, err := s.side(ctx, l.side)
	if err != nil {
		return err
	}
	// The first put gives the names their UIDs.
	if err := put(ctx, server, 0); err != nil {
		return err
	}
	asking := loop{
		sides:   []string{l.side},
		name:    "queries " + l.when,
		queries: someHosts,
		rate:    perSecondOf(lightQueries),
		burst:   1,
	}
	name := s.text("puts " + l.when)
	ask := func(ctx context.Context) error { return asking.run(ctx, s) }
	puts, err := atOnce(ctx, ask, func(ctx context.Context) (report.Latency, error) {
		return putLightly(ctx, server, time.Duration(s.cfg.Seconds)*time.Second, name)
	})
	if err != nil {
		return err
	}
	s.cfg.Report.Latencies = append(s.cfg.Report.Latencies, puts)
	s.lightly += (puts.Requests + 1) * putPoints
	s.figures[name+", p99"] = report.Figure{Name: name + ", p99", Runs: []time.Duration{puts.At(99)}}
	for i, what := range []string{"one host of all", "put of 10 points"} {
		kind := [2]string{"queries ", "puts "}[i]
		what = s.text(what + " " + l.when + " in the background, p99")
		s.judge(l.aims[i], what, s.figures[s.text(kind+l.when)+", p99"], s.figures[l.aims[i].than])
	}
	return nil
}

// perSecondOf is a rate that is known.
func perSecondOf(rate float64) func(context.Context, *stage) (float64, error) {
	return func(context.Context, *stage) (float64, error) { return rate, nil }
}

// someHosts yields queries for one host of all, one after another.
func someHosts(s *stage) iter.Seq[workload.Query] {
	return func(yield func(workload.Query) bool) {
		for i := 0; yield(s.set.data.OneHost((17 + 31*i) % s.set.data.Hosts)); i++ {
		}
	}
}

// putLightly puts some points at random times, that are due beforehand, for a while.
func putLightly(
	ctx context.Context, server *peer.Server, length time.Duration, name string,
) (report.Latency, error) {
	response, service := report.NewHistogram(), report.NewHistogram()
	rng := rand.New(rand.NewPCG(1, 5))
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
