// Package querylog keeps the queries that are running and the last ones that have
// completed, for /api/stats/query, and lets an operator end them. Source: QueryStats.
package querylog

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/limit"
)

// maxCompleted is how many completed queries are kept.
// Source: QueryStats.COMPLETED_QUERY_CACHE_SIZE.
const maxCompleted = 256

// Sizes in bytes.
const (
	maxCompletedBytes = 4 << 20  // of all completed queries, approximately
	maxShownBytes     = 64 << 10 // of a query that is kept whole; of a larger one only its time range is
	entryOverhead     = 4 << 10  // size of an entry without its texts, approximately
)

// Log holds the running queries and the last completed ones. A query that is
// repeated from the same connection and ends with the same status is counted in
// its earlier entry and not listed again. The zero value is empty, and logs no slow query.
type Log struct {
	// Slow and Done are set before the first query.
	Slow Slow
	// Done, if set, is called for each query that has ended.
	Done func(*Done)

	mu        sync.Mutex
	instance  string // random: the ids of this process's queries are unlike those of others
	begun     uint64 // queries so far
	running   map[*Entry]bool
	completed []*Entry           // the newest last
	same      map[outcome]*Entry // the completed ones, by what makes a query a repetition
	bytes     int64              // of the completed ones
}

// outcome is equal for the repetitions of a query.
type outcome struct {
	digest [sha256.Size]byte // of query and connection
	status int
}

// Entry is one query.
type Entry struct {
	// Stats and Sent are set by the query's handler before Finish: what the query
	// has read, and whether its answer was sent to the end.
	Stats engine.Stats
	Sent  bool
	// Plans are those of the query, for the log of slow queries; nil after Finish.
	Plans *engine.Plans

	whileRunning
	route string

	query any // as it is shown
	outcome
	bytes   int64 // of memory, approximately
	remote  string
	id      string // of the request
	headers map[string]string
	start   time.Time

	end      time.Time
	failure  string // the error's text, shortened
	executed int    // how often, with repetitions
}

// Begin adds a query to the running ones. cost returns its cost so far, from any goroutine; nil is
// none.
func (l *Log) Begin(r *http.Request, q *query.Query, cost func() limit.Cost, now time.Time) *Entry {
	e := &Entry{query: q.EchoAll(), remote: r.RemoteAddr, headers: shownHeaders(r.Header), start: now, executed: 1}
	e.route = "/" + httpio.Path(r)
	e.ctx, e.cost = r.Context(), cost
	e.origin, _ = e.ctx.Value(originKey{}).(Origin)
	if cost == nil {
		e.cost = func() limit.Cost { return limit.Cost{} }
	}
	e.bytes = entryOverhead
	if n := q.Size(); n <= maxShownBytes {
		e.bytes += 3 * n // as it was read and as it is shown
	} else {
		e.query = map[string]any{"start": q.StartText, "end": q.EndText, "queries": []any{},
			"notListed": fmt.Sprintf("a query of %d bytes", n)}
	}
	for k, v := range e.headers {
		e.bytes += int64(len(k) + len(v))
	}

	e.id, e.Plans = httpio.RequestID(r.Context()), new(engine.Plans)
	// Equal for a repetition, see Finish: the address has a port, which distinguishes connections.
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s %s", e.remote, q, r.URL.RawQuery)
	sum.Sum(e.digest[:0])

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = map[*Entry]bool{}
		l.instance = strings.ToLower(rand.Text()[:8])
	}
	l.begun++
	e.number = l.begun
	l.running[e] = true
	return e
}

// shownHeaders returns a request's headers with the secret ones masked.
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

// Finish moves a query from the running to the completed ones.
func (l *Log) Finish(e *Entry, status int, err error, now time.Time) {
	e.end, e.status, e.failure = now, status, "null" // the string, as OpenTSDB has it
	if err != nil {
		e.failure = shortened(err.Error())
		e.bytes += int64(len(e.failure))
	}
	l.logSlow(e)
	if l.Done != nil {
		l.Done(e.done())
	}
	e.Plans = nil

	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, e)
	e.whileRunning = whileRunning{} // it may hold a lot
	// The log does not show these, and they may be large.
	e.Stats.Trace, e.Stats.Queries, e.Stats.Missing = nil, nil, nil

	// A repetition is not listed separately: it counts at the first query that ended the same way.
	if first := l.same[e.outcome]; first != nil {
		first.executed++
		return
	}
	if l.same == nil {
		l.same = map[outcome]*Entry{}
	}
	l.completed, l.same[e.outcome] = append(l.completed, e), e
	for l.bytes += e.bytes; len(l.completed) > maxCompleted || l.bytes > maxCompletedBytes; {
		l.bytes -= l.completed[0].bytes
		delete(l.same, l.completed[0].outcome)
		l.completed = slices.Delete(l.completed, 0, 1)
	}
}

// maxFailureText is how much of an error's text is kept, in bytes.
const maxFailureText = 1 << 10

// shortened cuts a text to maxFailureText. An error can quote what the client
// sent, of any length.
func shortened(text string) string {
	if len(text) <= maxFailureText {
		return text
	}
	return strings.ToValidUTF8(text[:maxFailureText], "") + "…"
}

// List returns what /api/stats/query answers.
func (l *Log) List(now time.Time) map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()

	running, completed := []any{}, []any{}
	for e := range l.running {
		running = append(running,
			map[string]any{"query": e.query, "remote": e.remote, "user": nil, "headers": e.headers,
				"queryStart": e.start.UnixMilli(), "elapsed": milliseconds(now.Sub(e.start))})
	}
	for _, e := range l.completed {
		completed = append(completed, e.shown(len(l.running)))
	}
	return map[string]any{"running": running, "completed": completed}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// shown returns a completed query as /api/stats/query lists it: the numbers that
// Downpour keeps, under OpenTSDB's names.
func (e *Entry) shown(running int) map[string]any {
	total := milliseconds(e.end.Sub(e.start))
	return map[string]any{
		"query": e.query, "exception": e.failure, "executed": e.executed, "user": nil, "requestHeaders": e.headers,
		"numRunningQueries": running, "sentToClient": e.Sent,
		"httpResponse":        map[string]any{"code": e.status, "reasonPhrase": http.StatusText(e.status)},
		"queryStartTimestamp": e.start.UnixMilli(), "queryCompletedTimestamp": e.end.UnixMilli(),
		"stats": map[string]any{
			"totalTime": total, "processingPreWriteTime": total, "emittedDPs": e.Stats.PointsOut,
			"dpsPreFilter": e.Stats.Points, "dpsPostFilter": e.Stats.Points, "rowsPreFilter": e.Stats.Rows,
			"rowsPostFilter": e.Stats.Rows - e.Stats.Rejected, "rowsFromStorage": e.Stats.Rows,
			"columnsFromStorage": e.Stats.Cells, "bytesFromStorage": e.Stats.Bytes,
		},
	}
}
