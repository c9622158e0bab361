package httpapi

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/gateway/query"
	"downpour/gateway/query/engine"
)

// completedQueries is how many completed queries are kept.
// Source: QueryStats.COMPLETED_QUERY_CACHE_SIZE.
const completedQueries = 256

// Bytes of all completed queries, about, and of one that is listed as it was asked.
const (
	completedBytes = 4 << 20
	listedBytes    = 64 << 10
)

// entryBytes is about what a query takes beside its texts.
const entryBytes = 4 << 10

// queryLog knows the queries that are running and the last ones that are not. A
// query that comes again from the same connection and ends in the same way is
// counted, not listed anew. Source: QueryStats.
type queryLog struct {
	mu        sync.Mutex
	running   map[*queryEntry]bool
	completed []*queryEntry // the newest last
	bytes     int64         // of the completed ones
}

// queryEntry is one query.
type queryEntry struct {
	query   any
	same    [sha256.Size]byte // what it is compared by
	bytes   int64
	remote  string
	headers map[string]string
	start   time.Time

	end      time.Time
	status   int
	failure  string // of err
	executed int
	sent     bool
	stats    engine.Stats
}

// begin enters a query.
func (l *queryLog) begin(r *http.Request, q *query.Query, now time.Time) *queryEntry {
	e := &queryEntry{query: q.EchoAll(), remote: r.RemoteAddr, headers: shownHeaders(r.Header), start: now, executed: 1}
	e.bytes = entryBytes
	if n := q.Size(); n <= listedBytes {
		e.bytes += 3 * n // as it was read and as it is shown
	} else {
		e.query = map[string]any{"start": q.StartText, "end": q.EndText, "queries": []any{}, "notListed": fmt.Sprintf("a query of %d bytes", n)}
	}
	for k, v := range e.headers {
		e.bytes += int64(len(k) + len(v))
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s %s", e.remote, q, r.URL.RawQuery)
	sum.Sum(e.same[:0])
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = map[*queryEntry]bool{}
	}
	l.running[e] = true
	return e
}

// shownHeaders are a request's headers without what is secret.
func shownHeaders(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for k, v := range h {
		switch k {
		case "Authorization", "Cookie", "Proxy-Authorization", "X-Access-Token":
			out[k] = "***"
		default:
			out[k] = strings.Join(v, ", ")
		}
	}
	return out
}

// finish moves a query to the completed ones.
func (l *queryLog) finish(e *queryEntry, status int, err error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, e)
	e.end, e.status, e.failure = now, status, "null" // in quotes, as there
	if err != nil {
		e.failure = shortened(err.Error())
		e.bytes += int64(len(e.failure))
	}
	e.stats.Trace, e.stats.Queries, e.stats.Missing = nil, nil, nil // the answer alone shows them
	same := slices.IndexFunc(l.completed, func(o *queryEntry) bool { return o.same == e.same && o.status == e.status })
	if same >= 0 {
		l.completed[same].executed++
		return
	}
	l.completed = append(l.completed, e)
	for l.bytes += e.bytes; len(l.completed) > completedQueries || l.bytes > completedBytes; {
		l.bytes -= l.completed[0].bytes
		l.completed = slices.Delete(l.completed, 0, 1)
	}
}

// shortened is the beginning of a long text, for words of an error may be a
// client's.
func shortened(text string) string {
	if len(text) <= mostFailure {
		return text
	}
	return strings.ToValidUTF8(text[:mostFailure], "") + "…"
}

// mostFailure is how much of an error's text is kept, in bytes.
const mostFailure = 1 << 10

// list is what /api/stats/query answers.
func (l *queryLog) list(now time.Time) map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	running, completed := []any{}, []any{}
	for e := range l.running {
		running = append(running, map[string]any{"query": e.query, "remote": e.remote, "user": nil, "headers": e.headers,
			"queryStart": e.start.UnixMilli(), "elapsed": milliseconds(now.Sub(e.start))})
	}
	for _, e := range l.completed {
		completed = append(completed, e.shown(len(l.running)))
	}
	return map[string]any{"running": running, "completed": completed}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// shown is a completed query. The numbers are those that this program keeps,
// under OpenTSDB's names.
func (e *queryEntry) shown(running int) map[string]any {
	total := milliseconds(e.end.Sub(e.start))
	return map[string]any{
		"query": e.query, "exception": e.failure, "executed": e.executed, "user": nil, "requestHeaders": e.headers,
		"numRunningQueries": running, "sentToClient": e.sent,
		"httpResponse":        map[string]any{"code": e.status, "reasonPhrase": http.StatusText(e.status)},
		"queryStartTimestamp": e.start.UnixMilli(), "queryCompletedTimestamp": e.end.UnixMilli(),
		"stats": map[string]any{
			"totalTime": total, "processingPreWriteTime": total, "emittedDPs": e.stats.PointsOut,
			"dpsPreFilter": e.stats.Points, "dpsPostFilter": e.stats.Points, "rowsPreFilter": e.stats.Rows,
			"rowsPostFilter": e.stats.Rows - e.stats.Rejected, "rowsFromStorage": e.stats.Rows,
			"columnsFromStorage": e.stats.Cells, "bytesFromStorage": e.stats.Bytes,
		},
	}
}

// queryStats handles /api/stats/query.
func (a *API) queryStats(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return notAllowed(r)
	}
	return writeJSON(w, r, http.StatusOK, a.queries.list(a.Now()))
}
