// Package treeroutes is the routes of trees, below /api/tree: definitions, rules, branches,
// what a tree would do with a series, and which series it has left out. The arguments are
// in the body or, without one, in parameters. Source: TreeRpc.
package treeroutes

import (
	"context"
	"errors"
	"net/http"
	"time"

	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/trees/forest"
	"downpour/gateway/java"
	"downpour/pushdown/rpc/auth"
)

// Handlers answer the routes of trees. All fields are set before a request comes.
type Handlers struct {
	Forest *forest.Forest
	// FlushMeta puts the series into trees that puts have made; nil if puts record none.
	FlushMeta func(context.Context) error

	// Guard checks requests that change something.
	Guard *access.Guard
	// Timeout bounds a request.
	Timeout time.Duration
	// Now is the clock.
	Now func() time.Time
}

// Endpoints returns the routes by path. All are open to readers; a handler that changes something
// requires more itself.
func (h *Handlers) Endpoints() map[string]httpio.Endpoint {
	reading := httpio.Verbs{http.MethodGet, http.MethodPost, http.MethodPut}
	return map[string]httpio.Endpoint{
		"api/tree": {
			Scope:  auth.Read,
			Serve:  h.bounded(h.trees),
			Reads:  httpio.Get,
			Absent: httpio.ReadOnly | httpio.WriteOnly,
		},
		"api/tree/branch": {
			Scope:  auth.Read,
			Serve:  h.bounded(h.branch),
			Reads:  httpio.Get,
			Absent: httpio.ReadOnly | httpio.WriteOnly,
		},
		"api/tree/rule": {
			Scope:  auth.Read,
			Serve:  h.bounded(h.rule),
			Reads:  httpio.Get,
			Absent: httpio.ReadOnly | httpio.WriteOnly,
		},
		"api/tree/rules": {
			Scope:  auth.Read,
			Serve:  h.bounded(h.rules),
			Reads:  httpio.Get,
			Absent: httpio.ReadOnly | httpio.WriteOnly,
		},
		"api/tree/test": {
			Scope:  auth.Read,
			Serve:  h.bounded(h.test),
			Reads:  reading,
			Absent: httpio.ReadOnly | httpio.WriteOnly,
		},
		"api/tree/collisions": {
			Scope:  auth.Read,
			Serve:  h.bounded(h.failed(forest.Collisions)),
			Reads:  reading,
			Absent: httpio.ReadOnly | httpio.WriteOnly,
		},
		"api/tree/notmatched": {
			Scope:  auth.Read,
			Serve:  h.bounded(h.failed(forest.NotMatched)),
			Reads:  reading,
			Absent: httpio.ReadOnly | httpio.WriteOnly,
		},
		"api/tree/": {
			Scope:  auth.Read,
			Serve:  h.below,
			Reads:  httpio.NoVerb,
			Absent: httpio.ReadOnly | httpio.WriteOnly,
		},
	}
}

// below answers for paths that are in the table above with more words after them, which OpenTSDB
// ignores, and for all others, which are 404.
func (h *Handlers) below(w http.ResponseWriter, r *http.Request) error {
	route := firstWords(httpio.Path(r), 3)
	if e, ok := h.Endpoints()[route]; ok && route != "api/tree/" {
		return e.Serve(w, r)
	}
	return &httpio.Error{Code: http.StatusNotFound, Message: "This endpoint is not supported"}
}

// firstWords returns the first n words of a path.
func firstWords(path string, n int) string {
	for i, c := range path {
		if c != '/' {
			continue
		}
		if n--; n == 0 {
			return path[:i]
		}
	}
	return path
}

// bounded gives a handler that reads the time of a query, and turns the errors of trees into answers.
func (h *Handlers) bounded(serve func(http.ResponseWriter,
	*http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := httpio.WithQueryTime(r.Context(), h.Timeout)
		defer cancel()
		err := serve(w, r.WithContext(ctx))

		var missing *forest.NotFoundError
		var many *forest.TooManyError
		switch {
		case errors.As(err, &missing):
			return &httpio.Error{Code: http.StatusNotFound, Message: missing.Error()}
		case errors.As(err, &many):
			return &httpio.Error{Code: http.StatusRequestEntityTooLarge, Message: many.Error()}
		case errors.Is(err, forest.ErrConflict):
			return &httpio.Error{
				Code:    http.StatusInternalServerError,
				Message: "Unable to save changes to the tree",
				Details: err.Error(),
			}
		case errors.Is(err, forest.ErrNoChange):
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		return err
	}
}

// mayChange checks whether a request may change trees.
func (h *Handlers) mayChange(w http.ResponseWriter, r *http.Request) error {
	return h.Guard.MayChange(w, r, auth.Write)
}

// flush puts new series into trees, so that a client finds them. Its error means that some are
// missing: later reads could be short.
func (h *Handlers) flush(ctx context.Context) error {
	if h.FlushMeta == nil {
		return nil
	}

	err := h.FlushMeta(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the request has had its time
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, forest.ErrConflict):
		return &httpio.Error{
			Code:    http.StatusServiceUnavailable,
			Message: "New series are not in all trees yet; please try again",
			Details: err.Error(),
		}
	}
	return err
}

// errVerb refuses a verb. Other routes answer 405.
var errVerb = httpio.BadRequest("Unsupported HTTP request method")

// treeID returns the parameter treeid, 0 if it is not there. Source: TreeRpc.parseTreeId.
func treeID(r *http.Request) (int, error) {
	if !r.URL.Query().Has("treeid") {
		return 0, nil
	}
	return number(httpio.LastValue(r, "treeid"), "Unable to parse 'tree' value")
}

// requiredTreeID is treeID of a request that must have it.
func requiredTreeID(r *http.Request) (int, error) {
	if _, err := httpio.RequiredValue(r, "treeid"); err != nil {
		return 0, err
	}
	return treeID(r)
}

// number reads a number of 32 bits. Its error has a message of OpenTSDB.
func number(text, message string) (int, error) {
	n, err := java.ParseInt(text)
	if err != nil {
		return 0, &httpio.Error{
			Code:    http.StatusBadRequest,
			Message: message,
			Details: "For input string: \"" + text + "\"",
		}
	}
	return int(n), nil
}
