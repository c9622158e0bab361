package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	_ "downpour/encoding/seedtest" // gives rapid its seed

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// compiled returns a compiled tree of rules, each with its own level and order.
func compiled(t testing.TB, strict bool, rules ...Rule) *Compiled {
	t.Helper()
	for i := range rules {
		rules[i].TreeID = 1
	}
	SortRules(rules)
	c, err := Compile(Tree{ID: 1, StrictMatch: strict, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// series returns a series of a metric and tags "k=v,…". Names that begin with u have the custom
// field owner.
func series(metric, tags string) *Series {
	name := func(s string) Name {
		if strings.HasPrefix(s, "u") {
			return Name{s, map[string]string{"owner": s + "'s"}}
		}
		return Name{Text: s}
	}
	s := &Series{TSUID: "000001000001000001", Metric: name(metric)}
	for tag := range strings.SplitSeq(tags, ",") {
		k, v, _ := strings.Cut(tag, "=")
		s.Tags = append(s.Tags, Tag{name(k), name(v)})
	}
	return s
}

// Rules place a series. A placement is written as "a/b leaf", with the rules that were not
// matched behind a !. A series that is not stored is written as its leaf in brackets.
func TestPlace(t *testing.T) {
	metric := Rule{Type: Metric, Separator: `\.`}
	host := Rule{Type: TagK, Field: "host", Level: 1}
	f := func(want string, s *Series, rules ...Rule) {
		t.Helper()
		c := compiled(t, false, rules...)
		p := c.Place(s, MaxWork, false)
		got := strings.Join(p.Path, "/") + " " + p.Leaf
		if !p.Stored(false) {
			got = "(" + p.Leaf + ")"
		}
		if p.Missing() != "" {
			got += " !" + p.Missing()
		}
		if got != want {
			t.Errorf("%s %v: got %s, want %s", s.Metric.Text, s.Tags, got, want)
		}
	}

	f("a/b/c h", series("a.b.c", "host=h"), metric, host)
	f("a/b c ![1:1:0:TAGK]", series("a.b.c", "dc=x"), metric, host)
	f("(a) ![1:1:0:TAGK]", series("a", "dc=x"), metric, host)
	// An empty part is a branch without a name, which is skipped and counts as not matched. Empty
	// parts at the end are cut off.
	f("t/dots h ![1:0:0:METRIC]", series("t..dots.", "host=h"), metric, host)
	f("a h ![1:0:0:METRIC]", series(".a", "host=h"), metric, host)
	f("(h) ![1:0:0:METRIC]", series("..", "host=h"), metric, host)
	// A branch with the name of its parent, or of the root if it is the first, is the same branch.
	// A leaf with the name of its parent is a leaf of its own.
	f("a/b h", series("a.a.b.b", "host=h"), metric, host)
	f("a a", series("a.a", "host=a"), metric, host)
	f(" h", series("ROOT", "host=h"), metric, host)
	f("b h", series("ROOT.b", "host=h"), metric, host)
	f("a/ROOT h", series("a.ROOT", "host=h"), metric, host)

	// The first rule of a level that yields a name counts. Levels that are missing between others
	// have no effect.
	dc := Rule{Type: TagK, Field: "dc", Level: 1, Order: 3, DisplayFormat: "dc {value}"}
	far := Rule{Type: Metric, Level: 9}
	f("h m", series("m", "dc=x,host=h"), host, dc, far)
	f("dc x m", series("m", "dc=x"), host, dc, far)

	// A group of an expression is the name. There is no name without a match, without the group,
	// or if the group has matched nothing. An expression takes precedence over a separator.
	sub := func(regex string, group int) Rule {
		return Rule{Type: Metric, Regex: regex, RegexGroupIdx: group, Separator: `\.`}
	}
	f("12 h", series("ab12", "host=h"), sub("([a-z]+)([0-9]+)", 1), host)
	f("(h) ![1:0:0:METRIC]", series("ab12", "host=h"), sub("^([0-9]+)", 0), host)
	f("(h) ![1:0:0:METRIC]", series("ab12", "host=h"), sub("(x)?a", 0), host)
	f("(h) ![1:0:0:METRIC]", series("ab12", "host=h"), sub("(a)", 1), host)

	// The name is a custom field of the metric, of a tag key, or of the tag value that the rule
	// names.
	own := Rule{
		Type:          MetricCustom,
		Field:         "any",
		CustomField:   "owner",
		DisplayFormat: "{tag_name}:{value}:{ovalue}:{tsuid}",
	}
	f("owner:um's:um's:000001000001000001 h", series("um", "host=h"), own, host)
	f("(h) ![1:0:0:METRIC_CUSTOM]", series("m", "host=h"), own, host)
	f("uk's h", series("m", "uk=v,host=h"), Rule{Type: TagKCustom, Field: "uk", CustomField: "owner"}, host)
	f("uv's h", series("m", "k=uv,host=h"), Rule{Type: TagVCustom, Field: "uv", CustomField: "owner"}, host)
	f("(h) ![1:0:0:TAGV_CUSTOM]", series("m", "k=uv,host=h"),
		Rule{Type: TagVCustom, Field: "ux", CustomField: "owner"}, host)

	// If the first part at a separator is empty, the next rule of the level yields the name, and
	// the parts that follow make the branches below it.
	f("x/b h", series(".b", "host=h"), metric, Rule{Type: Metric, Order: 1, Regex: "()x|(.)", RegexGroupIdx: 0},
		Rule{Type: TagK, Field: "host", Order: 2, DisplayFormat: "x"}, host)
}

// A separator splits a value into the parts that String.split of Java 17 returns.
func TestPlace_split(t *testing.T) {
	f := func(value, separator string, want ...string) {
		t.Helper()
		rule, err := compileRule(&Rule{Type: Metric, Separator: separator})
		if err != nil {
			t.Fatal(err)
		}
		w := &walk{rule: &rule}
		w.split(value)
		if diff := cmp.Diff(append([]string{}, want...), w.parts); diff != "" {
			t.Errorf("%q by %q: %s", value, separator, diff)
		}
	}
	f("a.b", `\.`, "a", "b")
	f("a.b", `.`)
	f("a", `\.`, "a")
	f(".a..b...", `\.`, "", "a", "", "b")
	f("a--b-c", `-+`, "a", "b", "c")
	f("a1b22c", `[0-9]`, "a", "b", "", "c")
	f("éaé", `a`, "é", "é")
}

// A strict tree keeps a series only if every level yields a name.
func TestPlacement_Stored(t *testing.T) {
	c := compiled(t, true, Rule{Type: Metric},
		Rule{Type: TagK, Field: "host", Level: 1}, Rule{Type: TagK, Field: "dc", Level: 2})
	for tags, want := range map[string]bool{"host=h,dc=d": true, "host=h": false, "dc=d": false} {
		p := c.Place(series("m", tags), MaxWork, true)
		if p.Stored(c.StrictMatch) != want {
			t.Errorf("%s: stored %t, want %t", tags, !want, want)
		}
		told := strings.HasPrefix(p.Messages[len(p.Messages)-1],
			"TSUID failed to match one or more rule levels, will not add: ")
		if told == want {
			t.Errorf("%s: %q", tags, p.Messages)
		}
	}
}

// A series that exceeds a bound is not stored, and its placement and its last message name the
// bound.
func TestPlace_bounds(t *testing.T) {
	f := func(want string, s *Series, rules ...Rule) {
		t.Helper()
		p := compiled(t, false, rules...).Place(s, MaxWork, true)
		if p.Stored(false) || !strings.Contains(p.Refused, want) || !strings.Contains(p.Missing(), want) {
			t.Errorf("got %q, stored %t, want %q", p.Refused, p.Stored(false), want)
		}
		if last := p.Messages[len(p.Messages)-1]; !strings.Contains(last, want) {
			t.Errorf("the last message is %q, want one that names the bound", last)
		}
	}
	split := Rule{Type: Metric, Separator: `\.`}
	f("more than 64 branches", series(strings.Repeat("a.b.", 40), "host=h"), split)
	f("more than 128 parts", series(strings.Repeat("a.", 200), "host=h"), split)
	f("a value of more than 2048 bytes", series(strings.Repeat("a", 3000), "host=h"), split)
	f("names of more than 8192 bytes",
		series(strings.Repeat("a", 1000), "host=h"), Rule{Type: Metric, DisplayFormat: strings.Repeat("{value}", 100)})
	f("names of more than 8192 bytes", series(strings.Repeat("a", 9000), "host=h"), Rule{Type: Metric})

	// Expressions of many steps are applied again for each part of a long value.
	var slow []Rule
	for i := range 60 {
		slow = append(slow, Rule{Type: Metric, Order: i, Regex: "([b-z]{100})"})
	}
	f("expressions take too long", series(strings.Repeat("aaaaaaaaaaaaaaaaaaaa.", 60), "host=h"),
		append(slow, Rule{Type: Metric, Order: 99, Separator: `\.`})...)
}

// The memory of a series is bounded while rules are applied, also for names that do not end up
// in the path: those of equal branches, of rules that yield none, and of messages.
func TestPlace_memory(t *testing.T) {
	value := strings.Repeat("a.", 126) + "b"
	f := func(value string, rule Rule) {
		t.Helper()
		rules := make([]Rule, MaxRules)
		for i := range rules {
			rules[i] = rule
			rules[i].Level = i
		}
		c, s := compiled(t, false, rules...), series(value, "host=h")
		w := &walk{series: s, most: MaxWork}
		names, notMatched := w.names(c.levels)
		kept := 0
		for _, text := range slices.Concat(names, notMatched) {
			kept += nameBytes + len(text)
		}
		if most := MaxNames + MaxPath + 2*nameBytes; kept > most {
			t.Errorf("names and rules take %d bytes, want at most %d", kept, most)
		}
		p := c.Place(s, MaxWork, false)
		want := "names of more than 65536 bytes in all its levels"
		if p.Refused != want || len(p.Missing()) > MaxNames+len(p.Refused) {
			t.Errorf("got %q and %d bytes of rules not matched, want that the names are too long",
				p.Refused, len(p.NotMatched))
		}
	}
	f(value, Rule{Type: Metric, Separator: `\.`, DisplayFormat: strings.Repeat("{ovalue}", 32)})
	f(value, Rule{Type: Metric, Separator: `\.`, DisplayFormat: "one"})
	f(strings.Repeat(".", 127)+"b", Rule{Type: Metric, Separator: `\.`})

	// Messages beyond the bound are replaced by "…", before the last one, which gives the result.
	rules := make([]Rule, MaxRules)
	for i := range rules {
		rules[i] = Rule{Type: TagK, Field: strings.Repeat("k", MaxText), Order: i, Level: i / 128}
	}
	rules[0] = Rule{Type: Metric, Separator: `\.`, Order: MaxRules}
	p := compiled(t, true, rules...).Place(series(value, "host=h"), MaxWork, true)
	bytes := 0
	for _, m := range p.Messages {
		bytes += len(m)
	}
	if bytes > MaxMessages+100 {
		t.Errorf("messages of %d bytes, want at most MaxMessages and the last two", bytes)
	}
	if n := len(p.Messages); p.Messages[n-2] != "…" || !strings.HasPrefix(p.Messages[n-1], "TSUID failed to match") {
		t.Errorf("the last messages are %.200q, want … and that levels were not matched", p.Messages[n-2:])
	}
}

// recursion makes a path of the names of levels as OpenTSDB does: by a recursive call for each
// name, which changes current for its callers. It is the reference for join.
type recursion struct {
	names    []string
	at       int
	current  *node
	children map[*node][]*node
	leaves   map[*node]string
	out      []string
}

type node struct{ name string }

func (r *recursion) process(parent *node, depth int) (complete bool) {
	if r.at == len(r.names) {
		return true
	}
	previous := r.current
	r.current = &node{r.names[r.at]}
	r.at++
	depth++
	complete = r.process(r.current, depth)

	say := func(format string, args ...any) { r.out = append(r.out, fmt.Sprintf(format, args...)) }
	switch {
	case complete && (r.current == nil || r.current.name == ""):
		r.current = previous
		return true
	case complete && parent.name == "":
		say("Depth [%d] Parent branch was empty, rolling back", depth)
		return true
	case complete:
		shown := "Name: [" + parent.name + "]"
		if previous == nil {
			shown = "ID: [0001] " + shown
		}
		r.leaves[parent] = r.current.name
		say("Depth [%d] Adding leaf [name: %s tsuid: 000001000001000001] to parent branch [%s]",
			depth, r.current.name, shown)
		r.current = previous
	case (previous == nil || previous.name == "") && r.current.name != "":
		if depth > 2 {
			say("Depth [%d] Skipping a non-matched branch, returning: Name: [%s]", depth, r.current.name)
		}
	case r.current.name == previous.name:
		say("Depth [%d] Current was the same as previous", depth)
	default:
		r.children[parent] = append(r.children[parent], r.current)
		say("Depth [%d] Adding branch: Name: [%s] to parent: Name: [%s]", depth, r.current.name, parent.name)
		r.current = previous
	}
	return false
}

// For any names, join returns the path, leaf and messages of OpenTSDB's recursion.
func TestJoin_equalsRecursion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "a", "b", "c"}), 0, 8).Draw(t, "names")
		r := &recursion{names: names, children: map[*node][]*node{}, leaves: map[*node]string{}}
		r.process(&node{Root}, 1)
		var wantPath []string
		wantLeaf := ""
		for b := r.current; b != nil; {
			wantPath = append(wantPath, b.name)
			wantLeaf = r.leaves[b]
			if len(r.children[b]) == 0 {
				break
			}
			b = r.children[b][0]
		}

		w := &walk{series: &Series{TSUID: "000001000001000001"}, explain: true}
		path, leaf, named := w.join(names, "ID: [0001] Name: [ROOT]")
		if named != (r.current != nil) {
			t.Fatalf("%q: named %t, want %t", names, named, !named)
		}
		if diff := cmp.Diff(wantPath, path); diff != "" {
			t.Fatalf("%q: path -want +got %s", names, diff)
		}
		if named && leaf != wantLeaf {
			t.Fatalf("%q: leaf %q, want %q", names, leaf, wantLeaf)
		}
		if diff := cmp.Diff(r.out, w.out); diff != "" {
			t.Fatalf("%q: messages -want +got %s", names, diff)
		}
	})
}

