package tools

import (
	"fmt"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/gateway/query/plan"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// A namer's cache of series is bounded in bytes, and always keeps the newest series.
func TestNamer_bytes(t *testing.T) {
	n := &namer{cache: map[string]*namedSeries{}, bound: namerBytes}
	text := strings.Repeat("x", 100<<10)
	for i := range 2000 {
		n.key = fmt.Appendf(nil, "%06d", i)
		n.keep(&namedSeries{metric: text})
		if _, ok := n.cache[string(n.key)]; !ok || n.bytes > n.bound || len(n.cache)*len(text) > n.bytes {
			t.Fatalf("after %d series: %d of %d bytes are cached, this one %t", i, len(n.cache), n.bytes, ok)
		}
	}
}

// A stretch lists the earlier stretches of other sub-queries that share keys with it, and none of
// its own sub-query.
func TestDealOverlaps(t *testing.T) {
	one, two := &plan.Compiled{}, &plan.Compiled{}
	of := func(start, stop string, c *plan.Compiled) stretch {
		return stretch{KeyRange: store.KeyRange{Start: []byte(start), Stop: []byte(stop)}, compiled: c}
	}
	all := []stretch{of("a", "e", one), of("b", "c", two), of("d", "", two), of("e", "f", one), of("x", "", one)}
	dealOverlaps(all)
	for i, want := range []string{"", "a", "a", "d", "d"} {
		var got string
		for _, b := range all[i].before {
			got += string(b.Start)
		}
		if got != want {
			t.Errorf("stretch %d: comes after those that start at %q, want %q", i, got, want)
		}
	}
}

// A series can be written as import lines if it has tags and all its names are known and have no
// character that would be read otherwise. It is importable if the settings allow its characters.
func TestNamedSeries_noLine(t *testing.T) {
	f := func(s namedSeries, want, fault string) {
		t.Helper()
		got, err := s.spell()
		if got != want || (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("%+v: %q, %v; want %q, %q", s, got, err, want, fault)
		}
	}
	tags := []write.Tag{{K: "host", V: "a"}, {K: "dc", V: "é"}}
	f(namedSeries{metric: "m", tags: tags}, " host=a dc=é", "")
	f(namedSeries{metric: "m"}, "", "no tags")
	f(namedSeries{metric: "m n", tags: tags}, "", errName.Error())
	f(namedSeries{metric: "m", tags: []write.Tag{{K: "host", V: "a=b"}}}, "", errName.Error())
	f(namedSeries{metric: "m", tags: tags, orphan: "tagv 000009"}, "", "tagv 000009 has no name")

	settings := &Settings{Schema: encoding.DefaultSchema()}
	for name, want := range map[string]bool{"a": true, "é": true, "a$b": false, "a/b.c-d_e": true} {
		series := &namedSeries{metric: "m", tags: []write.Tag{{K: "host", V: name}}}
		if got := series.importable(settings); got != want {
			t.Errorf("%q: importable %t, want the opposite", name, got)
		}
	}
	settings.Allowed = []rune("$")
	if !(&namedSeries{metric: "m", tags: []write.Tag{{K: "host", V: "a$b"}}}).importable(settings) {
		t.Error("a character that the settings allow is refused")
	}
}

// Control characters of a name or a text are escaped, so that it stays on its line.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"sys.cpu é":    "sys.cpu é",
		"a\n#end {}\n": `a\x0a#end {}\x0a`,
		"\t\x7f":       `\x09\x7f`,
	} {
		if got := visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
