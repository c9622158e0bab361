package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

var now = time.UnixMilli(1357002000_123)

// body returns a body with sub-queries that has no fault outside of them.
func body(subs string) string {
	return `{"start":1356998400,"end":1357002000,"queries":[` + subs + `]}`
}

func mustParse(t *testing.T, text string) *Query {
	t.Helper()
	q, err := Parser{Now: now}.JSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v (%s)", text, err, err.(*Error).Details)
	}
	return q
}

func TestParseJSON_fields(t *testing.T) {
	q := mustParse(
		t, `{"start":"1h-ago","timezone":"Europe/Berlin","useCalendar":"true","padding":1,"noAnnotations":true,
		"globalAnnotations":"True","showTSUIDs":true,"msResolution":true,"showQuery":true,`+
			`"showStats":true,"showSummary":true,
		"delete":true,"overrideByteLimit":true,"overrideDataPointLimit":true,"options":{"a":["b"]},`+
			`"ms":false,"nonsense":[{}],
		"queries":[{"aggregator":"sum","metric":"m","rate":true,"downsample":"2d-avg-null","explicitTags":true,
		"rateOptions":{"counter":true,"counterMax":"65535","resetValue":1.9e1,"dropResets":null},
		"filters":[{"type":"regexp","tagk":"host","filter":"^web","groupBy":true,"other":1}]}]}`)
	want := &Query{
		StartText:              "1h-ago",
		Start:                  now.UnixMilli() - 3600_000,
		End:                    now.UnixMilli(),
		NoEnd:                  true,
		Timezone:               "Europe/Berlin",
		UseCalendar:            true,
		Padding:                true,
		NoAnnotations:          true,
		GlobalAnnotations:      true,
		MSResolution:           true,
		ShowTSUIDs:             true,
		ShowSummary:            true,
		ShowStats:              true,
		ShowQuery:              true,
		Delete:                 true,
		OverrideByteLimit:      true,
		OverrideDataPointLimit: true,
		Queries: []SubQuery{{
			Aggregator: "sum", Metric: "m", DownsampleText: "2d-avg-null",
			Downsample: &scanplan.Downsample{
				Interval: 2 * 86400_000,
				Count:    2,
				Unit:     "d",
				Calendar: true,
				Zone:     "Europe/Berlin",
				Function: "avg",
				Fill:     scanplan.FillNull,
			},
			Rate: true, RateOptions: &scanplan.Rate{Counter: true, CounterMax: 65535, ResetValue: 19},
			Filters:      []Filter{{Type: "regexp", TagK: "host", Text: "^web", GroupBy: true}},
			ExplicitTags: true, UseFuzzyFilter: true, UseMultiGets: true,
		}},
	}
	// Unexported fields are not compared.
	shown := cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && strings.ToLower(f.Name()[:1]) == f.Name()[:1]
	}, cmp.Ignore())
	if diff := cmp.Diff(want, q, shown); diff != "" {
		t.Error(diff)
	}
}

// If a sub-query has tags and filters, those that come later in the text replace the others.
func TestParseJSON_tagsAndFilters(t *testing.T) {
	f := func(fields, want string) {
		t.Helper()
		q := mustParse(t, body(`{"aggregator":"sum","metric":"m",`+fields+`}`))
		var got []string
		for _, f := range q.Queries[0].Filters {
			got = append(got, fmt.Sprintf("%s=%s(%s)%t", f.TagK, f.Type, f.Text, f.GroupBy))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s, want %s", fields, s, want)
		}
	}
	tags, filters := `"tags":{"host":"web01","dc":"*"}`,
		`"filters":[{"type":"literal_or","tagk":"rack","filter":"r1","group_by":false}]`
	f(tags+","+filters, "rack=literal_or(r1)false")
	f(filters+","+tags, "host=literal_or(web01)true dc=wildcard(*)true")
	f(`"tags":{"a":"x*","b":"IWildcard(Y*)","c":"x|y"}`, "a=wildcard(x*)true b=iwildcard(Y*)true c=literal_or(x|y)true")
	f(`"tags":{"a":"1","b":"2","a":"3"}`, "a=literal_or(3)true b=literal_or(2)true")
	f(`"filters":null`, "")
}

