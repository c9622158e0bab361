package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/gateway/ask"
	"downpour/gateway/query"
)

// completedQueries is how many completed queries are kept.
// Source: QueryStats.COMPLETED_QUERY_CACHE_SIZE.
const completedQueries = 256

// completedBytes bounds the memory of the completed queries: a body may be a
// megabyte.
const completedBytes = 8 << 20

// queryLog knows the queries that are running and the last ones that are not. A
// query that comes again from the same connection and ends in the same way is
// counted, not listed anew. Source: QueryStats.
type queryLog struct {
	mu        sync.Mutex
	running   map[*queryEntry]bool
	completed []*queryEntry // the newest last
	bytes     int           // of the completed ones
}

// queryEntry is one query.
type queryEntry struct {
	query   any
	text    string // what it is compared by
	remote  string
	headers map[string]string
	start   time.Time

	end       time.Time
	status    int
	exception string // "null" for none, as there
	executed  int
	sent      bool
	stats     ask.Stats
	bytes     int // of memory, about
}

// entryBytes is what a query takes beside its texts.
const entryBytes = 4 << 10

// size is the memory that an entry takes: the query's texts stand in it twice,
// and once more in what it is compared by.
func (e *queryEntry) size(q *query.Query) int {
	n := entryBytes + 3*len(e.text)
	for i := range q.Queries {
		n += entryBytes + 64*len(q.Queries[i].TSUIDs)
	}
	for k, v := range e.headers {
		n += 64 + len(k) + len(v)
	}
	return n
}

// begin enters a query.
func (l *queryLog) begin(r *http.Request, q *query.Query, now time.Time) *queryEntry {
	e := &queryEntry{query: q.EchoAll(), remote: r.RemoteAddr, headers: shownHeaders(r.Header), start: now, executed: 1}
	e.text = fmt.Sprintf("%s %s %s", e.remote, q, r.URL.RawQuery)
	e.bytes = e.size(q)
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
	e.end, e.status, e.exception = now, status, "null"
	if err != nil {
		e.exception = err.Error()
		e.bytes += len(e.exception)
	}
	e.stats.Trace, e.stats.Queries = nil, nil // nobody asks for them any more
	same := slices.IndexFunc(l.completed, func(o *queryEntry) bool { return o.text == e.text && o.status == e.status })
	if same >= 0 {
		l.completed[same].executed++
		return
	}
	l.completed = append(l.completed, e)
	l.bytes += e.bytes
	for len(l.completed) > completedQueries || l.bytes > completedBytes {
		l.bytes -= l.completed[0].bytes
		l.completed = slices.Delete(l.completed, 0, 1)
	}
}

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
		"query": e.query, "exception": e.exception, "executed": e.executed, "user": nil, "requestHeaders": e.headers,
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
