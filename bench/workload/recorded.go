package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"downpour/encoding/batch"
)

// A file of requests has one a line, and is written by bench replay -record or by hand:
//
//	/api/query?start=1h-ago&m=sum:cpu.user
//	{"start":"1h-ago","queries":[{"aggregator":"sum","metric":"cpu.user"}]}
//	arrow {"start":"1d-ago","queries":[{"aggregator":"none","metric":"cpu.user"}]}
//
// The first is asked by GET, the second is posted to /api/query, and of the third the answer is an Arrow
// stream. Empty lines and those that begin with # are passed over. A whole URL counts by its path and query,
// so an access log's column will do.
const arrowPrefix = "arrow "

// Line is a recorded query as a file of requests has it.
func (q Query) Line() string {
	line := cmp.Or(q.JSON, q.Path)
	if q.Arrow {
		return arrowPrefix + line
	}
	return line
}

// Recorded reads a file of requests.
func Recorded(r io.Reader) ([]Query, error) {
	var all []Query
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		q, err := recordedLine(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, q)
	}

	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no request in it")
	}

	return all, nil
}

// recordedLine reads one request.
func recordedLine(line string) (Query, error) {
	text, arrow := strings.CutPrefix(line, arrowPrefix)
	q := Query{Arrow: arrow, Name: line}
	wrong := fmt.Errorf("got %.80q, want a request such as /api/query?start=…&m=…, or the body of one as JSON", line)
	if strings.HasPrefix(text, "{") {
		// A body that is no object has no members.
		if q.JSON = text; len(q.members()["start"]) == 0 {
			return q, wrong
		}
		return q, nil
	}

	u, err := url.Parse(text)
	if err != nil || !strings.HasPrefix(u.Path, "/") || u.Query().Get("start") == "" {
		return q, wrong
	}
	q.Path = u.RequestURI()
	return q, nil
}

// LogPath is where a gateway lists the queries that it was asked.
const LogPath = "/api/stats/query"

// maxRecorded bounds the queries of a recording: of a query that was asked a million times a share is enough.
const maxRecorded = 10_000

// LeftOut is how many queries of a log are not recorded, and why.
type LeftOut struct {
	Running  int // it is not known how they end
	Failed   int
	Deleting int // asking them again would delete points again
	TooLong  int // the log has not kept them
}

// String names the reasons; "" is none.
func (l LeftOut) String() string {
	var parts []string
	for _, of := range []struct {
		n    int
		what string
	}{
		{l.Running, "running"}, {l.Failed, "that failed"}, {l.Deleting, "that delete points"},
		{l.TooLong, "too long for the log"},
	} {
		if of.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of.n, of.what))
		}
	}
	return strings.Join(parts, ", ")
}

// logged is a completed query of a log.
type logged struct {
	Query          map[string]any
	Executed       int
	HTTPResponse   struct{ Code int }
	RequestHeaders map[string]string
	Start          int64 `json:"queryStartTimestamp"`
}

// Record makes requests of the answer to LogPath: each query as often as it was asked, or in that proportion
// where that were too many, in the order in which they came first. Queries that came several times take turns,
// as the panels of a dashboard that is refreshed.
func Record(log []byte) (all []Query, left LeftOut, err error) {
	var in struct {
		Running   []json.RawMessage
		Completed []logged
	}
	d := json.NewDecoder(bytes.NewReader(log))
	d.UseNumber() // the largest counter is beyond 2^53
	if err := d.Decode(&in); err != nil {
		return nil, left, fmt.Errorf("%s: %w", LogPath, err)
	}

	left.Running = len(in.Running)
	slices.SortStableFunc(in.Completed, func(a, b logged) int { return cmp.Compare(a.Start, b.Start) })
	var queries []Query
	var times []int
	for _, l := range in.Completed {
		if q, ok := l.request(&left); ok {
			queries, times = append(queries, q), append(times, max(l.Executed, 1))
		}
	}
	share(times, maxRecorded)

	for turn, more := 0, true; more; turn++ {
		more = false
		for i, q := range queries {
			if turn < times[i] {
				all, more = append(all, q), true
			}
		}
	}
	return all, left, nil
}

// share makes counts smaller, in proportion but to no less than 1, if their sum is above most.
func share(counts []int, most int) {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if sum <= most {
		return
	}
	for i, n := range counts {
		counts[i] = max(1, int(float64(n)*float64(most)/float64(sum)))
	}
}

// request is the query as it can be sent again; one that cannot is counted.
func (l *logged) request(left *LeftOut) (q Query, ok bool) {
	switch {
	case l.HTTPResponse.Code < 200 || l.HTTPResponse.Code > 399:
		left.Failed++
		return q, false
	case l.Query["delete"] == true:
		left.Deleting++
		return q, false
	case l.Query["notListed"] != nil:
		left.TooLong++
		return q, false
	}

	text, _ := json.Marshal(asked(l.Query)) // it was JSON before
	q.JSON, q.Name = string(text), string(text)
	q.Arrow = strings.Contains(l.RequestHeaders["Accept"], batch.StreamMediaType)
	return q, true
}

// shown are members of a logged query that the server has added, or that say the same as others: tags are
// filters, too, and would replace them.
var shown = []string{"tags", "filterTagKs", "index", "rollupTable", "histogramQuery"}

// trueByDefault are members that are true where they are left out; others are false.
var trueByDefault = []string{"useFuzzyFilter", "useMultiGets"}

// asked is a logged query without what need not be said: members that are null or empty, or have their default.
func asked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			// Members that are no flags equal neither.
			byDefault := member == any(slices.Contains(trueByDefault, name))
			if v[name] = asked(member); v[name] == nil || byDefault || slices.Contains(shown, name) {
				delete(v, name)
			}
		}
		return v
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = asked(v[i])
		}
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}
