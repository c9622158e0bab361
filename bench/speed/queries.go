package speed

import (
	"context"
	"fmt"
	"slices"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/workload"
	"downpour/encoding"
)

// scanQuery is one of the large queries, and what becomes of it.
type scanQuery struct {
	m string // with %s for the metric
	// Rows of the table, empty for none, with the aim: so many times as fast as
	// OpenTSDB, at most so many times the bare scan.
	row, floorRow      string
	faster, timesFloor float64
}

// scanQueries are those of each form of rows.
var scanQueries = map[string][]scanQuery{
	compacted: {
		{"sum:5m-avg:%s", "compacted", "floor", 5, 1.8},
		{"sum:5m-avg:%s{region=*}", "compacted", "floor", 5, 1.8},
		{"sum:5m-avg:%s{host=*}", "", "floor", 0, 4},
		{"avg:5m-max:%s{host=*}", "maxima", "", 2.5, 0},
		{"sum:%s", "raw", "", 4, 0},
		{"sum:rate:%s", "raw", "", 4, 0},
	},
	cells: {
		{"sum:5m-avg:%s", "uncompacted", "uncompacted", 2.2, 1.2},
		{"sum:5m-avg:%s{region=*}", "uncompacted", "uncompacted", 2.2, 1.2},
		{"avg:5m-max:%s{host=*}", "maxima-cells", "", 2, 0},
	},
}

// scanners is how many read side by side in the bare scan: more than one helps
// where a row has many cells.
var scanners = map[string]int{compacted: 1, cells: 2}

// rowsOf says in words which rows are read.
var rowsOf = map[string]string{compacted: "compacted rows", cells: "uncompacted rows"}

// slack varies the times of large queries inside their first and last hour, so
// that all rounds read the same rows.
const slack = 3600

// scans measures the large queries beside OpenTSDB and beside the bare scan of
// the same rows.
func scans(ctx context.Context, s *stage, g group) error {
	set, err := s.useSet(ctx, g)
	if err != nil {
		return err
	}
	rounds, warm, verify := s.cfg.roundsAt(g.scale), 2, 2
	if g.scale != "1x" {
		warm, verify = 0, 1 // rounds are long, and comparing the answers has warmed both
	}

	var wanted []scanQuery
	for _, q := range scanQueries[g.form] {
		if g.has(q.row) || g.has(q.floorRow) {
			wanted = append(wanted, q)
		}
	}

	c := bench.PairConfig{A: set.tsd, B: set.ours, Rounds: rounds, Slack: slack, Verify: verify, Seed: s.cfg.Data.Seed,
		Prefix: g.scale + " " + g.form + ", ", Work: int64(set.data.Points())}
	for _, q := range wanted {
		c.Queries = append(c.Queries, set.data.Whole(q.m))
	}

	s.cfg.Progress.Sayf("comparing answers, then measuring %s", g)
	steps, err := c.Steps(ctx)
	if err != nil {
		return err
	}
	bare := fmt.Sprintf("%sbare scan, scanners: %d", c.Prefix, scanners[g.form])
	steps = append(steps, s.bareScan(bare))
	figures, err := s.measure(ctx, set.ours, steps, warm, rounds)
	if err != nil {
		return err
	}

	s.cfg.Report.Cache = "block cache and servers warm; times of queries vary from round to round"
	for i, q := range wanted {
		text := fmt.Sprintf("%s, %s", shortName(q.m), rowsOf[g.form])
		ours, theirs := figures[c.Name(c.Queries[i], set.ours)], figures[c.Name(c.Queries[i], set.tsd)]
		if g.has(q.row) {
			s.aim(faster(q.row, g, text, q.faster, ours, theirs, "OpenTSDB, same tables"))
		}
		if g.has(q.floorRow) {
			s.aim(within(q.floorRow, g, text, q.timesFloor, ours, figures[bare], "bare scan of the same rows"))
		}
	}

	return nil
}