// A bad body is refused with OpenTSDB's status and message for the first fault.
func TestParseJSON_refused(t *testing.T) {
	f := func(text string, wantStatus int, want string) {
		t.Helper()
		q, err := Parser{Now: now}.JSON([]byte(text))
		var e *Error
		if q != nil || !errors.As(err, &e) || e.Status != wantStatus || e.Message != want {
			t.Errorf("%.200s: %v, %v, want %d %s", text, q, err, wantStatus, want)
		}
	}
	const unreadable = "Unable to parse the given JSON"
	f("", 400, "Missing message content")
	f("{bad", 400, unreadable)
	f("[]", 400, unreadable)
	f("null", 500, "An internal null pointer exception was thrown")
	f("{}", 500, "An internal null pointer exception was thrown")
	f(`{"queries":null}`, 500, "An internal null pointer exception was thrown")
	f(`{"queries":[]}`, 400, "Missing start time")
	f(`{"start":"","queries":[]}`, 400, "Missing start time")
	f(`{"start":"x","end":"y","queries":[]}`, 400, "Invalid time: x. Invalid character 'x' in x")
	f(`{"start":1,"end":"y","queries":[]}`, 400, "Invalid time: y. Invalid character 'y' in y")
	f(`{"start":1356998400,"end":1356998400,"queries":[]}`, 400,
		"End time [1356998400000] must be greater than the start time [1356998400000]")
	f(`{"start":1356998400,"queries":[]}`, 400, "Missing queries")
	f(`{"start":"100y-ago","queries":[{"aggregator":"sum","metric":"m"}]}`, 400,
		fmt.Sprintf("Invalid timestamp: %d", now.UnixMilli()-100*365*86400_000))
	f(`{"start":"2013/01/01","timezone":"nope","queries":[]}`, 400, "Invalid timezone name: nope")
	f(body(`{}`), 400, "Missing the aggregation function")
	f(body(`{"aggregator":"SUM"}`), 400, "No such aggregation function: SUM")
	f(body(`{"aggregator":"sum"}`), 400, "Missing the metric or tsuids, provide at least one")
	f(body(`{"aggregator":"sum","metric":"m","downsample":"1m"},{}`), 400,
		"Invalid downsampling specifier '1m': must provide at least interval and function")
	f(body(`{"aggregator":"sum","metric":"m","rateOptions":{"x":1}}`), 400, unreadable)
	f(body(`{"aggregator":"sum","metric":"m","rateOptions":{"counterMax":9223372036854775808}}`), 400, unreadable)
	f(body(`{"aggregator":"sum","metric":"m","rate":"yes"}`), 400, unreadable)
	for _, filter := range []string{`{}`, `{"type":"nope","tagk":"k","filter":"v"}`,
		`{"type":"Wildcard","tagk":"k","filter":"*"}`,
		`{"type":"not_key","tagk":"k","filter":""}`, `{"type":"literal_or","filter":"v"}`,
		`{"type":"literal_or","tagk":"k","filter":""}`,
		`{"type":"literal_or","tagk":"k","filter":"|"}`, `{"type":"wildcard","tagk":"k","filter":"v"}`,
		`{"type":"regexp","tagk":"k","filter":"("}`} {
		f(body(`{"aggregator":"sum","metric":"m","filters":[`+filter+`]}`), 400, unreadable)
	}
	f(strings.Replace(body(`{"aggregator":"sum","metric":"m","downsample":"1m-sum"}`), "{", `{"timezone":"nope",`, 1),
		400, "The timezone specification could not be found")
	mustParse(t, strings.Replace(body(`{"aggregator":"sum","metric":"m"}`), "{", `{"timezone":"nope",`,
		1)) // nothing uses it
	f(body(`{"aggregator":"sum","metric":"m","filters":[{"type":"regexp","tagk":"k","filter":"[a[b]]"}]}`), 400,
		"Unsupported regular expression '[a[b]]': it uses a class inside a class")
}

