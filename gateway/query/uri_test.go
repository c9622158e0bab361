package query

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding/scanplan"
)

func parseQueryString(text string) (*Query, error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, err
	}
	return ParseURI(values, now)
}

func TestParseURI_flags(t *testing.T) {
	q, err := parseQueryString(
		"start=1h-ago&start=1356998400&end=1357002000&m=sum:m&tsuid=max:1m-avg:000001000001000001,000001000001000002&" +
			"padding&no_annotations&global_annotations&show_tsuids&ms=false&show_query&show_stats&show_summary" +
			"&arrays&mode=partial&trace=true&allowPartial=false&explain&integers=true")
	if err != nil {
		t.Fatal(err)
	}
	if !(q.Padding && q.NoAnnotations && q.GlobalAnnotations && q.ShowTSUIDs && q.MSResolution && q.ShowQuery &&
		q.ShowStats && q.ShowSummary) {
		t.Errorf("a flag without a value, or ms=false, is not set: %+v", q)
	}
	if diff := cmp.Diff(URIOptions{Arrays: true, Mode: "partial", Trace: true, Explain: true, Integers: true},
		q.URIOptions); diff != "" {
		t.Error(diff)
	}
	if q.Start != 1356998400_000 || q.NoEnd {
		t.Errorf("start %d, without an end %t, want the last start and an end", q.Start, q.NoEnd)
	}
	if len(q.Queries) != 2 || len(q.Queries[0].TSUIDs) != 2 || q.Queries[0].Aggregator != "max" ||
		q.Queries[1].Metric != "m" {
		t.Errorf("TSUIDs do not come first: %s", q)
	}
}

func TestParseURI_m(t *testing.T) {
	f := func(m, want string) {
		t.Helper()
		q, err := ParseURI(url.Values{"start": {"1356998400"}, "end": {"1357002000"}, "m": {m}}, now)
		if err != nil {
			t.Errorf("%s: %v", m, err)
			return
		}
		s := q.Queries[0]
		got := fmt.Sprintf("%s %s", s.Aggregator, s.Metric)
		if s.Downsample != nil {
			got += " " + s.Downsample.String()
		}
		if r := s.PlanRate(); r != nil {
			got += fmt.Sprintf(" rate%v", *r)
		}
		for _, f := range s.Filters {
			got += fmt.Sprintf(" %s=%s(%s)", f.TagK, f.Type, f.Text)
			if f.GroupBy {
				got += "!"
			}
		}
		if s.ExplicitTags {
			got += " explicit"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", m, got, want)
		}
	}
	f("sum:sys.cpu", "sum sys.cpu")
	f("sum:1m-avg:rate:m", "sum m 1m-avg-none rate{false 9223372036854775807 0 false}")
	f("sum:RATE{counter,100,5}:1m-avg:m", "sum m 1m-avg-none rate{true 100 5 false}")
	f("sum:rate{dropcounter,,}:m", "sum m rate{true 9223372036854775807 0 true}")
	f("sum:rate{mycounter}:m", "sum m rate{true 9223372036854775807 0 false}")
	f("sum:whatever:explicit_tags_too:m{}", "sum m explicit")
	f("sum:m{host=*}", "sum m host=wildcard(*)!")
	f("sum:m{host=web01,dc=a|b}", "sum m host=literal_or(web01)! dc=literal_or(a|b)!")
	f("sum:m{host=web*}{dc=Regexp(^l)}", "sum m dc=regexp(^l) host=wildcard(web*)!")
	f("sum:m{}{dc=lga}", "sum m dc=literal_or(lga)")
	f("sum:m{host=a,host=a}", "sum m host=literal_or(a)!")
	f("sum:m{host=a}{host=a}", "sum m host=literal_or(a)!")
	f("sum:m{host=web*,host=*web}", "sum m host=wildcard(web*)!") // equal filters: outer stars do not count
}

