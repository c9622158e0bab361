package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"downpour/pushdown/operator"
)

// AnswerLimits bound the points of an answer of either form; 0 is no bound.
type AnswerLimits struct{ JSON, Arrow int64 }

// check refuses an answer that is too large before any of it is sent.
func (l AnswerLimits) check(points int, arrow bool) error {
	limit, form, variable := l.JSON, "JSON", "DOWNPOUR_LIMIT_JSON"
	if arrow {
		limit, form, variable = l.Arrow, "Arrow", "DOWNPOUR_LIMIT_ARROW"
	}
	if limit <= 0 || int64(points) <= limit {
		return nil
	}
	return tooLarge(fmt.Sprintf("Sorry, the answer has %d data points, and as %s it may have %d. %s", points, form, limit, advice),
		variable, limit)
}

// within is a request's context with the time of a query, for what reads as much
// as one may.
func (a *API) within(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), a.Timeout)
}

// advice ends OpenTSDB's refusals. Source: QueryResult limits of SaltScanner.
const advice = "Please try filtering using more tags or decrease your time range."

// overLimit is the answer to a query that needs too much. Its texts are
// OpenTSDB's where it has one; the details name the limit and its variable.
func overLimit(e *operator.LimitError) *apiError {
	switch e.What {
	case operator.Points:
		return tooLarge(fmt.Sprintf("Sorry, you have attempted to fetch more than our limit of %d data points. %s", e.Limit, advice),
			"DOWNPOUR_LIMIT_POINTS (tsd.query.limits.data_points.default)", e.Limit)
	case operator.Bytes:
		return tooLarge(fmt.Sprintf("Sorry, you have attempted to fetch more than our maximum amount of %sMB from storage. %s", megabytes(e.Limit), advice),
			"DOWNPOUR_LIMIT_BYTES (tsd.query.limits.bytes.default)", e.Limit)
	case operator.Queries:
		return &apiError{Code: http.StatusServiceUnavailable, Message: "Sorry, too many heavy queries are running: " + e.Error(),
			Details: fmt.Sprintf("The limit is DOWNPOUR_HEAVY_QUERIES, now %d; heavy is what has read DOWNPOUR_HEAVY_POINTS", e.Limit)}
	}
	return tooLarge("Sorry, this query needs more memory than one query may have: "+e.Error(), "DOWNPOUR_LIMIT_MEMORY", e.Limit)
}

func tooLarge(message, variable string, limit int64) *apiError {
	return &apiError{Code: http.StatusRequestEntityTooLarge, Message: message,
		Details: fmt.Sprintf("The limit is %s, for this query %d", variable, limit)}
}

// megabytes is whole where it is one or more, as there.
func megabytes(n int64) string {
	if n >= 1<<20 {
		return strconv.FormatInt(n>>20, 10)
	}
	return strconv.FormatFloat(float64(n)/(1<<20), 'g', -1, 64)
}

// timedOut is the answer to a query that takes too long.
func timedOut(reason string) *apiError {
	return &apiError{Code: http.StatusRequestTimeout, Message: "Query timeout exceeded: " + reason,
		Details: "The limit is DOWNPOUR_QUERY_TIMEOUT (tsd.query.timeout)"}
}
