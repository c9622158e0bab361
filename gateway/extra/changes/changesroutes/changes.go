// Package changesroutes is /api/changes: the series that differ most between a stretch of time and the one before it.
// Each metric is read as a query is, downsampled next to the regions, and what comes back is compared series by
// series.
package changesroutes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra/changes"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/merge"
	"downpour/gateway/uid/completion"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// Bounds of a request.
const (
	defaultLimit  = 50 // series of a list
	mostLimit     = 1000
	defaultBudget = 5 * time.Second
	mostMetrics   = 10_000
	atOnce        = 2   // metrics that are read at a time
	mostListed    = 100 // metrics that an answer names because they were not looked at
)

// New returns the route.
func New() gateway.Extra { return gateway.Extra{Name: "changes", Open: open} }

func open(_ context.Context, c *gateway.Core) (gateway.Parts, error) {
	h := &handlers{c.Queries, c.Metadata.Completion}
	return gateway.Parts{Routes: map[string]httpio.Endpoint{
		"api/changes": {
			Scope:  auth.Read,
			Serve:  h.Followed(h.serve),
			Reads:  httpio.Get,
			Absent: httpio.WriteOnly,
		},
	}}, nil
}

// handlers answer the route, with what answers queries and finds names.
type handlers struct {
	*queryroutes.Handlers
	names *completion.Index
}

// request is one request to /api/changes.
type request struct {
	changes.Stretches
	text   string // words of the metrics' names
	limit  int
	budget time.Duration
}

// serve handles /api/changes. It is bounded, counted, listed and ended as a query is.
func (h *handlers) serve(w http.ResponseWriter, r *http.Request) (err error) {
	start := time.Now()
	defer func() { h.Count(err, start) }()

	asked, err := h.parse(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.Timeout)
	defer cancel()
	names, total, err := h.names.Find(ctx, encoding.UIDMetric, asked.text, mostMetrics)
	if err != nil {
		return err
	}
	q, err := asked.query(names, h.Parser())
	if err != nil {
		return err
	}

	return h.Read(w, r, start, q, func(ctx context.Context, a *queryroutes.Reading) error {
		if err := memory.Reserve(ctx, q.Size()); err != nil {
			return err
		}
		l := &look{request: asked, engine: h.Engine, reading: a, ranking: changes.Ranking{Limit: asked.limit}}
		l.left = left{Metrics: total - len(names), Listed: []missed{}, More: total - len(names)}
		err := l.all(ctx, names, q)
		a.Computed()
		if err != nil {
			return err
		}
		return httpio.WriteJSON(w, r, http.StatusOK, l.answer())
	})
}

// parse reads a request.
func (h *handlers) parse(r *http.Request) (*request, error) {
	method, err := httpio.Method(r)
	switch {
	case err != nil:
		return nil, err
	case method != http.MethodGet && method != http.MethodHead:
		return nil, httpio.MethodNotAllowed(method)
	}

	asked := &request{text: httpio.LastValue(r, "metric")}
	if asked.limit, err = number(r, "limit", defaultLimit, mostLimit); err != nil {
		return nil, err
	}
	if asked.budget, err = h.budget(r); err != nil {
		return nil, err
	}

	from := httpio.LastValue(r, "start")
	if from == "" {
		return nil, httpio.MissingParameter("start")
	}
	start, err := h.Parser().Time(from)
	if err != nil {
		return nil, httpio.BadRequest("start: %s", err)
	}
	end, err := h.Parser().Time(cmp.Or(httpio.LastValue(r, "end"), "now"))
	if err != nil {
		return nil, httpio.BadRequest("end: %s", err)
	}
	if end <= start {
		return nil, httpio.BadRequest("End time [%d] must be greater than the start time [%d]", end, start)
	}
	asked.Stretches = changes.Before(start, end)
	return asked, nil
}

// number reads a parameter from 1 to most.
func number(r *http.Request, name string, otherwise, most int) (int, error) {
	text := httpio.LastValue(r, name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, httpio.BadRequest("%s: got %q, want 1 to %d", name, text, most)
	}
	return n, nil
}

