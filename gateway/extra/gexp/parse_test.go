package gexp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/query"
)

// shown returns calls as text, with all their arguments: series first, then parameters as <p>.
func shown(e *Expressions) string {
	var call func(c *Call) string
	call = func(c *Call) string {
		var args []string
		for _, a := range c.Args {
			if a.Call != nil {
				args = append(args, call(a.Call))
			} else {
				args = append(args, e.Metrics[a.Metric].Text)
			}
		}
		for _, p := range c.Params {
			args = append(args, "<"+p+">")
		}
		return c.Function + "(" + strings.Join(args, " ") + ")"
	}
	var all []string
	for _, c := range e.Calls {
		all = append(all, call(c))
	}
	return strings.Join(all, " ")
}

func TestParse(t *testing.T) {
	f := func(want string, texts ...string) {
		t.Helper()
		e, err := Parse(texts, 64)
		if err != nil {
			t.Errorf("%q: %v", texts, err)
			return
		}
		if diff := cmp.Diff(want, shown(e)); diff != "" {
			t.Errorf("%q: want -, got +: %s", texts, diff)
		}
	}
	f("scale(sum:a <10>)", "scale(sum:a,10)")
	f("scale(sum:a <10>)", " scale ( sum : a\t,\n10 ) and what follows (")
	f("scale(sum:5m-avg-nan:rate:a{x=*,y=b|c.d'e[f]} <-1.5>)", "scale(sum:5m-avg-nan:rate:a{x=*,y=b|c.d'e[f]},-1.5)")
	f("sum(scale(sum:a <2>) max:b) absolute(sum:c)", "sum(scale(sum:a,2),max:b)", "absolute(sum:c)")
	f("alias(sum:straße <größe> <*>)", "alias(sum:straße,größe,*)")

	fails := func(text, details string) {
		t.Helper()
		_, err := Parse([]string{text}, 64)
		var refused *query.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest ||
			refused.Message != "Failed to parse "+text || refused.Details != details {
			t.Errorf("%q: %v (%+v), want that it cannot be parsed: %s", text, err, refused, details)
		}
	}
	const (
		function  = "the name of a function"
		open      = `"(" behind the name of a function`
		argument  = "a metric, a function or a parameter"
		behindArg = `"," or ")" behind an argument`
		part      = "a part of a metric"
		tag       = "KEY=VALUE with characters that a name may have"
		behindTag = `"," or "}" behind a tag`
	)
	for _, f := range []struct {
		text string
		at   int // from 1
		got  string
		want string
	}{
		{"", 1, "the end", function}, {"(sum:a)", 1, `"("`, function}, {"%", 1, `"%"`, function},
		{"scale", 6, "the end", open}, {"scale sum:a", 7, `"sum"`, open}, {"a:b(c)", 2, `":"`, open},
		{"scale(", 7, "the end", argument}, {"scale()", 7, `")"`, argument}, {"scale(sum:a,)", 13, `")"`, argument},
		{"sum(scale(sum:a,2),", 20, "the end", argument},
		{"scale(sum:a", 12, "the end", behindArg}, {"scale(sum:a 2)", 13, `"2"`, behindArg},
		{"scale(sum:a{b=c}{d=e})", 17, `"{"`, behindArg},
		{"scale(sum:a,'5 min')", 16, `"min'"`, behindArg}, {"scale(sum:straße,5%)", 19, `"%"`, behindArg},
		{"sum(scale(sum:a,2", 18, "the end", behindArg},
		{"scale(sum:)", 11, `")"`, part}, {"scale(sum::a)", 11, `":"`, part},
		{"scale(sum:a:b:c:d)", 17, `"d"`, "at most 4 parts of a metric"},
		{"scale(sum:a{})", 13, `"}"`, tag}, {"scale(sum:a{b})", 14, `"}"`, tag},
		{"scale(sum:a{b=c,})", 17, `"}"`, tag}, {"scale(sum:rate{counter}:a)", 23, `"}"`, tag},
		{"scale(sum:a{b=c)", 16, `")"`, behindTag}, {"scale(sum:a{b=c*})", 16, `"*"`, behindTag},
		{"scale(sum:a{b=c:d})", 16, `":"`, behindTag},
	} {
		fails(f.text, fmt.Sprintf("character %d: got %s, want %s", f.at, f.got, f.want))
	}
}

// Texts that exceed a bound are refused with 413, and unknown functions with 400.
func TestParse_bounds(t *testing.T) {
	f := func(text string, metrics, wantStatus int, want string) {
		t.Helper()
		_, err := Parse([]string{text}, metrics)
		var refused *query.Error
		if !errors.As(err, &refused) || refused.Status != wantStatus || !strings.HasPrefix(refused.Message, want) {
			t.Errorf("%.50s: %v, want %d %s", text, err, wantStatus, want)
		}
	}
	nested := func(depth int) string {
		return strings.Repeat("absolute(", depth) + "sum:a" + strings.Repeat(")", depth)
	}
	if _, err := Parse([]string{nested(MaxDepth)}, 1); err != nil {
		t.Error(err)
	}
	f(nested(MaxDepth+1), 1, 413, "Functions inside each other")
	f("alias(sum:a,"+strings.Repeat("x", MaxLength)+")", 1, 413, "An expression has")
	f("sum(sum:a,sum:b,sum:c)", 2, 413, "The expressions have too many metrics, at most 2")
	f("nope(sum:a)", 1, 400, "Function nope has not been implemented")
	f("scale(Absolute(sum:a),2)", 1, 400, "Function Absolute has not been implemented")
}

// No text makes the parser panic or exceed its bound of metrics, and expressions that are written
// as text again are parsed to the same expressions.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"scale(sum:a{b=*},10)", "sum(shift(sum:1m-avg:rate:a,'1hr'),max:b)&&",
		"alias(sum:a,@b,'c d')", "*(*:*,*)", "absolute(sum:\xff)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const limit = 3
		e, err := Parse([]string{text}, limit)
		if err != nil {
			return
		}
		if len(e.Metrics) > limit {
			t.Fatalf("%d metrics, want at most %d", len(e.Metrics), limit)
		}

		again := strings.NewReplacer(" ", ",", "<", "", ">", "").Replace(shown(e))
		e2, err := Parse([]string{again}, limit)
		if err != nil {
			t.Fatalf("%q was read as %q, which fails: %v", text, again, err)
		}
		if diff := cmp.Diff(shown(e), shown(e2)); diff != "" {
			t.Fatalf("%q was read as %q: %s", text, again, diff)
		}
		_ = fmt.Sprint(e.Calls[0])
	})
}
