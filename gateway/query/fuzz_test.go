package query

import (
	"encoding/json"
	"errors"
	"net/url"
	"testing"
	"unicode/utf8"
)

// wellFormed checks what must hold for every query and every error of a parser.
func wellFormed(t *testing.T, q *Query, err error) {
	t.Helper()
	if err != nil {
		var e *Error
		if q != nil || !errors.As(err, &e) || e.Message == "" || e.Status != 400 && e.Status != 413 && e.Status != 500 {
			t.Errorf("got %v, %#v, want no query and a *Error with a message and a known status", q, err)
		}
		return
	}
	if q.Start < 0 || q.End <= q.Start || len(q.Queries) == 0 || len(q.Queries) > MaxSubQueries {
		t.Errorf("accepted a query with bad times or a bad number of sub-queries: %s", q)
	}
	for i := range q.Queries {
		if q.Queries[i].Index != i {
			t.Errorf("sub-query %d has index %d", i, q.Queries[i].Index)
		}
		if _, err := json.Marshal(q.Echo(i)); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	f.Add(
		[]byte(
			body(
				`{"aggregator":"sum","metric":"m","tags":{"a":"b*"},` +
					`"filters":[{"type":"regexp","tagk":"k","filter":"a|[b]"}],"rateOptions":{"counterMax":1.5}}`)))
	f.Add(
		[]byte(
			`{"start":"2013/01/01-00:00","timezone":"Europe/Berlin","queries":[{"aggregator":"p99",` +
				`"tsuids":["00"],"downsample":"1nc-dev-null","percentiles":[99]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		q, err := Parser{Now: now}.JSON(text)
		wellFormed(t, q, err)
	})
}

func FuzzParseURI(f *testing.F) {
	f.Add("1h-ago", "now", "sum:1m-avg:rate{counter,1,2}:m{a=b|c,d=*e}{f=not_iliteral_or(g)}", "max:0000,11")
	f.Fuzz(func(t *testing.T, start, end, m, tsuid string) {
		q, err := ParseURI(url.Values{"start": {start}, "end": {end}, "m": {m}, "tsuid": {tsuid}}, now)
		wellFormed(t, q, err)
		q, err = ParseURI(url.Values{"start": {start}, "m": {m}}, now)
		wellFormed(t, q, err)
	})
}

func FuzzTime(f *testing.F) {
	f.Add("2013/01/01-00:00:00", "Asia/Tokyo")
	f.Add("1y2d-ago", "")
	f.Add("1356998400.250", "nope")
	f.Fuzz(func(t *testing.T, text, zone string) {
		if _, err := (clock{now: now}).parseTime(text, zone); err != nil && err.Error() == "" {
			t.Error("an error without a text")
		}
		if ms, err := ParseDuration(text); err == nil && ms <= 0 {
			t.Errorf("%q: got %d ms, want a positive duration or an error", text, ms)
		}
	})
}

// FuzzFilter checks that a filter does not panic, admits only values with its prefix, and equals
// itself.
func FuzzFilter(f *testing.F) {
	for _, kind := range FilterTypes() {
		f.Add(kind, `^a*|[b-c&&d]\p{Alpha}{2,3}+(?i:x)\Q.`, "abc")
	}
	f.Fuzz(func(t *testing.T, kind, text, value string) {
		filter, err := NewFilter(kind, "k", text, false)
		if err != nil {
			return
		}
		if prefix := filter.Prefix(); filter.Match(value) &&
			(len(value) < len(prefix) || value[:len(prefix)] != prefix) {
			t.Errorf("%s(%s) admits %q without its prefix %q", kind, text, value, prefix)
		}
		if !filter.same(&filter) {
			t.Errorf("%s(%s) is not the same filter as itself", kind, text)
		}
	})
}

// FuzzWildcard compares wildcard filters with naiveWildcard.
func FuzzWildcard(f *testing.F) {
	f.Add("a*a", "ba")
	f.Add("*é**b", "xéyb")
	f.Fuzz(func(t *testing.T, text, value string) {
		filter, err := NewFilter(Wildcard, "k", text, false)
		if err == nil && utf8.ValidString(text+value) && filter.Match(value) != naiveWildcard(text, value) {
			t.Errorf("%q on %q: got %t, want the opposite", text, value, filter.Match(value))
		}
	})
}
