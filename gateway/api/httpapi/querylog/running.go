package querylog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/query/limit"
)

// Origin describes a request before its query is known.
type Origin struct {
	// Token is the name of the request's token, "" where none is needed.
	Token string
	// End ends the request's context with a cause.
	End context.CancelCauseFunc
}

type originKey struct{}

// WithOrigin returns a context whose query has an origin.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// whileRunning is what an entry has until its query ends.
type whileRunning struct {
	ctx    context.Context // of the request
	origin Origin
	number uint64            // by the order of Begin, from 1
	cost   func() limit.Cost // so far
}

// Running is a query that runs.
type Running struct {
	// ID names the query for End. It is unique, also among gateways and after a restart.
	ID      string
	Route   string
	Query   string // as JSON, without empty members, shortened
	Client  string // HOST:PORT
	Token   string // its name
	Request string // the id of the request
	Start   time.Time
	Cost    limit.Cost
	// EndedBy is who has ended the query, which is about to stop; "" if it was not ended.
	EndedBy string
}

// errEnded is the cause of the context's end of a query that End has ended. It is the query's
// answer. Because it is a conflict, clients do not retry and proxies do not cache it.
type errEnded struct{ by string }

// Error names who has ended the query.
func (e *errEnded) Error() string { return "The query was ended by " + e.by }

// Unwrap makes it the end of a context: nothing has failed.
func (e *errEnded) Unwrap() error { return context.Canceled }

// Ended returns what a query answers that an operator has ended, nil for any other.
func (e *Entry) Ended() error {
	var ended *errEnded
	if !errors.As(context.Cause(e.ctx), &ended) {
		return nil
	}
	return &httpio.Error{
		Code:    http.StatusConflict,
		Message: ended.Error(),
		Details: "It was not at fault; ask who ended it before you repeat it",
	}
}

// Count returns how many queries run.
func (l *Log) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.running)
}

// Running returns the running queries, the oldest first.
func (l *Log) Running() []Running {
	l.mu.Lock()
	out, states, queries := make([]Running, 0, len(l.running)), make([]whileRunning, 0, len(l.running)),
		make([]any, 0, len(l.running))
	for _, e := range slices.SortedFunc(maps.Keys(l.running),
		func(a, b *Entry) int { return cmp.Compare(a.number, b.number) }) {
		out = append(out, Running{
			ID:      id(l.instance, e.number),
			Route:   e.route,
			Client:  e.remote,
			Token:   e.origin.Token,
			Request: e.id,
			Start:   e.start,
		})
		states, queries = append(states, e.whileRunning), append(queries, e.query)
	}
	l.mu.Unlock()

	// Slow steps are done without the lock, which every query needs.
	for i, s := range states {
		out[i].Query, out[i].Cost = shortened(compactJSON(queries[i])), s.cost()
		var ended *errEnded
		if errors.As(context.Cause(s.ctx), &ended) {
			out[i].EndedBy = ended.by
		}
	}
	return out
}

// id returns the name of a query for End.
func id(instance string, number uint64) string {
	return instance + "-" + strconv.FormatUint(number, 10)
}

// End ends a running query for somebody, who is named in its answer. The errors are why there is
// nothing to end.
func (l *Log) End(name, by string) error {
	instance, digits, _ := strings.Cut(name, "-")
	number, err := strconv.ParseUint(digits, 10, 64)

	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || instance != l.instance || number == 0 || number > l.begun {
		return &httpio.Error{
			Code:    http.StatusNotFound,
			Message: fmt.Sprintf("This gateway has no query %s", shortened(name)),
			Details: "The ids of running queries are those that GET /api/ops of the same gateway lists; after a " +
				"start they are others",
		}
	}
	for e := range l.running {
		if e.number == number {
			return e.endBy(by)
		}
	}
	return &httpio.Error{
		Code:    http.StatusGone,
		Message: fmt.Sprintf("The query %s is over: it has been answered, or was ended before", name),
	}
}

// endBy ends a query that runs.
func (e *Entry) endBy(by string) error {
	var before *errEnded
	switch {
	case errors.As(context.Cause(e.ctx), &before):
		return &httpio.Error{
			Code:    http.StatusConflict,
			Message: "The query has been ended already, by " + before.by + ", and is about to stop",
		}
	case e.origin.End == nil:
		return &httpio.Error{Code: http.StatusNotImplemented, Message: "This query cannot be ended"}
	}
	e.origin.End(&errEnded{by})
	return nil
}
