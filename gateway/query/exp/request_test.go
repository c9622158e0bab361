package exp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/query"
)

var parser = query.Parser{Now: time.Unix(1_363_655_000, 0)}

// Parts of a sound request.
const (
	aTime        = `"time":{"start":1363651200,"end":"1363651800","aggregator":"sum"}`
	aFilter      = `"filters":[{"id":"f1","tags":[{"type":"wildcard","tagk":"host","filter":"*","groupBy":true}]}]`
	twoMetrics   = `"metrics":[{"id":"a","metric":"m","filter":"f1"},{"id":"b","metric":"n","filter":"f1"}]`
	anExpression = `"expressions":[{"id":"e","expr":"a + b"}]`
)

func request(t *testing.T, parts ...string) *Request {
	t.Helper()
	r, err := Parse([]byte("{"+strings.Join(parts, ",")+"}"), parser)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A bad request is refused with status 400 and the message that OpenTSDB has for the first fault
// in its order.
func TestParse_faults(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, err := Parse([]byte(body), parser)
		var known *query.Error
		if !errors.As(err, &known) || known.Status != 400 || !strings.Contains(known.Message, want) {
			t.Errorf("%s: error %v, want a 400 with %q", body, err, want)
		}
	}
	parts := func(want string, parts ...string) { t.Helper(); f("{"+strings.Join(parts, ",")+"}", want) }

	f("", "Incoming data was null or empty")
	f("{bad", "Unable to parse")
	f("[]", "want an object")
	f("null", "missing time")
	parts("missing time", `"metrics":[]`)
	for _, wrong := range []string{`{}`, `{"start":"nope","aggregator":"sum"}`,
		`{"start":1,"end":"nope","aggregator":"sum"}`, `{"start":1}`, `{"start":1,"aggregator":"nope"}`,
		`{"start":1,"aggregator":"sum","downsampler":{"interval":"1x","aggregator":"avg"}}`,
		`{"start":1,"aggregator":"sum","downsampler":{"interval":"1m"}}`} {
		parts("Invalid time", `"time":`+wrong, `"metrics":[]`)
	}
	parts("only \"true\" or \"false\"", `"time":{"start":1,"aggregator":"sum","rate":"yes"}`)
	parts("missing or empty metrics", aTime, `"metrics":[]`)
	parts("duplicated metric id: a", aTime, `"metrics":[{"id":"a"},{"id":"a"}]`)
	parts("duplicated filter id: f", aTime, `"metrics":[{"id":"a"}],"filters":[{"id":"f"},{"id":"f"}]`)
	parts("Duplicated variable or expression id: a", aTime, `"metrics":[{"id":"a"}],"expressions":[{"id":"a"}]`)
	for _, wrong := range []string{`"id":"a"`, `"metric":"m"`, `"id":"7","metric":"m"`, `"id":"a-b","metric":"m"`,
		`"id":"a","metric":"m","aggregator":"nope"`, `"id":"a","metric":"m","timeOffset":"nope"`} {
		parts("Invalid metric at index 0", aTime, `"metrics":[{`+wrong+`}]`, `"filters":[{}]`)
	}
	parts("Invalid filter at index 0", aTime, `"metrics":[{"id":"a","metric":"m"}]`, `"filters":[{}]`,
		`"expressions":[{}]`)
	parts("Invalid expression at index 0", aTime, aFilter, twoMetrics, `"expressions":[{"id":"e"}]`)
	parts("parsing error in 'a +'", aTime, aFilter, twoMetrics, `"expressions":[{"id":"e","expr":"a +","join":{}}]`)
	parts("The set operator cannot be null", aTime, aFilter, twoMetrics,
		`"expressions":[{"id":"e","expr":"a","join":{}}]`)
	parts("Unrecognized set operator: cross", aTime, aFilter, twoMetrics,
		`"expressions":[{"id":"e","expr":"a","join":{"operator":"cross"}}]`)
	parts("unrecognized filter id f1 in metric a", aTime, `"filters":[]`, twoMetrics,
		`"expressions":[{"id":"e","expr":"zz"}]`)
	parts("didn't appear to have any variables", aTime, aFilter, twoMetrics, `"expressions":[{"id":"e","expr":"1"}]`)
	parts("Expression [a + zz] was missing input zz", aTime, twoMetrics, `"expressions":[{"id":"e","expr":"a + zz"}]`)
	parts("No filter defined: f1", aTime, twoMetrics)
	parts("null pointer", aTime, `"filters":[{"id":"f1"}]`, twoMetrics)
	parts("Could not find a tag value filter", aTime,
		`"filters":[{"id":"f1","tags":[{"type":"nope","tagk":"k","filter":"*"}]}]`, twoMetrics)

	fill := func(policy string) string { return `"metrics":[{"id":"a","metric":"m","fillPolicy":` + policy + `}]` }
	parts("Unrecognized fill policy: nope", aTime, fill(`{"policy":"nope"}`))
	parts("The value for NONE and NAN must be NaN", aTime, fill(`{"policy":"null","value":7}`))
	parts("The value for ZERO must be 0", aTime, fill(`{"policy":"zero","value":3}`))
	parts("not a valid double", aTime, fill(`{"value":"x"}`))

	parts("Self referencing expression found: e", aTime, aFilter, twoMetrics,
		`"expressions":[{"id":"e","expr":"e + a"}]`)
	parts("Circular reference found: g", aTime, aFilter, twoMetrics,
		`"expressions":[{"id":"e","expr":"f"},{"id":"f","expr":"g"},{"id":"g","expr":"e + a"}]`)
}

