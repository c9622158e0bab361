package extra_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/integration/compare"
	"downpour/integration/conformance"
)

// gexpRecording is what was recorded of OpenTSDB's /api/query/gexp: expressions in Graphite's form.
type gexpRecording struct {
	conformance.Data
	Queries []conformance.Query
}

// clientsFault returns the answer that is wanted for a recorded one: a 500, which OpenTSDB sends
// for mistakes of the client, becomes a 400 with the same message.
func clientsFault(q conformance.Query) conformance.Query {
	if q.Status != http.StatusInternalServerError {
		return q
	}
	q.Status = http.StatusBadRequest
	q.Response = json.RawMessage(strings.Replace(string(q.Response), `"code":500`, `"code":400`, 1))
	return q
}

// brokenShift is OpenTSDB's answer to every timeShift with a valid time: it mistakes the quote
// behind the unit for a part of it.
var brokenShift = regexp.MustCompile(`"message": ?"unknown time unit=(sec|min|hr|days?|weeks?)'"`)

// Every expression gets the answer that was recorded from OpenTSDB 2.4.1, to the last bit, executed
// in process or by a pushdown server. Left out is timeShift, which fails in OpenTSDB: see
// TestGexp_timeShift.
func TestGexpConformance(t *testing.T) {
	t.Parallel()
	var r gexpRecording
	if err := conformance.Decode("gexp_seed11", &r); err != nil {
		t.Fatal(err)
	}
	replayGexp(t, r.Queries, gatewaytest.RecordedFronts(t, &r.Data, func() *gateway.Config { return config(0) }))
}

func replayGexp(t *testing.T, queries []conformance.Query, at gatewaytest.Fronts) {
	t.Helper()
	c := compare.Comparer{MessageStart: true, Permits: []compare.Permit{
		{
			Path:   compare.Path{"error", "details"},
			Kinds:  []compare.Kind{compare.Extra, compare.Value},
			Reason: "details are the message again, where there are any",
		},
		{Path: compare.Path{"error", "cut"}, Kinds: []compare.Kind{compare.Missing}, Reason: "a mark of the recording"},
	}}
	asked, equal, shifts := 0, 0, 0
	for i, q := range queries {
		if brokenShift.Match(q.Response) {
			shifts++
			continue
		}
		q = clientsFault(q)
		for _, g := range at.Of(i) {
			asked++
			status, body := gatewaytest.Ask(t, q.Method, g.URL()+strings.TrimPrefix(q.Path, "/"), q.Body)
			report, err := c.Answers(compare.Answer{Status: q.Status, Body: q.Response},
				compare.Answer{Status: status, Body: body})
			if err != nil {
				t.Fatalf("%s: query %d: %v: %.200s", g.How, i, err, body)
			}
			if report.Equal() {
				equal++
				continue
			}
			t.Errorf("%s: query %d %s %s: %d differences, the first: %s (status %d, %.150s)",
				g.How, i, q.Method, q.Path, len(report.Differences), report.Differences[0], status, body)
		}
	}
	if equal < asked || asked < len(queries)-20 {
		t.Errorf("%d of %d answers are equal and %d of %d queries are of timeShift, want all, "+
			"and at most 20 of timeShift", equal, asked, shifts, len(queries))
	}
}

// expressions returns the path of a request with these expressions.
func expressions(parameters string, texts ...string) string {
	path := "api/query/gexp?" + parameters
	for _, text := range texts {
		path += "&exp=" + url.QueryEscape(text)
	}
	return path
}

