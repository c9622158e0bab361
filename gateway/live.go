package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"downpour/gateway/api/httpapi"
	"downpour/gateway/live"
	"downpour/gateway/live/changefeed"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/pushdown/process/memory"
)

// askLive answers a live query at a moment: the same query over HTTP would give
// the same.
func (s *Server) askLive(ctx context.Context, body json.RawMessage, now time.Time) (live.Answer, error) {
	q, err := query.Parser{Now: now, Zone: s.zone, Fix: s.fix, SubQueries: s.cfg.subQueries()}.JSON(body)
	if err != nil {
		return live.Answer{}, refusal(err)
	}
	q.AllowPartial = allowsPartial(body)
	ctx, cancel := context.WithTimeout(ctx, s.cfg.QueryTimeout)
	defer cancel()
	results, stats, err := s.engine.Run(ctx, q)
	if err != nil {
		return live.Answer{}, refusal(err)
	}
	answer := live.Answer{Results: make([]live.Result, len(results)), Rows: stats.Rows, Missing: httpapi.HexRanges(stats.Missing)}
	for i := range results {
		answer.Results[i] = liveResult(&results[i])
	}
	return answer, nil
}

// enterLive bounds an ask of a live query as any query, and gives it an account of
// the memory that it takes until its answer is taken in; what the answer keeps is
// the hub's.
func (s *Server) enterLive(ctx context.Context) (context.Context, func()) {
	ctx, entry := s.limits.Enter(ctx, memory.Live)
	return ctx, entry.Close
}

// allowsPartial tells whether a query over WebSocket may be answered without some
// of its rows: it says so, and it has an end, for what is kept up to date must be
// whole.
func allowsPartial(body json.RawMessage) bool {
	var q struct {
		AllowPartial bool `json:"allowPartial"`
		End          any  `json:"end"`
	}
	return json.Unmarshal(body, &q) == nil && q.AllowPartial && q.End != nil && q.End != ""
}

func liveResult(r *engine.Result) live.Result {
	tags := make(map[string]string, len(r.Tags))
	for _, t := range r.Tags {
		tags[t.K] = t.V
	}
	return live.Result{QueryIndex: r.Query, Metric: r.Metric, Tags: tags, AggregateTags: r.AggregateTags,
		Key: r.Key, Points: r.Points, NaNIsNull: r.NaNIsNull}
}

// followers make the sources of live queries: answers that are kept up to date
// from the rows.
func (s *Server) followers() *changefeed.Followers {
	return changefeed.New(changefeed.Config{Engine: s.engine, Store: s.store, Zone: s.zone, Fix: s.fix, SubQueries: s.cfg.subQueries(), Timeout: s.cfg.QueryTimeout, Refusal: refusal, Log: s.log})
}

// refusal words an error as HTTP would. What may heal by itself, an unknown name
// among it, keeps a live query waiting.
func refusal(err error) error {
	status, message := httpapi.Classify(err)
	var unknown *engine.UnknownNameError
	temporary := errors.As(err, &unknown) || status == http.StatusServiceUnavailable || status == http.StatusRequestTimeout || status == http.StatusFailedDependency
	return &live.Error{Code: status, Message: message, Temporary: temporary}
}
