package tools

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
)

// Only the series that the plan's tag predicates admit are exported, also if the store returns
// others.
func TestAdmits(t *testing.T) {
	s := encoding.DefaultSchema()
	u := func(n byte) encoding.UID { return encoding.UID{0, 0, n} }
	tags := s.AppendTags(nil, []encoding.TagPair{{K: u(1), V: u(5)}, {K: u(2), V: u(6)}})
	f := func(exact, want bool, predicates ...scanplan.TagPredicate) {
		t.Helper()
		if got := admits(&scanplan.Plan{Schema: s, Exact: exact, Tags: predicates}, tags); got != want {
			t.Errorf("%v, exact %t: %t, want %t", predicates, exact, got, want)
		}
	}
	in := func(op scanplan.TagOp, k byte, values ...encoding.UID) scanplan.TagPredicate {
		return scanplan.TagPredicate{TagK: u(k), Op: op, Values: values}
	}
	f(false, true)
	f(false, true, in(scanplan.In, 1, u(4), u(5)))
	f(false, false, in(scanplan.In, 1, u(4)))
	f(false, false, in(scanplan.In, 3, u(5)))
	f(false, false, in(scanplan.NotIn, 2, u(6)))
	f(false, true, in(scanplan.NotIn, 2, u(5)))
	f(true, false, in(scanplan.In, 1, u(5)))
	f(true, true, in(scanplan.In, 1, u(5)), in(scanplan.NotIn, 2, u(5)))
}

func TestFormatValue(t *testing.T) {
	for text, want := range map[string]string{
		"1":                    "1",
		"-9223372036854775808": "-9223372036854775808",
		"1.0":                  "1.000000",
		"0.1234567":            "0.123457",
		"1e3":                  "1000.000000",
		"NaN":                  "NaN",
		"-Inf":                 "-Infinity",
		"Inf":                  "Infinity",
		`"NaN"`:                "NaN",
		`"-Infinity"`:          "-Infinity",
		"9223372036854775808":  "9223372036854775808.000000",
	} {
		v, err := readNumber(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := formatValue(v); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestQueryArguments(t *testing.T) {
	f := func(args, want string) {
		t.Helper()
		body, err := queryArguments(strings.Fields(args), query.Parser{Now: time.Unix(1400000000, 0)})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(body.Start, " ", body.End)
			for _, s := range body.Queries {
				got += fmt.Sprint(" | ", s.Aggregator, " ", s.Metric, " ", s.Rate, " ", s.Downsample, " ", s.Tags)
				if o := s.RateOptions; o != nil {
					got += fmt.Sprint(" ", *o)
				}
			}
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	f("1h-ago sum m", "1h-ago  | sum m false  map[]")
	f("1h-ago now sum m a=b c=*", "1h-ago now | sum m false  map[a:b c:*]")
	f("2013/01/01-00:00 2013/01/02-00:00 max rate m", "2013/01/01-00:00 2013/01/02-00:00 | max m true  map[]")
	f("1 2 sum rate counter,100,5 downsample 60000 avg m sum n a=b",
		"1 2 | sum m true 60000ms-avg map[] {true 100 5} | sum n false  map[a:b]")
	f("1 sum downsample 5m avg m", "1  | sum m false 5m-avg map[]")
	f("1 sum rate counter m", "1  | sum m true  map[] {true 0 0}")
	f("1 some m", `AGG: got "some"`)
	f("1 sum", "want at least")
	f("1 2 sum", "METRIC is missing")
	f("1 sum m a=b a=c", "duplicate tag")
	f("1 sum m a=b=c", "invalid tag")
	f("1 sum rate counter,x m", "rate: got")
	f("1 +wxh=1x1 sum m", `"+wxh=1x1": graphs are not drawn`)
}