func TestParseJSON_limits(t *testing.T) {
	f := func(text string, wantStatus int, want string) {
		t.Helper()
		_, err := Parser{Now: now}.JSON([]byte(text))
		var e *Error
		if !errors.As(err, &e) || e.Status != wantStatus || !strings.Contains(e.Message+e.Details, want) {
			t.Errorf("%.60s: %v, want %d %s", text, err, wantStatus, want)
		}
	}
	sub := `{"aggregator":"sum","metric":"m"},`
	f(body(strings.Repeat(sub, 1000)+sub[:len(sub)-1]), 413, "Too many sub queries, at most 64")
	mustParse(t, body(strings.Repeat(sub, 63)+sub[:len(sub)-1]))
	f(`{"x":`+strings.Repeat("[", 100_000), 400, "JSON ends at byte 100005")
	f(strings.Repeat(" ", MaxBody+1), 413, "Query body of 1048577 bytes, at most 1048576")
	filter := `{"type":"wildcard","tagk":"k","filter":"*"},`
	f(body(`{"aggregator":"sum","metric":"m","filters":[`+strings.Repeat(filter, 256)+filter[:len(filter)-1]+`]}`),
		413, "Too many filters")
	f(body(`{"aggregator":"sum","metric":"m","filters":[{"type":"regexp","tagk":"k","filter":"`+
		strings.Repeat("a", 1025)+`"}]}`), 400, "1025 bytes, more than 1024")
	f(body(`{"aggregator":"sum","metric":"m","filters":[{"type":"regexp","tagk":"k","filter":"`+
		strings.Repeat("a{1000}", 6)+`"}]}`), 400, "more than 5000")
	f(body(`{"aggregator":"sum","metric":"m","filters":[{"type":"regexp","tagk":"k","filter":"((a{1000}){1000})"}]}`),
		400, "more than 5000")
}

// Equal sub-queries become one, and the indexes of those that are left count from 0.
func TestParseJSON_equalSubQueries(t *testing.T) {
	f := func(a, b string, want int) {
		t.Helper()
		q := mustParse(
			t, body(
				fmt.Sprintf(
					`{"aggregator":"sum","metric":"m",%s},{"aggregator":"sum","metric":"m",%s},`+
						`{"aggregator":"avg","metric":"m"}`, a, b)))
		if len(q.Queries) != want || q.Queries[want-1].Index != want-1 || q.Queries[want-1].Aggregator != "avg" {
			t.Errorf("%s and %s: %d sub-queries, want %d", a, b, len(q.Queries), want)
		}
	}
	filter := func(kind, text string, groupBy bool) string {
		return fmt.Sprintf(`"filters":[{"type":%q,"tagk":"k","filter":%q,"groupBy":%t}]`, kind, text, groupBy)
	}
	f(`"rate":true`, `"rate":1`, 2)
	f(`"rate":true`, `"rate":false`, 3)
	f(`"rollupUsage":"ROLLUP_RAW"`, `"rate":false`, 2)
	f(`"rateOptions":{}`, `"rateOptions":null`, 3)
	f(filter("literal_or", "a|b", false), filter("literal_or", "b|a|", true), 2)
	f(filter("literal_or", "a", false), filter("iliteral_or", "a", false), 3)
	f(filter("wildcard", "a*", false), filter("wildcard", "*a", false), 2) // the stars at the ends do not count
	f(filter("regexp", "a", false), filter("regexp", "b", false), 3)
	f(`"downsample":"1m-sum"`, `"downsample":"60s-sum"`, 3)
}

// Echo gives a sub-query as OpenTSDB repeats it in an answer with showQuery.
func TestEcho(t *testing.T) {
	const want = `{"aggregator": "sum", "metric": "sys.cpu.nice", "tsuids": null, "downsample": null, "rate": false,
		"filters": [{"tagk": "host", "filter": "*", "group_by": true, "type": "wildcard"}], "percentiles": null, ` +
		`"index": 0,
		"rateOptions": null, "filterTagKs": ["AAAB"], "explicitTags": false, "useFuzzyFilter": true, ` +
		`"preAggregate": false,
		"rollupUsage": null, "rollupTable": "raw", "showHistogramBuckets": false, "useMultiGets": true,
		"tags": {"host": "wildcard(*)"}, "histogramQuery": false}`
	q := mustParse(t, body(`{"aggregator":"sum","metric":"sys.cpu.nice","tags":{"host":"*"}}`))
	q.Queries[0].FilterTagKs = []encoding.UID{{0, 0, 1}}
	text, err := json.Marshal(q.Echo(0))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, want), decode(t, string(text))); diff != "" {
		t.Error(diff)
	}
	plain := mustParse(t, body(`{"aggregator":"sum","metric":"m"}`))
	if e := plain.Queries[0].echo(); e.FilterTagKs != nil || e.Filters == nil || e.Tags == nil {
		t.Errorf("without filters: got %+v, want no filterTagKs, and filters and tags that are not null", e)
	}
}

func decode(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
