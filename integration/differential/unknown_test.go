package differential

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/compare"
)

// teller answers like a server that does not know some names. It names the first of them, or the
// last, as a server that looks them up side by side may.
type teller struct {
	unknown []string
	last    bool
}

func (s teller) answer(filters []Filter) compare.Answer {
	missed := ""
	tell := func(kind, name string) {
		if slices.Contains(s.unknown, name) && (missed == "" || s.last) {
			missed = fmt.Sprintf(`{"error":{"code":400,"message":"No such name for '%s': '%s'"}}`, kind, name)
		}
	}
	for _, f := range filters {
		tell("tagk", f.TagK)
		for _, v := range strings.Split(f.Text, "|") {
			tell("tagv", v)
		}
	}
	if missed == "" {
		return compare.Answer{Status: 200, Body: fmt.Appendf(nil, `[{"filters":%d}]`, len(filters))}
	}
	return compare.Answer{Status: 400, Body: []byte(missed)}
}

func between(theirs, ours teller, filters []Filter) (c Comparison) {
	c.Want, c.Got = theirs.answer(filters), ours.answer(filters)
	c.Report, c.Rules, c.Err = compare.WithReference(c.Want, c.Got)
	return c
}

func literals(key, text string) Filter {
	return Filter{Type: "literal_or", TagK: key, Text: text, GroupBy: true}
}

// Two servers may name different ones of several unknown names. They differ if either of them knows
// one of these names.
func TestCompare(t *testing.T) {
	f := func(name string, theirs, ours teller, equal bool, rules []string, filters ...Filter) {
		t.Helper()
		q := Query{Subs: []Sub{{Metric: "m", Filters: filters[:1]}, {Metric: "n", Filters: filters[1:]}}}
		c := Compare(q, func(q Query) Comparison {
			return between(theirs, ours, slices.Concat(q.Subs[0].Filters, q.Subs[1].Filters))
		})
		if c.Equal() != equal || !slices.Equal(c.Rules, rules) {
			t.Errorf("%s: %v, error %v, rules %q; want equal %t, rules %q",
				name, c.Report, c.Err, c.Rules, equal, rules)
		}

		e := Exp{Filters: []ExpFilter{{ID: "f", Tags: filters[:1]}, {ID: "g", Tags: filters[1:]}}}
		c = Compare(e, func(e Exp) Comparison {
			return between(theirs, ours, slices.Concat(e.Filters[0].Tags, e.Filters[1].Tags))
		})
		if c.Equal() != equal || !slices.Equal(c.Rules, rules) {
			t.Errorf("%s, expressions: %v, error %v, rules %q; want equal %t, rules %q",
				name, c.Report, c.Err, c.Rules, equal, rules)
		}
	}
	ruled := []string{compare.OneOfUnknownNames}
	first := func(unknown ...string) teller { return teller{unknown, false} }
	last := func(unknown ...string) teller { return teller{unknown, true} }

	f("one name", first("a"), last("a"), true, nil, literals("host", "a|x"), literals("dc", "y"))
	f("two names of a filter", first("a", "b"), last("a", "b"), true, ruled, literals("host", "a|x|b"),
		literals("dc", "y"))
	f("two names of two", first("a", "b"), last("a", "b"), true, ruled, literals("host", "a"), literals("dc", "b"))
	f("a key and a value", first("rack", "b"), last("rack", "b"), true, ruled, literals("rack", "x"),
		literals("dc", "b"))
	f("three names", first("a", "b", "c"), last("a", "b", "c"), true, ruled, literals("host", "a|c"),
		literals("dc", "b|c|x"))
	f("ours knows the name that theirs tells",
		first("a", "b"), last("b"), false, nil, literals("host", "a"), literals("dc", "b"))
	f("theirs knows the name that ours tells",
		first("a"), last("a", "b"), false, nil, literals("host", "a"), literals("dc", "b"))
	f("ours knows one of three", first("a", "b", "c"), last("a", "c"), false, nil, literals("host", "a|b"),
		literals("dc", "c"))
	f("a name that was not asked for",
		first("a"), teller{[]string{"y"}, true}, false, nil, literals("host", "a"), literals("dc", "y"))
}

// Compare stops asking when an answer names something that is not in the question.
func TestCompare_ends(t *testing.T) {
	asked := 0
	c := Compare(Query{Subs: []Sub{{Filters: []Filter{literals("host", "a")}}}}, func(Query) (c Comparison) {
		asked++
		c.Want = teller{[]string{"a"}, true}.answer([]Filter{literals("host", "a")})
		c.Got = teller{[]string{"z"}, true}.answer([]Filter{literals("host", "z")})
		c.Report, c.Rules, c.Err = compare.WithReference(c.Want, c.Got)
		return c
	})
	if c.Equal() || asked > 3 {
		t.Errorf("asked %d times, want at most 3; want a difference, got %v", asked, c.Report)
	}
}

// Without takes a tag value out of the lists whose names are looked up, and a tag key with all its
// filters. The question itself stays as it was.
func TestWithout(t *testing.T) {
	filters := func() []Filter {
		return []Filter{
			literals("host", "a|b|a"), literals("dc", "a"), {Type: "iliteral_or", TagK: "dc", Text: "a"},
			{Type: "not_literal_or", TagK: "task", Text: "a|b"}, {Type: "wildcard", TagK: "rack", Text: "*"},
		}
	}
	q, e := Query{Subs: []Sub{{Filters: filters()}, {}}}, Exp{Filters: []ExpFilter{{ID: "f", Tags: filters()}}}
	f := func(name compare.UnknownName, found bool, want []Filter) {
		t.Helper()
		fewer, ok1 := q.Without(name)
		fewerExp, ok2 := e.Without(name)
		if ok1 != found || ok2 != found {
			t.Errorf("%v: found %t and %t, want %t", name, ok1, ok2, found)
		}
		if d := cmp.Diff([][]Filter{want, want}, [][]Filter{fewer.Subs[0].Filters, fewerExp.Filters[0].Tags}); d != "" {
			t.Errorf("%v: (-want +got)\n%s", name, d)
		}
		if d := cmp.Diff([][]Filter{filters(), filters()}, [][]Filter{q.Subs[0].Filters, e.Filters[0].Tags}); d != "" {
			t.Fatalf("%v: the question itself has changed (-before +after)\n%s", name, d)
		}
	}
	all := filters()
	f(compare.UnknownName{Kind: "tagv", Name: "a"}, true, append([]Filter{literals("host", "b")}, all[2:]...))
	f(compare.UnknownName{Kind: "tagk", Name: "dc"}, true, []Filter{all[0], all[3], all[4]})
	f(compare.UnknownName{Kind: "tagv", Name: "host"}, false, all)
	f(compare.UnknownName{Kind: "metrics", Name: "a"}, false, all)
}