// budget reads the time that reading may take. Queries may not take longer than their timeout.
func (h *handlers) budget(r *http.Request) (time.Duration, error) {
	text := httpio.LastValue(r, "budget")
	if text == "" {
		return min(defaultBudget, h.Timeout), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > h.Timeout {
		return 0, httpio.BadRequest("budget: got %q, want a time such as 5s, at most %s", text, h.Timeout)
	}
	return d, nil
}

// query returns the query of all metrics, each a sub-query: every series by itself, the means of its buckets.
func (r *request) query(metrics []string, parser query.Parser) (*query.Query, error) {
	q := &query.Query{
		StartText:     ms(r.From),
		EndText:       ms(r.End - 1),
		MSResolution:  true,
		NoAnnotations: true,
	}
	for _, name := range metrics {
		q.Queries = append(q.Queries, query.SubQuery{
			Aggregator:     "none",
			Metric:         name,
			DownsampleText: fmt.Sprintf("%ds-avg", r.Step/1000),
			RollupUsage:    query.RollupRaw,
			UseFuzzyFilter: true,
			UseMultiGets:   true,
		})
	}
	if len(metrics) == 0 {
		return q, nil
	}
	return q, parser.Complete(q)
}

func ms(t int64) string { return strconv.FormatInt(t, 10) + "ms" }

// look is the work of a request.
type look struct {
	*request
	engine  *engine.Engine
	reading *queryroutes.Reading

	mu      sync.Mutex
	ranking changes.Ranking
	left    left
	looked  int // metrics
}

// errBudget ends the reading when its time is over.
var errBudget = errors.New("the time budget is over")

// all looks at the metrics, until the budget is over.
func (l *look) all(ctx context.Context, names []string, q *query.Query) error {
	work, cancel := context.WithTimeoutCause(ctx, l.budget, errBudget)
	defer cancel()
	var running errgroup.Group
	running.SetLimit(atOnce)
	failed := make(chan error, len(names)) // the first is the request's error
	for i := range names {
		if len(failed) > 0 {
			break
		}
		running.Go(func() error {
			one := *q
			one.Queries = q.Queries[i : i+1 : i+1]
			err := l.metric(work, &one)
			switch {
			case err == nil:
			case ctx.Err() == nil && context.Cause(work) == errBudget:
				l.miss(names[i], fmt.Sprintf("the time budget of %s was over", l.budget))
			case ctx.Err() == nil && httpio.Classify(err).Code < http.StatusInternalServerError:
				l.miss(names[i], err.Error()) // as of a metric that is too large for a query
			default:
				failed <- err
			}
			return nil
		})
	}
	_ = running.Wait() // the errors are in failed
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// metric reads the one metric of a query and adds its series to the ranking, all or, if it fails, none.
func (l *look) metric(ctx context.Context, q *query.Query) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	answer, err := l.engine.Open(ctx, q, engine.Options{})
	var unknown *query.UnknownNameError
	switch {
	case errors.As(err, &unknown): // deleted since it was found
		answer = &engine.Answer{}
	case err != nil:
		return err
	}
	defer answer.Free()

	part := changes.Ranking{Limit: l.limit}
	for i := range answer.Results {
		if err := answer.Fill(ctx, i); err != nil {
			return err
		}
		points := answer.DetachPoints(i)
		part.Add(l.series(&answer.Results[i], &points))
		memory.Release(ctx, int64(points.Len())*merge.PointBytes)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.ranking.Join(&part)
	l.looked++
	l.reading.Entry.Stats.Stats.Add(answer.Stats.Stats)
	return nil
}

// series compares one series. Those that no list wants need no names.
func (l *look) series(r *engine.Result, p *encoding.Points) changes.Series {
	s := changes.Series{Change: changes.Compare(p, l.Stretches)}
	if s.Listed() {
		s.Metric = r.Metric
		for _, t := range r.Tags {
			s.Tags = append(s.Tags, [2]string{t.K, t.V})
		}
	}
	return s
}

// miss notes a metric that was not looked at.
func (l *look) miss(name, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left.Metrics++
	if len(l.left.Listed) < mostListed {
		l.left.Listed = append(l.left.Listed, missed{name, why})
	}
}
