package speed

import (
	"context"
	"fmt"
	"net/url"

	"downpour/bench"
	"downpour/bench/workload"
)

// twoMetrics is an expression of the sum and the maximum of all series by region.
const twoMetrics = `{"time":{"start":%%d,"end":%%d,"aggregator":"sum","downsampler":{"interval":"5m","aggregator":"avg"}},
 "filters":[{"id":"f","tags":[{"type":"wildcard","tagk":"region","filter":"*","groupBy":true}]}],
 "metrics":[{"id":"a","metric":%[1]q,"filter":"f"},{"id":"b","metric":%[1]q,"filter":"f","aggregator":"max"}],
 "expressions":[{"id":"e","expr":"100 * a / (b * 112)","join":{"operator":"intersection"}}]}`

// expressions measures an expression over the data set beside OpenTSDB, and a picture of
// four lines beside the query whose lines it draws.
func expressions(ctx context.Context, s *stage, g group) error {
	set, err := s.useSet(ctx, g)
	if err != nil {
		return err
	}
	whole := set.data.Whole("sum:5m-avg:%s{region=region-0|region-1|region-2|region-3}")
	if g.has("exp") {
		q := workload.Query{Start: set.data.Start, End: set.data.End() - 1, M: "exp of two metrics", Expression: fmt.Sprintf(twoMetrics, set.data.Metric())}
		b := besides{row: "exp", what: "expression of two metrics by region, compacted rows", want: 5, query: q, slack: slack, work: 2 * set.data.Points()}
		if err := s.besideOpenTSDB(ctx, g, b); err != nil {
			return err
		}
	}
	if !g.has("picture") {
		return nil
	}

	picture := workload.Query{Path: fmt.Sprintf("/q?start=%d&end=%d&m=%s&png&wxh=1024x768", whole.Start, whole.End, url.QueryEscape(whole.M))}
	var steps []bench.Step
	for _, q := range []workload.Query{whole, picture} {
		variants := workload.Take(s.cfg.Rounds+2, q.Vary(slack, 1, s.cfg.Data.Seed))
		steps = append(steps, bench.Step{Name: "four lines, " + map[bool]string{true: "picture", false: "answer"}[q.Path != ""], Unit: "points", Work: int64(set.data.Points()),
			Run: bench.Timed(func(ctx context.Context, round int) error {
				// The two warm rounds have negative numbers, and ask the last variants.
				return set.ours.Drain(ctx, variants[(round+len(variants))%len(variants)])
			})})
	}
	figures, err := s.measure(ctx, set.ours, steps, 2, s.cfg.Rounds)
	if err != nil {
		return err
	}
	s.aim(within("picture", g, "/q?png of four lines, 1024x768", 10, figures[steps[1].Name], figures[steps[0].Name], "the answer that it draws"))
	return nil
}
