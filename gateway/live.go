package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/ws"
	"downpour/gateway/live"
	"downpour/gateway/live/changefeed"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/exp"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// liveQueries keeps answers up to date, and sends them over WebSockets.
type liveQueries struct {
	*common
	engine  *engine.Engine
	hub     *live.Hub
	sockets *ws.Server
}

// newLiveQueries returns the live queries. report returns the text of /api/ops, which sockets of operators get.
func newLiveQueries(c *common, q *queries, report func(context.Context) ([]byte, error)) *liveQueries {
	l := &liveQueries{common: c, engine: q.engine}
	feed := changefeed.New(changefeed.Config{
		Engine:     q.engine,
		Store:      c.store,
		Zone:       c.zone,
		Fix:        c.fix,
		SubQueries: c.cfg.subQueries(),
		Timeout:    c.cfg.QueryTimeout,
		Refusal:    refusal,
		Log:        c.log,
	})
	l.hub = live.New(live.Config{
		Ask:        l.ask,
		OpenSource: feed.Open,
		Ignored:    l.ignored,
		Enter:      l.enter,
		MaxBytes:   c.memory.Cache(live.DefaultMaxBytes),
		MaxSending: c.memory.Cache(live.DefaultMaxBytes),
		Memory:     c.memory,
		Log:        c.log,
	})
	l.sockets = ws.New(ws.Config{
		Hub:          l.hub,
		AllowOrigins: c.origins.Allowed,
		Authorize:    c.mayRead,
		Ops:          report,
		AuthorizeOps: c.mayOperate,
		Log:          c.log,
	})
	c.count.registry.MustRegister(liveCounts{l.hub, feed})
	return l
}

// mayRead reports whether a token may query.
func (c *common) mayRead(token string) bool { return c.tokens.Check(token)&auth.Read != 0 }

// mayOperate reports whether a token may see the report.
func (c *common) mayOperate(token string) bool { return c.tokens.Check(token)&auth.Admin != 0 }

// ask answers a live query at a moment, with the answer that the query over HTTP
// has at that moment.
func (l *liveQueries) ask(ctx context.Context, q live.Question, now time.Time) (live.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.QueryTimeout)
	defer cancel()

	ask := l.askQuery
	if q.Exp {
		ask = l.askExp
	}
	a, err := ask(ctx, q.Body, l.parser(now))
	if err != nil {
		return live.Answer{}, refusal(err)
	}
	return a, nil
}

// askQuery answers as POST /api/query does.
func (l *liveQueries) askQuery(
	ctx context.Context, body json.RawMessage, parser query.Parser,
) (a live.Answer, err error) {
	q, err := parser.JSON(body)
	if err != nil {
		return a, err
	}
	q.AllowPartial = allowsPartial(body)

	results, stats, err := l.engine.Run(ctx, q, engine.Options{})
	if err != nil {
		return a, err
	}
	return live.Answer{
		Results: changefeed.LiveResults(results),
		Rows:    stats.Rows,
		Missing: httpio.HexRanges(stats.Missing),
		Damaged: stats.Damaged,
	}, nil
}

// askExp answers as POST /api/query/exp does.
func (l *liveQueries) askExp(
	ctx context.Context, body json.RawMessage, parser query.Parser,
) (a live.Answer, err error) {
	x, err := engine.ReadExpressions(ctx, body, parser)
	if err != nil {
		return a, err
	}

	results, stats, err := l.engine.Run(ctx, x.Query, engine.Options{})
	if err != nil {
		return a, err
	}
	shown, _, err := changefeed.TableResults(ctx, x, results)
	if err != nil {
		return a, err
	}
	return live.Answer{Results: shown, Rows: stats.Rows, Damaged: stats.Damaged}, nil
}

// ignored returns what a query has that means nothing, as the header Warning does over HTTP. A query that does not
// parse has nothing: its answer is the error.
func (l *liveQueries) ignored(q live.Question) []string {
	if q.Exp {
		x, err := engine.ReadExpressions(context.Background(), q.Body, l.parser(time.Now()))
		if err != nil {
			return nil
		}
		return x.Query.Ignored()
	}
	plain, err := l.parser(time.Now()).JSON(q.Body)
	if err != nil {
		return nil
	}
	return plain.Ignored()
}

// enter applies the limits of queries to one evaluation of a live query, and
// accounts for the memory that it takes until the hub has its answer. The hub
// accounts for the answer itself.
func (l *liveQueries) enter(ctx context.Context) (context.Context, func()) {
	ctx, entry := l.limits.Enter(ctx, memory.Live)
	return ctx, entry.Close
}

// allowsPartial reports whether a query over WebSocket may have an incomplete answer:
// if it says so, and if it has an end. Without an end its answer is kept up to date,
// and for that it must be complete.
func allowsPartial(body json.RawMessage) bool {
	var q struct {
		AllowPartial bool `json:"allowPartial"`
		End          any  `json:"end"`
	}
	return json.Unmarshal(body, &q) == nil && q.AllowPartial && q.End != nil && q.End != ""
}

// refusal returns an error with the status and the words that it has over HTTP. A
// temporary one keeps a live query waiting: a store that does not answer, a name that
// has no UID yet, or points whose expression cannot be computed.
func refusal(err error) error {
	answer := httpio.Classify(err)
	status := answer.Code
	var unknown *query.UnknownNameError
	var data *exp.DataError
	temporary := errors.As(err, &unknown) || errors.As(err, &data) || status == http.StatusServiceUnavailable ||
		status == http.StatusRequestTimeout || status == http.StatusFailedDependency
	return &live.Error{Code: status, Message: answer.Message, Temporary: temporary, Suggestions: answer.Suggestions}
}
