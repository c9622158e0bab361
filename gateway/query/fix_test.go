package query

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestParseFixes(t *testing.T) {
	f := func(text string, want Fixes, wantError string) {
		t.Helper()
		got, err := ParseFixes(text)
		if got != want || (err == nil) != (wantError == "") || err != nil && !strings.Contains(err.Error(), wantError) {
			t.Errorf("%q: %b, %v, want %b, %q", text, got, err, want, wantError)
		}
	}
	f("", 0, "")
	f("none", 0, "")
	f("all", allFixes, "")
	f("rate-start, gaps", FixRateStart|FixGaps, "")
	f("seconds", FixSeconds, "")
	f("gaps,all", 0, `got "all", want a list of rate-start, gaps, integers, filters, seconds, timezone`)
	f("Gaps", 0, `got "Gaps"`)
	f("gaps,", 0, `got ""`)
	for _, n := range fixNames {
		f(n.name, n.fix, "")
		if n.fix < 1<<8 && n.fix.Plan().String() != n.name {
			t.Errorf("the plan calls %s %s", n.name, n.fix.Plan())
		}
	}
}

// The fixes of the request line take precedence over those of the gateway, for GET and POST.
func TestFix_given(t *testing.T) {
	f := func(own Fixes, parameter string, want Fixes) {
		t.Helper()
		values := url.Values{"start": {"1356998400"}, "end": {"1356998500"}, "m": {"sum:m{host=a*b}"}}
		if parameter != "-" {
			values.Set("fix", parameter)
		}
		p := Parser{Now: time.Unix(1400000000, 0), Fix: own}
		get, err := p.URI(values)
		if err != nil {
			t.Fatal(err)
		}
		post, err := p.JSON(
			[]byte(
				`{"start":1356998400,"end":1356998500,"queries":[{"aggregator":"sum","metric":"m",` +
					`"tags":{"host":"a*b"}}]}`))
		if err == nil {
			err = post.ReadURIOptions(values)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []*Query{get, post} {
			if exact := !q.Queries[0].Filters[0].Match("xaab"); q.Fix != want || exact != want.Contains(FixFilters) {
				t.Errorf("%b and fix=%s: %b, wildcards exact %t, want %b", own, parameter, q.Fix, exact, want)
			}
		}
	}
	f(0, "-", 0)
	f(FixFilters, "-", FixFilters)
	f(FixFilters, "none", 0)
	f(FixFilters|FixGaps, "gaps", FixGaps)
	f(0, "filters", FixFilters)
	_, err := ParseURI(url.Values{"start": {"1"}, "m": {"sum:m"}, "fix": {"x"}}, time.Unix(1400000000, 0))
	if err == nil || !strings.Contains(err.Error(), `Invalid fix: got "x"`) {
		t.Errorf("got %v, want that x is no fix", err)
	}
}

// With the fix a GET's timezone takes effect; without it the parameter is ignored, as by OpenTSDB.
func TestFix_timezone(t *testing.T) {
	f := func(fix Fixes, start int64) {
		t.Helper()
		q, err := Parser{Now: time.Unix(1400000000, 0), Fix: fix}.URI(url.Values{"start": {"2013/01/01-00:00:00"},
			"m": {"sum:m"}, "timezone": {"Asia/Tokyo"}})
		if err != nil || q.Start != start*1000 {
			t.Errorf("%b: %v, %v, want %d", fix, q, err, start)
		}
	}
	f(0, 1356998400)
	f(FixTimezone, 1356998400-9*3600)
}

// With the fix a star stands for any text, also none, and the texts between stars must come in
// order without overlap. Without it wildcards match as OpenTSDB's.
func TestFix_wildcard(t *testing.T) {
	f := func(pattern, value string, exact, loose bool) {
		t.Helper()
		w, err := newWildcard(pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.match(value); got != loose {
			t.Errorf("%s on %q: %t, want %t", pattern, value, got, loose)
		}
		if w.exact = true; w.match(value) != exact {
			t.Errorf("%s on %q, exact: %t, want %t", pattern, value, !exact, exact)
		}
	}
	f("a*b", "ab", true, true)
	f("a*b", "axxb", true, true)
	f("a*b", "xbxaxb", false, true)
	f("a*b", "abx", false, true)
	f("a*a", "ba", false, true)
	f("a*a", "a", false, false)
	f("a*a", "aa", true, true)
	f("*a*b*", "xaxbx", true, true)
	f("*a*b*", "xbxax", false, true)
	f("a*", "ab", true, true)
	f("a*", "ba", false, false)
	f("*a", "ba", true, true)
	f("*a", "ab", false, false)
	f("**", "", true, true)
	f("a*b*a", "aba", true, true)
	f("a*b*a", "ab", false, false)
	f("a*ba*a", "aba", false, false)
}