// For any rules and series, the placement stays within its bounds, no branch is empty or named
// as its parent, and asking for messages does not change it.
func FuzzPlace(f *testing.F) {
	f.Add("a.b.c", "host", "web01", "", `\.`, "{value}", 0)
	f.Add("..a..", "u", "uv", "([a-z])(b)?", "", "{ovalue}{tag_name}{tsuid}", 1)
	f.Add("ROOT.ROOT", "k", "v", "", "O+", "", 0)
	f.Fuzz(func(t *testing.T, metric, key, value, regex, separator, format string, group int) {
		a := Rule{
			Type:          Metric,
			Regex:         regex,
			Separator:     separator,
			DisplayFormat: format,
			RegexGroupIdx: group,
			TreeID:        1,
		}
		b := Rule{Type: TagK, Field: "k" + key, Separator: separator, Level: 1, TreeID: 1}
		if a.Validate() != nil || b.Validate() != nil {
			return
		}
		c, err := Compile(Tree{ID: 1, Rules: []Rule{a, b}})
		if err != nil {
			return
		}
		s := &Series{TSUID: "00", Metric: Name{Text: metric}, Tags: []Tag{{Name{Text: "k" + key}, Name{Text: value}}}}
		p, silent := c.Place(s, MaxWork, true), c.Place(s, MaxWork, false)
		p.Messages = nil
		if diff := cmp.Diff(silent, p, cmp.AllowUnexported(Placement{})); diff != "" {
			t.Fatalf("messages change the placement: %s", diff)
		}
		if !p.Stored(false) {
			return
		}

		bytes := len(p.Leaf)
		before := Root
		for _, name := range p.Path {
			if name == "" || name == before {
				t.Fatalf("path %q has an empty name, or one that repeats the name before it", p.Path)
			}
			before, bytes = name, bytes+len(name)
		}
		if p.Leaf == "" || len(p.Path) > MaxDepth || bytes > MaxPath {
			t.Fatalf("path %q, leaf %q: want a leaf, and both within MaxDepth and MaxPath", p.Path, p.Leaf)
		}
	})
}
