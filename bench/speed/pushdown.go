package speed

import (
	"context"
	"fmt"
	"maps"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/workload"
	"downpour/integration/e2e"
)

// pushdownQueries are asked through a pushdown server in a process of its own: those of
// which little is left to be done in the gateway, and those of which nearly all is.
func pushdownQueries(d workload.Devops) []workload.Query {
	return []workload.Query{d.Whole("sum:5m-avg:%s"), d.Whole("sum:%s"), d.Whole("sum:rate:%s"), d.Whole("avg:5m-max:%s{host=*}"), d.OneHost(17 % d.Hosts)}
}

// byPushdown measures queries through a pushdown server beside OpenTSDB.
func byPushdown(ctx context.Context, s *stage, g group) error {
	set, err := s.useSet(ctx, g)
	if err != nil {
		return err
	}
	if err := s.startPushed(ctx); err != nil {
		return err
	}

	s.cfg.Progress.Sayf("comparing answers, then measuring %s", g)
	c := bench.PairConfig{A: set.tsd, B: set.pushed, Queries: pushdownQueries(set.data), Rounds: s.cfg.roundsAt(g.scale), Slack: slack, Seed: s.cfg.Data.Seed,
		Prefix: g.scale + " " + g.form + " by a pushdown server, ", Work: int64(set.data.Points())}
	steps, err := c.Steps(ctx)
	if err != nil {
		return err
	}
	figures, err := s.measure(ctx, set.pushed, steps, 2, c.Rounds)
	if err != nil {
		return err
	}

	for _, q := range c.Queries {
		what := fmt.Sprintf("%s by a pushdown server, %s", q.M, rowsOf[g.form])
		s.aim(faster("pushdown", g, what, 4, figures[c.Name(q, set.pushed)], figures[c.Name(q, set.tsd)], "OpenTSDB, same tables"))
	}
	return nil
}

// startPushed starts a pushdown server over the set's tables, with further settings, names and
// values, and a gateway that asks it.
func (s *stage) startPushed(ctx context.Context, more ...string) (err error) {
	if s.set.pushed != nil {
		return nil
	}
	t := s.set.tables
	env := map[string]string{
		"DOWNPOUR_STORE": "hbase:" + s.hbase.Quorum(), "DOWNPOUR_BESIDE": s.hbase.RegionServerAddr(0),
		"DOWNPOUR_TABLE_DATA": t.Data, "DOWNPOUR_TABLE_UID": t.UID, "DOWNPOUR_TABLE_META": t.Meta, "DOWNPOUR_TABLE_TREE": t.Tree,
	}
	maps.Copy(env, s.cfg.ScanEnv)
	for i := 0; i+1 < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	if s.set.pushdown, err = e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: env}); err != nil {
		return err
	}

	gateway := map[string]string{"DOWNPOUR_PUSHDOWN": s.set.pushdown.Addr}
	maps.Copy(gateway, s.cfg.ScanEnv)
	s.set.pushed, err = s.started(peer.StartDownpour(ctx, peer.Options{Quorum: s.hbase.Quorum(), Tables: t, Env: gateway}))
	return err
}
