package httpapi

import (
	"encoding/hex"
	"net/http"
	"strconv"

	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
)

// IncompleteHeader marks an answer from which parts lack, as allowPartial
// permits; it holds their number.
const IncompleteHeader = "Downpour-Missing-Ranges"

// mark is an object behind the results that is not one of them, as OpenTSDB's
// statsSummary is.
type mark struct {
	name  string
	value any
}

// marks are the objects that follow an answer's results.
func marks(q *query.Query, summary any, stats *engine.Stats) (m []mark) {
	if summary != nil {
		m = append(m, mark{"statsSummary", summary})
	}
	if len(stats.Missing) > 0 {
		m = append(m, mark{"missing", HexRanges(stats.Missing)})
	}
	if q.Trace {
		m = append(m, mark{"trace", stats.Trace})
	}
	return m
}

// markHeader sets the header of an incomplete answer.
func markHeader(w http.ResponseWriter, stats *engine.Stats) {
	if n := len(stats.Missing); n > 0 {
		w.Header().Set(IncompleteHeader, strconv.Itoa(n))
	}
}

// HexRanges are key ranges as answers show them.
func HexRanges(ranges []scanplan.KeyRange) (out [][2]string) {
	for _, r := range ranges {
		out = append(out, [2]string{hex.EncodeToString(r.Start), hex.EncodeToString(r.Stop)})
	}
	return out
}