// shortName is a query without its metric.
func shortName(m string) string {
	var out []byte
	for i := 0; i < len(m); i++ {
		if m[i] == '%' && i+1 < len(m) {
			out = out[:len(out)-1] // the colon before it
			i++
			continue
		}
		out = append(out, m[i])
	}
	return string(out)
}

// bareScan reads the rows of the data set and throws them away.
func (s *stage) bareScan(name string) bench.Step {
	set := s.set
	floor := bench.Floor{Store: s.store, Schema: encoding.DefaultSchema(), Table: set.tables.Data, Metric: set.metric, Scanners: scanners[set.form]}
	return bench.Step{Name: name, Work: int64(set.data.Points()), Unit: "points", Run: bench.Timed(func(ctx context.Context, _ int) error {
		stats, err := floor.Scan(ctx, set.data.Start, set.data.End()-1)
		// In other forms a cell holds many points.
		if want := int64(set.data.Points()); err == nil && set.form == cells && stats.Cells != want {
			return fmt.Errorf("%d cells, want %d", stats.Cells, want)
		}
		return err
	})}
}

// hostsAsked is how many times as many rounds ask for one host.
const hostsAsked = 4

// oneHost measures a query for one host, another one each round.
func oneHost(ctx context.Context, s *stage, g group) error {
	set, err := s.useSet(ctx, g)
	if err != nil {
		return err
	}
	rounds := hostsAsked * s.cfg.roundsAt(g.scale)
	batches := make([][]workload.Query, rounds+2) // the warm round asks what no other asks
	// 389 is a prime: unless Hosts is a multiple of it, no host comes again before all others.
	for i := range batches {
		batches[i] = []workload.Query{set.data.OneHost((i*389 + 17) % set.data.Hosts)}
	}

	want := map[string]float64{compacted: 3, cells: 10}[g.form]
	return s.repeated(ctx, g, set.ours, batches, fmt.Sprintf("one host of %d, %s", set.data.Hosts, rowsOf[g.form]), want)
}

// dashboards measures a dashboard that is asked for again and again, its window
// moved by five minutes inside hours that nobody writes to any more.
func dashboards(ctx context.Context, s *stage, g group) error {
	set, err := s.useSet(ctx, g)
	if err != nil {
		return err
	}
	// No more points than the data set of scale 1x has, or OpenTSDB takes all
	// day.
	hours := max(int64(s.cfg.Data.Hours)*int64(s.cfg.Data.Hosts)/int64(set.data.Hosts)-1, 1)
	batches := make([][]workload.Query, s.cfg.roundsAt(g.scale)+2) // the warm round asks the last one
	for i := range batches {
		batches[i] = set.data.Dashboard(int64(i%12)*300, hours, 11)
	}

	ours, err := s.caching(ctx)
	if err != nil {
		return err
	}
	return s.repeated(ctx, g, ours, batches, fmt.Sprintf("dashboard of %d panels over %d h again and again, %s", len(batches[0]), hours, rowsOf[g.form]), 20)
}

// repeated measures batches of queries. The first two are compared beforehand, and the
// warm round asks the last one.
func (s *stage) repeated(ctx context.Context, g group, ours *peer.Server, batches [][]workload.Query, what string, want float64) error {
	set := s.set
	s.cfg.Progress.Sayf("comparing answers, then measuring %s", g)
	for _, q := range slices.Concat(batches[0], batches[1]) {
		if err := peer.Agree(ctx, set.tsd, ours, q); err != nil {
			return err
		}
	}

	a, b := fmt.Sprintf("%s %s, OpenTSDB", g.scale, what), fmt.Sprintf("%s %s, Downpour", g.scale, what)
	figures, err := s.measure(ctx, ours, []bench.Step{bench.Repeat(set.tsd, "", a, batches), bench.Repeat(ours, a, b, batches)}, 1, len(batches)-2)
	if err != nil {
		return err
	}
	s.aim(faster(g.rows[0], g, what, want, figures[b], figures[a], "OpenTSDB, same tables"))
	return nil
}
