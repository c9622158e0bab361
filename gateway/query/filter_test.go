package query

import (
	"errors"
	"strings"
	"testing"

	_ "downpour/encoding/seedtest" // gives rapid its seed

	"pgregory.net/rapid"
)

func TestFilter_match(t *testing.T) {
	f := func(kind, text, yes, no string) {
		t.Helper()
		filter, err := NewFilter(kind, "k", text, false)
		if err != nil {
			t.Errorf("%s(%s): %v", kind, text, err)
			return
		}
		for _, v := range strings.Fields(yes) {
			if !filter.Match(v) {
				t.Errorf("%s(%s) refuses %s", kind, text, v)
			}
		}
		for _, v := range strings.Fields(no) {
			if filter.Match(v) {
				t.Errorf("%s(%s) admits %s", kind, text, v)
			}
		}
	}
	f(LiteralOr, "web01|web02||", "web01 web02", "web0 WEB01 web011 web03")
	f(LiteralOr, "a |b", "b", "a")
	f(ILiteralOr, "Web01|É", "WEB01 web01 é É", "web02 e")
	f(NotLiteralOr, "a|b", "c A", "a b")
	f(NotLiteralOr, "||", "a", "")
	f(NotILiteralOr, "a|B", "c", "a A b B")
	f(Wildcard, "*", "a B", "")
	f(Wildcard, "***", "a B", "")
	f(Wildcard, "web*", "web web01", "aweb Web01")
	f(Wildcard, "*web", "web aweb", "weba")
	f(Wildcard, "*web*", "web aweba", "wb")
	f(Wildcard, "a*b", "ab xbxaxb axbx", "ba bx")
	f(Wildcard, "a*a", "ba aa", "a b") // counted by length, not by match
	f(Wildcard, "web*1*", "web01 web10", "aweb1")
	f(Wildcard, "é*é", "éé xé", "é")
	f(IWildcard, "WEB*", "web01 WeB", "aweb")
	f(Regexp, "b", "abc b", "B ac")
	f(Regexp, "^web0[12]$", "web01 web02", "web03 aweb01 web011")
	f(Regexp, `\p{Alpha}+\d`, "a1 xé1b2", "1 é1")
	f(Regexp, `[\p{Upper}x]\Q.\E`, "A. x.", "a. Ab")
	f(Regexp, `\P{Digit}`, "a", "1")
	f(Regexp, `\u0061\Z`, "ba", "ab")
	f(Regexp, `(?i)WEB(?<n>0)(?:1)?`, "web0", "we0")
	f(Regexp, `[]a][^]a]`, "]b ab", "]] b")
}

func TestFilter_prefix(t *testing.T) {
	f := func(kind, text, want string) {
		t.Helper()
		filter, err := NewFilter(kind, "k", text, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := filter.Prefix(); got != want {
			t.Errorf("%s(%s): prefix %q, want %q", kind, text, got, want)
		}
	}
	f(Wildcard, "web*", "web")
	f(Wildcard, "web*1*", "web")
	f(Wildcard, "a*b", "")
	f(Wildcard, "*web", "")
	f(Wildcard, "*", "")
	f(IWildcard, "web*", "")
	f(Regexp, "^web", "web")
	f(Regexp, "^web?", "we")
	f(Regexp, "^web|x", "")
	f(Regexp, "(?i)^web", "")
	f(Regexp, "(?m)^web", "")
	f(Regexp, "web", "")
	f(ILiteralOr, "web", "")
}

// Regular expressions whose meaning in Java is uncertain are refused.
func TestFilter_unsupported(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := NewFilter(Regexp, "k", text, false)
		var e *UnsupportedError
		if !errors.As(err, &e) || !strings.Contains(e.What, want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	f("(?<=a*)b", "look-behind without")
	f(`(?=(a))\1`, "back-reference to a group that")
	f(`(?i)(a)\1`, "back-reference that ignores case")
	f("[a-z&&[^b]]", "intersection")
	f("[a[b]]", "class inside")
	f("[[:alpha:]]", "class inside")
	f("(?x)[a b]", "flag x")
	f("(?U)a*", "flag U")
	f(`\X`, `\X`)
	f(`\p{InGreek}`, `\p{InGreek}`)
	f("a{1,99999}+", "more than 5000 instructions")
	f(strings.Repeat("(", 200)+"?!a"+strings.Repeat(")", 200), "deep")
}

// naiveWildcard is a second implementation of OpenTSDB's rule: each text between the stars must be
// found at or after the sum of the lengths of the texts before it.
func naiveWildcard(text, value string) bool {
	inner := strings.Trim(text, "*")
	if inner == "" {
		return true
	}
	front, back := strings.HasPrefix(text, "*"), strings.HasSuffix(text, "*")
	texts := strings.Split(inner, "*")
	if front && !back && !strings.HasSuffix(value, texts[len(texts)-1]) ||
		back && !front && !strings.HasPrefix(value, texts[0]) {
		return false
	}
	v, at := []rune(value), 0
	for _, p := range texts {
		found := p == ""
		for i := at; i+len([]rune(p)) <= len(v); i++ {
			found = found || strings.HasPrefix(string(v[i:]), p)
		}
		if !found {
			return false
		}
		at += len([]rune(p))
	}
	return true
}

// A wildcard filter admits the values that naiveWildcard admits, and these begin with its prefix.
func TestWildcard_naive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab*é")), 1, 8, -1).Draw(t, "text")
		value := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 0, 10, -1).Draw(t, "value")
		f, err := NewFilter(Wildcard, "k", text, false)
		if strings.Contains(text, "*") != (err == nil) {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		if got, want := f.Match(value), naiveWildcard(text, value); got != want {
			t.Errorf("%q on %q: %t, want %t", text, value, got, want)
		}
		if f.Match(value) && !strings.HasPrefix(value, f.Prefix()) {
			t.Errorf("%q admits %q, which does not begin with its prefix %q", text, value, f.Prefix())
		}
	})
}

// A not_ filter admits exactly the values that its counterpart refuses, and iliteral_or is
// literal_or on the lower case of text and value.
func TestFilter_laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abAB|é")), 1, 8, -1).Draw(t, "text")
		value := rapid.StringOfN(rapid.RuneFrom([]rune("abABéÉ")), 0, 4, -1).Draw(t, "value")
		build := func(kind, text string) *Filter {
			f, err := NewFilter(kind, "k", text, false)
			if err != nil && text != "|" {
				t.Fatal(err)
			}
			return &f
		}
		if text == "|" {
			return
		}
		if build(LiteralOr, text).Match(value) == build(NotLiteralOr, text).Match(value) {
			t.Errorf("literal_or and not_literal_or(%s) agree on %s", text, value)
		}
		if build(ILiteralOr, text).Match(value) == build(NotILiteralOr, text).Match(value) {
			t.Errorf("iliteral_or and not_iliteral_or(%s) agree on %s", text, value)
		}
		if build(ILiteralOr, text).Match(value) != build(LiteralOr,
			strings.ToLower(text)).Match(strings.ToLower(value)) {
			t.Errorf("iliteral_or(%s) on %s is not literal_or in lower case", text, value)
		}
	})
}
