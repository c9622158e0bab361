package bench

import (
	"context"
	"fmt"
	"time"

	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
)

// PairConfig says which two systems are compared.
type PairConfig struct {
	A, B    *peer.Server // the times of B are given as multiples of those of A
	Queries []workload.Query
	Rounds  int
	// Slack is by how many seconds the times of queries vary at most, and Unit of what
	// they are multiples. Default an hour and 1.
	Slack, Unit int64
	Seed        uint64
	// Verify is how many variants of a query are compared before anything is timed.
	// Default 2.
	Verify   int
	Prefix   string // before the names of figures
	Work     int64  // number of points that a query reads, 0 if unknown
	Progress *progress.Progress
}

// Pair asks two systems the same queries in turn. It compares their answers first, and
// ends with an error if they differ.
func Pair(ctx context.Context, c PairConfig) ([]report.Figure, error) {
	steps, err := c.Steps(ctx)
	if err != nil {
		return nil, err
	}
	return Interleave(ctx, steps, 1, c.Rounds, c.Progress)
}

// Steps compares the answers and returns what is to be measured: for every query a step
// of A and a step of B.
func (c PairConfig) Steps(ctx context.Context) (steps []Step, err error) {
	if c.Slack == 0 {
		c.Slack = 3600
	}
	if c.Verify <= 0 {
		c.Verify = 2
	}

	c.Unit = max(c.Unit, 1)

	for _, q := range c.Queries {
		// The rounds ask the first ones; those left over are for warm rounds, see drain.
		variants := workload.Take(c.Rounds+c.Verify, q.Vary(c.Slack, c.Unit, c.Seed))
		for _, v := range variants[:c.Verify] {
			if err := peer.Agree(ctx, c.A, c.B, v); err != nil {
				return nil, err
			}
		}

		a := c.Name(q, c.A)
		for _, s := range []*peer.Server{c.A, c.B} {
			steps = append(steps, Step{Name: c.Name(q, s), Of: a, Work: c.Work, Unit: "points", Run: drain(s, variants)})
		}
	}

	return steps, nil
}

// Changes returns what the figures of Pair say about each query: the ratio of B's time to
// A's.
func Changes(figures []report.Figure, queries []workload.Query, tolerance float64) (all []report.Change) {
	// Changes of A and B stand side by side among the figures, as Steps has made them.
	for i := 0; i+1 < len(figures) && i/2 < len(queries); i += 2 {
		c := report.Change{Row: fmt.Sprintf("query %d", i/2+1), Store: "servers", What: label(queries[i/2]), Unit: report.Seconds, Tolerance: tolerance}
		for n := range min(len(figures[i].Runs), len(figures[i+1].Runs)) {
			c.A, c.B = append(c.A, figures[i].Runs[n].Seconds()), append(c.B, figures[i+1].Runs[n].Seconds())
		}
		c.Compare()
		all = append(all, c)
	}
	return all
}

// label returns the name of a query in reports.
func label(q workload.Query) string {
	if q.M == "" {
		return q.Path
	}
	return q.M
}

// Name returns the name of the figure of a query and a server.
func (c PairConfig) Name(q workload.Query, s *peer.Server) string {
	return c.Prefix + label(q) + ", " + s.Name
}

// drain returns a run that asks the variant of its round. Warm rounds, which have
// negative numbers, ask the last ones.
func drain(s *peer.Server, variants []workload.Query) func(context.Context, int) (time.Duration, error) {
	return Timed(func(ctx context.Context, round int) error {
		return s.Drain(ctx, variants[(round+len(variants))%len(variants)])
	})
}

// Repeat returns a step that asks a server many queries one after another: in round i the
// i-th batch. Warm rounds, which have negative numbers, ask the last ones.
func Repeat(s *peer.Server, of string, name string, batches [][]workload.Query) Step {
	return Step{Name: name, Of: of, Work: int64(len(batches[0])), Unit: "queries", Run: Timed(func(ctx context.Context, round int) error {
		for _, q := range batches[(round+len(batches))%len(batches)] {
			if err := s.Drain(ctx, q); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return nil
	})}
}