// A tag value with a star that names no filter type ignores case; wildcard(…) does not.
func TestParseURI_starIgnoresCase(t *testing.T) {
	f := func(value string, want bool) {
		t.Helper()
		q, err := ParseURI(url.Values{"start": {"1"}, "m": {"sum:m{host=" + value + "}"}}, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Queries[0].Filters[0].Match("WEB01"); got != want {
			t.Errorf("%s matches WEB01: %t, want %t", value, got, want)
		}
	}
	f("web*", true)
	f("wildcard(web*)", false)
	f("iwildcard(web*)", true)
	f("literal_or(web01)", false)
	f("iliteral_or(web01)", true)
}

func TestParseURI_refused(t *testing.T) {
	f := func(text string, wantStatus int, want string) {
		t.Helper()
		q, err := parseQueryString(text)
		var e *Error
		if q != nil || !errors.As(err, &e) || e.Status != wantStatus || e.Message != want {
			t.Errorf("%.200s: %v, want %d %s", text, err, wantStatus, want)
		}
	}
	f("m=sum:m", 400, "Missing parameter <code>start</code>")
	f("start=&m=", 400, "Missing parameter <code>start</code>")
	f("start=1", 400, "Missing sub queries")
	f("start=1&m=", 400, "The query string was empty")
	f("start=1&tsuid=", 400, "The tsuid query string was empty")
	f("start=x&m=sum", 400, "Invalid parameter m=sum (not enough :-separated parts)")
	f("start=1&m=a:b:c:d:e:f", 400, "Invalid parameter m=a:b:c:d:e:f (too many :-separated parts)")
	for _, tag := range []string{"host=2001:db8::1", "dc=a,host=a:b", "host=a:b,dc=a", "host=regexp(a{2}:b)",
		"dc=a}{host=a:b"} {
		_, colon, _ := strings.Cut(tag, "host=")
		colon, _, _ = strings.Cut(colon, ",")
		f("start=1&m=sum:m{"+tag+"}", 400,
			"Invalid parameter m=sum:m{"+tag+"} (a ':' in the tag 'host="+colon+"', which only POST takes)")
	}
	f("start=1&m=sum::m", 400, "Invalid parameter m=sum::m (an empty part)")
	f("start=1&m=sum:rate{counter,abc}:m", 400, "Max value of counter was not a number, received 'abc'")
	f("start=1&m=sum:rate{counter,1,abc}:m", 400, "Reset value of counter was not a number, received 'abc'")
	f("start=1&m=sum:rate{a,b,c,d}:m", 400,
		"Incorrect number of values in rate options specification, must be counter[,counter max value,reset "+
			"value], recieved: 4 parts")
	f("start=1&m=sum:rate{:m", 400, "Invalid rate options specification: rate{")
	f("start=1&m=sum:", 500, "Metric cannot be null or empty")
	f("start=1&m=sum:{}", 400, "Missing the metric or tsuids, provide at least one")
	f("start=1&m=sum:m{host=", 500, "Missing '}' at the end of: m{host=")
	f("start=1&m=sum:m}{", 500, "Missing '}' at the end of: m}{")
	f("start=1&m=sum:m}{x}", 500, "A '}' before the '{' of: m}{x}")
	f("start=1&m=sum:m{xh}", 500, "When parsing tag 'xh': invalid tag: xh")
	f("start=1&m=sum:m{}{k=foo(v)}", 500,
		"When parsing filter 'k=foo(v)': Could not find a tag value filter of the type: foo")
	f("start=1&m=sum:m{k=foo(v)}", 500,
		"When parsing tag 'k=foo(v)': Could not find a tag value filter of the type: foo")
	f("start=1&m=sum:m{k=regexp([a[b]])}", 400,
		"When parsing tag 'k=regexp([a[b]])': Unsupported regular expression '[a[b]]': it uses a class inside a class")
	f("start=1&m=sum:m&mode=fast", 400, "Invalid mode: fast, want strict or partial")
	f("start=1"+strings.Repeat("&m=sum:m", 40)+strings.Repeat("&tsuid=sum:00", 40), 413,
		"Too many sub queries: 80, at most 64")
}

func TestDownsample(t *testing.T) {
	type d = scanplan.Downsample
	f := func(text string, want *d) {
		t.Helper()
		got, err := parseDownsample(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		if err := splitInterval(got, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	f("1m-avg", &d{Interval: 60_000, Count: 1, Unit: "m", Function: "avg", Fill: "none"})
	f("500ms-p99-NaN", &d{Interval: 500, Count: 500, Unit: "ms", Function: "p99", Fill: "nan"})
	f("1.5m-sum", &d{Interval: 60_000, Function: "sum", Fill: "none"})
	f("0all-sum-zero", &d{All: true, Function: "sum", Fill: "zero"})
	f("small-sum", &d{All: true, Function: "sum", Fill: "none"})
	f("1wc-sum--", &d{Interval: 7 * 86400_000, Count: 1, Unit: "w", Calendar: true, Function: "sum", Fill: "none"})
	g := func(text, want string) {
		t.Helper()
		if got, err := parseDownsample(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	g("1m", "Invalid downsampling specifier '1m': must provide at least interval and function")
	g("1m-sum-nan-x", "Invalid downsampling specifier '1m-sum-nan-x': must consist of interval, function, and "+
		"optional fill policy")
	g("1x-sum", "Invalid duration (suffix): 1x")
	g("0m-sum", "Zero or negative duration: 0m")
	g("0ALL-sum", "Zero or negative duration: 0ALL")
	g("1mC-sum", "Invalid duration (suffix): 1mC")
	g("1m-SUM", "No such downsampling function: SUM")
	g("1m-none", "cannot use the NONE aggregator for downsampling")
	g("1m-sum-x", "Unrecognized fill policy: x")
	g("-sum", "Invalid downsampling specifier '-sum': the interval is missing")
}

// A fault that OpenTSDB finds only when it runs a query is parsed and stands in RunError.
func TestRunError(t *testing.T) {
	f := func(downsample, want string) {
		t.Helper()
		q, err := parseQueryString("start=1&m=sum:" + downsample + ":m")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if e := q.Queries[0].RunError; e != nil {
			got = fmt.Sprint(e.Status, " ", e.Message)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", downsample, got, want)
		}
	}
	f("1m-sum-scalar", "400 unhandled fill policy")
	f("1.5mc-sum", "400 Floating point intervals are not supported")
	f("1y2dc-sum", "400 Invalid units in the duration: y2d")
	f("1y2d-sum", "")
}

// Further sub-queries follow those of m, and equal ones share a place. Earlier moves one of them in
// time.
func TestURIWith(t *testing.T) {
	values := url.Values{"start": {"1356998400"}, "end": {"1356998401"}, "m": {"sum:a"}}
	q, at, err := Parser{SubQueries: 5}.URIWith(values, func(limit int) ([]string, error) {
		if limit != 4 {
			t.Errorf("%d more sub-queries are allowed, want 4", limit)
		}
		return []string{"sum:b", "sum:a", "max:b", "sum:b"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 0, 2, 1}, at); diff != "" || len(q.Queries) != 3 {
		t.Errorf("%d sub-queries, want 3; places want -, got +: %s", len(q.Queries), diff)
	}

	earlier, err := q.Earlier(2, 1000)
	if err != nil || len(earlier.Queries) != 1 || earlier.Queries[0].Index != 2 || earlier.Start != q.Start-1000 ||
		earlier.End != q.End-1000 {
		t.Errorf("got %+v, %v, want sub-query 2 alone, a second earlier", earlier, err)
	}
	if _, err := q.Earlier(0, q.Start+1); err == nil {
		t.Error("a time before 1970: got no error")
	}
}
