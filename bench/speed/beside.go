package speed

import (
	"context"

	"downpour/bench"
	"downpour/bench/workload"
)

// besides is a query that is measured beside OpenTSDB.
type besides struct {
	row, what string
	want      float64 // how many times as fast ours is to be
	query     workload.Query
	slack     int64 // seconds by which its times vary
	unit      int64 // of which they are multiples, 0 for 1
	work      int   // points that it reads
}

// besideOpenTSDB measures a query at both servers of the data set, after their answers were
// found equal.
func (s *stage) besideOpenTSDB(ctx context.Context, g group, b besides) error {
	set := &s.set
	c := bench.PairConfig{A: set.tsd, B: set.ours, Rounds: s.cfg.roundsAt(g.scale), Slack: b.slack, Unit: b.unit, Seed: s.cfg.Data.Seed,
		Prefix: g.scale + " " + g.form + ", ", Work: int64(b.work), Queries: []workload.Query{b.query}}
	steps, err := c.Steps(ctx)
	if err != nil {
		return err
	}
	figures, err := s.measure(ctx, set.ours, steps, 1, c.Rounds)
	if err != nil {
		return err
	}
	s.aim(faster(b.row, g, b.what, b.want, figures[c.Name(b.query, set.ours)], figures[c.Name(b.query, set.tsd)], "OpenTSDB, same tables"))
	return nil
}