// timeShift gives the points of an earlier time at the times of the query: alone, inside and around
// other functions, and next to the same metric unshifted. OpenTSDB always answers it with 400.
func TestGexp_timeShift(t *testing.T) {
	const base = 1356998400
	b := open(t, nil)
	var lines []string
	for i := range 12 { // two hours, one point in ten minutes
		lines = append(lines, fmt.Sprintf("m %d %d host=a", base+600*i, i+1),
			fmt.Sprintf("m %d %d host=b", base+600*i, 100+i))
	}
	b.Put(lines...)

	f := func(text string, from, to int, want string) {
		t.Helper()
		a := b.Get(expressions(fmt.Sprintf("arrays&start=%d&end=%d", base+from, base+to), text))
		var got []struct{ DPs json.RawMessage }
		if err := json.Unmarshal([]byte(a.Body), &got); err != nil || a.Status != 200 {
			t.Errorf("%s: %d %s", text, a.Status, a.Body)
			return
		}
		var points []string
		for _, r := range got {
			points = append(points, string(r.DPs))
		}
		if diff := cmp.Diff(want, strings.ReplaceAll(strings.Join(points, " "), "13570", "")); diff != "" {
			t.Errorf("%s from %d to %d: want -, got +: %s", text, from, to, diff)
		}
	}
	// Times are compared without their leading 13570: 02000 is 1357002000, base + 3600.
	f("timeShift(sum:m{host=a},'1hr')", 3600, 4800, "[[02000,1],[02600,2],[03200,3]]")
	f("shift(sum:m{host=*},'60min')", 3600, 4200, "[[02000,1],[02600,2]] [[02000,100],[02600,101]]")
	f("timeShift(timeShift(sum:m{host=a},'30min'),'1800sec')", 3600, 4200, "[[02000,1],[02600,2]]")
	f("diffSeries(sum:m{host=a},timeShift(sum:m{host=a},'1hr'))", 3600, 4800, "[[02000,6.0],[02600,6.0],[03200,6.0]]")
	// Half an hour earlier the points lie at other offsets in the rows of their hours.
	f("diffSeries(sum:m{host=a},timeShift(sum:m{host=a},'30min'))", 3600, 4800, "[[02000,3.0],[02600,3.0],[03200,3.0]]")
	f("diffSeries(sum:10m-sum-zero:m{host=a},scale(timeShift(sum:10m-sum-zero:m{host=a},'1hr'),2))",
		3600, 4800, "[[02000,5.0],[02600,4.0],[03200,3.0]]")
	f("movingAverage(timeShift(sum:m{host=a},'1hr'),2)", 3600, 4800, "[[02000,0.0],[02600,1.5],[03200,2.5]]")
	f("timeShift(movingAverage(sum:m{host=a},2),'1hr')", 3600, 4800, "[[02000,0.0],[02600,1.5],[03200,2.5]]")

	now := expressions(fmt.Sprintf("start=%d&end=%d", base, base+1), "timeShift(sum:m,'0min')")
	b.Refused(b.Get(now), http.StatusBadRequest, "timeshift <= 0")
	b.Refused(b.Get(expressions("start=1000&end=2000", "timeShift(sum:m,'1hr')")), http.StatusBadRequest,
		"Invalid timestamp: -2600000")
	if a := b.Get(expressions(fmt.Sprintf("explain=true&start=%d&end=%d", base+7200, base+7201),
		"timeShift(sum:m,'2hr')")); !strings.Contains(a.Body, "query [1356998400000 ms") {
		t.Errorf("want an explain that shows the shifted times, which are read; got %s", a.Body)
	}
}

// The limits of queries hold for expressions, which are listed among the completed queries.
func TestGexp_limits(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.LimitJSON, c.LimitQueries = 60, 3 })
	b.PutHundred()
	const time = "start=1356998400&end=1356998500"
	f := func(status int, message string, texts ...string) {
		t.Helper()
		if a := b.Get(expressions(time, texts...)); status == http.StatusOK && a.Status != status {
			t.Errorf("%q: %d %s", texts, a.Status, a.Body)
		} else if status != http.StatusOK {
			b.Refused(a, status, message)
		}
	}
	f(200, "", "absolute(sum:m)")
	f(413, "the answer has 100 data points", "absolute(sum:m{host=*})")
	// The limit counts the points of the answer, not those that it is computed from.
	f(200, "", "highestMax(sum:m{host=*},1)")
	f(200, "", "scale(sum:m,2)", "sum(sum:sys.few,max:sys.few)")
	f(413, "too many metrics, at most 3", "scale(sum:m,2)", "sum(sum:sys.few,max:sys.few,min:sys.few)")
	b.Refused(b.Get(expressions(time+"&m=sum:m&m=max:m", "sum(sum:sys.few,max:sys.few)")), 413,
		"too many metrics, at most 1")
	b.Refused(b.Do(http.MethodDelete, expressions(time, "absolute(sum:m)"), nil), http.StatusMethodNotAllowed,
		"Method not allowed")

	var log struct{ Completed []any }
	if err := json.Unmarshal([]byte(b.Get("api/stats/query").Body), &log); err != nil || len(log.Completed) == 0 {
		t.Errorf("no expression is listed among the completed queries: %v %+v", err, log)
	}
}
