package queryroutes

import (
	"context"
	"net/http"
	"strconv"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
)

// IncompleteHeader is set on an incomplete answer, which allowPartial permits; its
// value is the number of missing key ranges.
const IncompleteHeader = "Downpour-Missing-Ranges"

// DamagedHeader is set on an answer without rows that fix=damaged has skipped; its value is their
// number.
const DamagedHeader = "Downpour-Damaged-Rows"

// damagedRows reports rows that were left out of an answer.
type damagedRows struct {
	Rows  int64  `json:"rows"`
	First string `json:"first"`
}

// trailer is an object after the results in an answer's list that is no result
// itself, as OpenTSDB's statsSummary.
type trailer struct {
	name  string
	value any
}

// trailers returns the objects that follow an answer's results. ctx is that of the request, whose
// id is in the trace.
func trailers(ctx context.Context, q *query.Query, summary any, stats *engine.Stats) (out []trailer) {
	if summary != nil {
		out = append(out, trailer{"statsSummary", summary})
	}
	if len(stats.Missing) > 0 {
		out = append(out, trailer{"missing", httpio.HexRanges(stats.Missing)})
	}
	if stats.Damaged > 0 {
		out = append(out, trailer{"damaged", damagedRows{stats.Damaged, stats.DamagedRow}})
	}
	if q.Trace {
		if id := httpio.RequestID(ctx); id != "" && stats.Trace != nil {
			stats.Trace.Attributes = map[string]any{"request": id}
		}
		out = append(out, trailer{"trace", stats.Trace})
	}
	return out
}

// warn names in the header what the query has that means nothing.
func warn(w http.ResponseWriter, q *query.Query) {
	for _, text := range q.Ignored() {
		w.Header().Add("Warning", "299 - "+strconv.QuoteToASCII(text)) // RFC 7234, 5.5.7: of any kind, to be shown
	}
}

// SetIncompleteHeader sets IncompleteHeader if key ranges are missing, and DamagedHeader if rows are.
func SetIncompleteHeader(w http.ResponseWriter, stats *engine.Stats) {
	if n := stats.Damaged; n > 0 {
		w.Header().Set(DamagedHeader, strconv.FormatInt(n, 10))
	}
	if n := len(stats.Missing); n > 0 {
		w.Header().Set(IncompleteHeader, strconv.Itoa(n))
	}
}
