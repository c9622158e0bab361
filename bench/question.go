package bench

import (
	"context"
	"fmt"

	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
)

// Question is what servers are asked in turn, in each round a little different.
type Question struct {
	Name string // of its figures, before that of the server
	Work int64  // what the queries of a round read or are, in Unit
	Unit string
	// Of returns the queries of a round, which are asked one after another. Warm rounds have numbers below 0.
	Of func(round int) []workload.Query
}

// Batches are the queries of so many rounds. Warm rounds ask the last ones.
func Batches(all [][]workload.Query) func(round int) []workload.Query {
	return func(round int) []workload.Query { return all[(round+len(all))%len(all)] }
}

// Varied is one query with other times in each of so many rounds, see workload.Query.Vary. Warm rounds ask the last
// variants.
func Varied(q workload.Query, rounds int, slack, unit int64, seed uint64) func(round int) []workload.Query {
	var all [][]workload.Query
	for _, v := range workload.Take(rounds, q.Vary(slack, unit, seed)) {
		all = append(all, []workload.Query{v})
	}
	return Batches(all)
}

// Agree compares the answers of the first server with those of the others, to the queries of the first rounds.
func (q Question) Agree(ctx context.Context, rounds int, servers ...*peer.Server) error {
	for round := range rounds {
		for _, one := range q.Of(round) {
			for _, other := range servers[1:] {
				if err := peer.Agree(ctx, servers[0], other, one); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// FigureOf returns the name of the question's figure of a server, which is empty where there is only one.
func (q Question) FigureOf(server string) string {
	if server == "" {
		return q.Name
	}
	return q.Name + ", " + server
}

// Step asks a server, in reports called by a name. Its time is a multiple of the figure of.
func (q Question) Step(s *peer.Server, name, of string) Step {
	run := Timed(func(ctx context.Context, round int) error { return q.Ask(ctx, s, round) })
	return Step{Name: q.FigureOf(name), Of: of, Work: q.Work, Unit: q.Unit, Run: run}
}

// Ask asks a server the queries of a round.
func (q Question) Ask(ctx context.Context, s *peer.Server, round int) error {
	for _, one := range q.Of(round) {
		if err := s.Drain(ctx, one); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// PairConfig says which two systems are compared.
type PairConfig struct {
	A, B     *peer.Server // the times of B are given as multiples of those of A
	Queries  []workload.Query
	Rounds   int
	Seed     uint64
	Progress *progress.Progress
}

// Pair asks two systems the same queries in turn, with times that vary by an hour at most. It compares their answers
// first, and ends with an error if they differ.
func Pair(ctx context.Context, c PairConfig) ([]report.Figure, error) {
	const verified, slack = 2, 3600
	var steps []Step
	for _, query := range c.Queries {
		q := Question{Name: Label(query), Unit: "points", Of: Varied(query, c.Rounds+verified, slack, 1, c.Seed)}
		if err := q.Agree(ctx, verified, c.A, c.B); err != nil {
			return nil, err
		}
		for _, s := range []*peer.Server{c.A, c.B} {
			steps = append(steps, q.Step(s, s.Name, q.FigureOf(c.A.Name)))
		}
	}
	return Interleave(ctx, steps, 1, c.Rounds, c.Progress)
}

// Changes returns what the figures of Pair say about each query: the ratio of B's time to
// A's.
func Changes(figures []report.Figure, queries []workload.Query, tolerance float64) (all []report.Change) {
	// Figures of A and B stand side by side, as Pair has made them.
	for i := 0; i+1 < len(figures) && i/2 < len(queries); i += 2 {
		c := report.Change{
			Row: fmt.Sprintf("query %d", i/2+1), Store: "servers", What: Label(queries[i/2]),
			Unit: report.Seconds, Tolerance: tolerance,
		}
		for n := range min(len(figures[i].Runs), len(figures[i+1].Runs)) {
			c.A, c.B = append(c.A, figures[i].Runs[n].Seconds()), append(c.B, figures[i+1].Runs[n].Seconds())
		}
		c.Compare()
		all = append(all, c)
	}
	return all
}

// Label returns the name of a query in reports.
func Label(q workload.Query) string {
	switch {
	case q.Name != "":
		return q.Name
	case q.M != "":
		return q.M
	case q.PromQL != "":
		return q.PromQL
	}
	return q.Line()
}
