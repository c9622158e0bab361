package gateway

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"downpour/gateway/admin/activity"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/pushdown/process/list"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rollup"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/rpc/client"
)

// queries is how questions are answered from the store.
type queries struct {
	*common
	dial    client.Options   // to pushdown servers
	clients []*client.Client // of those in the settings
	found   found
	exec    *dispatch.Executor
	results *resultCache
	engine  *engine.Engine
	listed  *querylog.Log
	ended   activity.Queries // lately, for operators
}

// resultCache is the result cache with its bound.
type resultCache struct {
	*resultcache.Cache
	bytes int64 // that it may hold
}

// newResultCache returns the result cache of the settings. It comes before the other caches: each
// leaves half of what it finds.
func newResultCache(c *common) (*resultCache, error) {
	bytes, err := c.cfg.ResultCacheBytes()
	if err != nil {
		return nil, err
	}
	bytes = c.memory.Cache(bytes)
	r := &resultCache{resultcache.New(bytes, c.log), bytes}
	c.count.registry.MustRegister(resultcache.Metrics(r.Cache), memory.Metrics(c.memory))
	return r, nil
}

// newQueries returns what answers queries, from rollups too, if they are not nil. It is to be
// closed, also after an error.
func newQueries(c *common, n *names, rollups *rollup.Config, results *resultCache) (*queries, error) {
	q := &queries{common: c, results: results}
	servers, err := q.connect()
	if err != nil {
		return q, err
	}
	q.listed = &querylog.Log{Slow: querylog.Slow{From: c.cfg.SlowQuery, Log: c.log}, Done: q.done}
	q.exec = dispatch.New(dispatch.Config{
		Store:        c.store,
		SideBySide:   c.cfg.Embedded(),
		Servers:      servers,
		Rollups:      c.cfg.RollupTables(),
		ResultCache:  results.Cache,
		Seek:         c.cfg.SeekMemory(),
		HelloTimeout: c.cfg.PushdownPatience,
		Log:          c.log,
	})
	q.engine = engine.New(engine.Config{
		Names:        n.Dictionary,
		Exec:         q.exec,
		Compile:      c.cfg.compileWith(rollups),
		RollupProver: c.prover(rollups),
		Now:          c.cfg.Now,
		Budget:       c.limits.Budget,
		Near:         n.completion.Near,
		Log:          c.log,
	})
	c.count.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "downpour_query_shared_total",
		Help: "Sub-queries answered by the execution of an equal one."},
		func() float64 { return float64(q.engine.SharedAnswers()) }))
	return q, nil
}

// done notes a query that has ended, for operators.
func (q *queries) done(d *querylog.Done) {
	q.ended.Add(time.Now(), d.Took, d.Bytes, d.Points, func() *activity.Query {
		return &activity.Query{
			Route:    d.Route,
			Query:    d.Query(),
			Client:   d.Client,
			Token:    d.Token,
			Request:  d.Request,
			Start:    d.Start,
			Took:     d.Took,
			Status:   d.Status,
			Failure:  d.Failure,
			Rows:     d.Rows,
			Points:   d.Points,
			Bytes:    d.Bytes,
			Answered: d.Answered,
		}
	})
}

// connect makes a client of each configured pushdown server; servers that are found come later. It calls none of them:
// a server that cannot be reached makes queries slower but does not fail them.
func (q *queries) connect() ([]dispatch.Server, error) {
	token, err := q.tokens.Sends(auth.Read)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_TOKEN_FILE: %w", err)
	}
	tls, err := q.cfg.PushdownTLS(q.log)
	if err != nil {
		return nil, err
	}

	q.dial = client.Options{Token: token, TLS: tls, Stall: q.cfg.PushdownPatience}
	if q.cfg.Network != nil {
		q.dial.Dial = q.cfg.Network.DialContext
	}
	if q.cfg.findsPushdown() {
		return nil, nil
	}
	servers, unusable, err := list.Usable(q.cfg.Pushdown, func(address string) (dispatch.Server, error) {
		if err := settings.CheckAddress("DOWNPOUR_PUSHDOWN", address); err != nil {
			return nil, err
		}
		c, err := client.New(address, q.dial)
		if err != nil {
			return nil, fmt.Errorf("DOWNPOUR_PUSHDOWN: %w", err)
		}
		q.clients = append(q.clients, c)
		return c, nil
	})
	list.Warn(q.log, "DOWNPOUR_PUSHDOWN", unusable)
	return servers, err
}

// close closes the connections to pushdown servers.
func (q *queries) close() {
	for _, c := range q.clients {
		c.Close()
	}
	q.found.close()
}