// The numbers of metrics, expressions, outputs, filters and tags of a request are bounded.
func TestParse_bounds(t *testing.T) {
	f := func(want string, parts ...string) {
		t.Helper()
		_, err := Parse([]byte("{"+strings.Join(parts, ",")+"}"), query.Parser{Now: parser.Now, SubQueries: 3})
		var known *query.Error
		if !errors.As(err, &known) || known.Status != 413 || known.Message != want {
			t.Errorf("error %v, want the 413 %q", err, want)
		}
	}
	many := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i+10))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	f("Too many metrics, at most 3", aTime, `"metrics":`+many(4, `{"id":"m%d","metric":"m"}`))
	f("Too many expressions, at most 64", aTime, twoMetrics, `"expressions":`+many(65, `{"id":"e%d","expr":"a"}`))
	f("Too many outputs, at most 128", aTime, twoMetrics, `"outputs":`+many(129, `{"id":"a%d"}`))
	f("Too many filters, at most 256", aTime, twoMetrics, `"filters":`+many(257, `{"id":"f%d"}`))
	half := many(129, `{"type":"wildcard","tagk":"k%d","filter":"*"}`)
	f("Too many tags, at most 127", aTime, twoMetrics,
		`"filters":[{"id":"f1","tags":`+half+`},{"id":"f2","tags":`+half+`}]`)
}

// A request is written as OpenTSDB repeats it: fields that were not given are null, numbers given
// for texts are texts, and defaults are filled in. Keys that differ in case are ignored.
func TestRequest_MarshalJSON(t *testing.T) {
	r := request(
		t, `"time":{"start":1363651200,"AGGREGATOR":"x","aggregator":"sum","rate":"true",`+
			`"downsampler":{"interval":"1m","aggregator":"avg","fillPolicy":{"policy":"NAN"}}}`,
		`"metrics":[{"id":"a","metric":"m","fillPolicy":{"value":2}}]`,
		`"expressions":[{"id":"e","expr":"a","join":{"operator":"UNION","includeAggTags":false}}]`, `"outputs":[{}]`)
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if r.Time.RollupUsage != nil || r.Expressions[0].Join.UseGroupTags {
		t.Errorf("%+v, %+v: Downpour's own fields are set although they were not given", r.Time, r.Expressions[0].Join)
	}
	want := `{"name":null,"time":{"start":"1363651200","end":null,"timezone":null,"downsampler":{"interval":"1m",` +
		`"aggregator":"avg","fillPolicy":{"policy":"nan","value":"NaN"}},"aggregator":"sum","rate":true},` +
		`"filters":null,"metrics":[{"metric":"m","id":"a","filter":null,"aggregator":null,"timeOffset":null,` +
		`"fillPolicy":{"policy":"scalar","value":2.0}}],` +
		`"expressions":[{"id":"e","expr":"a","join":{"operator":"union","useQueryTags":false,` +
		`"includeAggTags":false},"fillPolicy":null}],"outputs":[{"id":null,"alias":null}]}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Fields that only Downpour has are repeated if they were given, and take effect in the query and
// the join.
func TestRequest_ownFields(t *testing.T) {
	r := request(t, `"time":{"start":1363651200,"end":1363651800,"aggregator":"sum","rollupUsage":"rollup_raw"}`,
		`"metrics":[{"id":"a","metric":"m"}]`,
		`"expressions":[{"id":"e","expr":"a","join":{"operator":"intersection","useGroupTags":true}}]`)
	if j := r.Expressions[0].Join; j != (Join{Operator: "intersection", IncludeAggTags: true, UseGroupTags: true}) {
		t.Errorf("join %+v", j)
	}
	q, _, err := r.Query(parser)
	if err != nil || q.Queries[0].RollupUsage != query.RollupRaw {
		t.Errorf("%+v, %v; want raw data", q, err)
	}
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"rollupUsage":"rollup_raw"`, `"includeAggTags":true,"useGroupTags":true`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}

// Equal metrics become one sub-query, and the fill policy of a downsampler has no effect.
func TestRequest_Query(t *testing.T) {
	r := request(
		t, `"time":{"start":1363651200,"end":1363651800,"aggregator":"sum","rate":true,`+
			`"downsampler":{"interval":"1m","aggregator":"avg","fillPolicy":{"policy":"zero"}}}`, aFilter,
		`"metrics":[{"id":"a","metric":"m","filter":"f1"},{"id":"b","metric":"m","filter":"f1",`+
			`"aggregator":"sum"},{"id":"c","metric":"m"},{"id":"d","metric":"m","filter":"f1","aggregator":"max"}]`)
	q, bySub, err := r.Query(parser)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int{0, 0, 1, 2}, bySub); d != "" {
		t.Errorf("sub-queries: -want +got\n%s", d)
	}
	if s := q.Queries[0]; !q.Untrimmed || !s.Rate || s.DownsampleText != "1m-avg" || s.Aggregator != "sum" ||
		len(s.Filters) != 1 || q.Queries[2].Aggregator != "max" {
		t.Errorf("%+v, %+v", q, s)
	}

	r = request(t, `"time":{"start":1363651200,"end":1363651800,"aggregator":"SUM"}`,
		`"metrics":[{"id":"a","metric":"m"}]`)
	if _, _, err := r.Query(parser); err == nil || err.Error() != "No such aggregation function: SUM" {
		t.Errorf("error %v", err)
	}
	r = request(t, `"time":{"start":1363651200,"end":1363651200,"aggregator":"sum"}`,
		`"metrics":[{"id":"a","metric":"m"}]`)
	if _, _, err := r.Query(parser); err == nil ||
		err.Error() != "End time [1363651200000] must be greater than the start time [1363651200000]" {
		t.Errorf("error %v", err)
	}
}
