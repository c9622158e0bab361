package tree

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/conformance"
)

// Every cell that OpenTSDB stored in the recording can be parsed, and is encoded again to the
// same row key, qualifier and value.
func TestStored_recorded(t *testing.T) {
	var r struct {
		Rows []struct{ Row, Qualifier, Value string }
	}
	if err := conformance.Decode("tree_seed41", &r); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, c := range r.Rows {
		key, qualifier, value := unhex(t, c.Row), unhex(t, c.Qualifier), unhex(t, c.Value)
		var wantKey, wantQualifier, again []byte
		var err error
		switch kind, _, _ := strings.Cut(string(qualifier), ":"); kind {
		case "tree":
			var d Tree
			d, err = ParseDefinition(IDOf(key), value)
			wantKey, wantQualifier, again = Key(d.ID), []byte(DefinitionQualifier), d.AppendDefinition(nil)
			counts[kind]++
		case "tree_rule":
			var rule Rule
			rule, err = ParseRule(value)
			wantKey = Key(rule.TreeID)
			wantQualifier = RuleQualifier(rule.Level, rule.Order)
			again = rule.AppendStored(nil)
			if err := rule.Validate(); err != nil || !IsRule(qualifier) {
				t.Errorf("the rule %s: got %v, want it valid and its qualifier that of a rule", value, err)
			}
			counts[kind]++
		case "branch":
			var b *Branch
			if b, err = ParseBranch(key, value); err != nil {
				break
			}
			wantKey = Key(IDOf(key))
			for _, name := range b.Path[1:] {
				wantKey = AppendChild(wantKey, name)
			}
			wantQualifier, again = []byte(BranchQualifier), AppendBranch(nil, b.Path)
			counts[kind]++
		case "leaf":
			var l Leaf
			l, err = ParseLeaf(value)
			wantKey, wantQualifier, again = key, LeafQualifier(l.DisplayName), AppendLeaf(nil, l.DisplayName, l.TSUID)
			counts[kind]++
		}
		if err != nil || !bytes.Equal(key, wantKey) || !bytes.Equal(qualifier, wantQualifier) ||
			!bytes.Equal(value, again) {
			t.Errorf("%s %s: %v, or the cell changes:\nread    %s\nwritten %s", c.Row, qualifier, err, value, again)
		}
		if id, err := ParseBranchID(BranchID(key)); err != nil || !bytes.Equal(id, key) || !IsBranchKey(key) {
			t.Errorf("%x: branch id %s, %v, want that it parses to the key", key, BranchID(key), err)
		}
	}
	if counts["tree"] != 5 || counts["tree_rule"] < 10 || counts["branch"] < 50 || counts["leaf"] < 40 {
		t.Errorf("cells: %v, want 5 trees, 10 rules, 50 branches and 40 leaves, or more", counts)
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Like Jackson in OpenTSDB, the encoder escapes quotes, backslashes and control characters, and
// nothing else. The hash of a leaf's name is made of UTF-16 units.
func TestStored_escapes(t *testing.T) {
	r := Rule{Type: Metric, Regex: "\\.\"\n\x01<é\U0001F600", TreeID: 7, RegexGroupIdx: 2, Level: 1, Order: 3}
	want := `{"type":"METRIC","field":"","regex":"\\.\"\n\u0001<é😀","separator":"","description":"","notes":"",` +
		`"level":1,"order":3,"treeId":7,"customField":"","regexGroupIdx":2,"displayFormat":""}`
	if got := string(r.AppendStored(nil)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	got := LeafQualifier("\U0001F600")
	if hex.EncodeToString(got) != hex.EncodeToString([]byte("leaf:\x00\x1b\x0d\x63")) {
		t.Errorf("the hash of two UTF-16 units is %x, want 001b0d63", got[5:])
	}
}

// If the path in a branch's cell does not end in the branch's own name, the name is appended, as
// in OpenTSDB.
func TestParseBranch(t *testing.T) {
	f := func(value string, want ...string) {
		t.Helper()
		b, err := ParseBranch(Key(1), []byte(value))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.Path); diff != "" {
			t.Errorf("%s: %s", value, diff)
		}
	}
	f(`{"path":{"0":"ROOT","10":"k","2":"b"},"displayName":"k"}`, "ROOT", "b", "k")
	f(`{"path":{"0":"ROOT"},"displayName":"a"}`, "ROOT", "a")
	f(`{"displayName":"a"}`, "a")
	f(`{}`, "")
	if _, err := ParseBranch(Key(1), []byte(`{"path":[`)); err == nil || !strings.Contains(err.Error(), "branch 0001") {
		t.Errorf("got %v, want an error that names branch 0001", err)
	}
}

// A change sets the fields that it has. With overwrite it resets the others, except for the id
// and the time of creation.
func TestChange_Apply(t *testing.T) {
	yes, no := true, false
	was := Tree{ID: 1, Name: "n", Notes: "x", Enabled: true, Created: 5}
	f := func(c Change, overwrite bool, want Tree) {
		t.Helper()
		if diff := cmp.Diff(want, c.Apply(was, overwrite)); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
	}
	f(Change{Description: "d", Enabled: &no}, false, Tree{ID: 1, Name: "n", Description: "d", Notes: "x", Created: 5})
	f(Change{Name: "m", StrictMatch: &yes}, true, Tree{ID: 1, Name: "m", StrictMatch: true, Created: 5})
	if c := (Change{ID: 3, Created: 9}); !c.Empty() {
		t.Error("a change that sets no field is not empty")
	}
}

// Validate refuses bad rules with OpenTSDB's messages or a bound, and Merge sets the fields of a
// change, or replaces all of them.
func TestRule_Validate(t *testing.T) {
	f := func(r Rule, want string) {
		t.Helper()
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", r, err, want)
		}
	}
	f(Rule{}, "Missing rule type")
	f(Rule{Type: TagK}, "Missing field name required for TAGK rule")
	f(Rule{Type: TagVCustom, Field: "f"}, "Missing custom field name required for TAGV_CUSTOM rule")
	f(Rule{Type: Metric, RegexGroupIdx: -1}, "Invalid regex group index. Cannot be less than 0")
	f(Rule{Type: Metric, Regex: "(?=a)"}, "look-ahead")
	f(Rule{Type: Metric, Regex: "(("}, "bad regular expression")
	f(Rule{Type: Metric, Regex: strings.Repeat("a", 2000)}, "The regex has 2000 bytes, want at most 1024")
	f(Rule{Type: Metric, Notes: strings.Repeat("a", 20000)}, "The notes has 20000 bytes, want at most 16384")
	for _, separator := range []string{"|", "a*", "", "x?", "()", `\b`, "a|b*", "(a*)+", "^"} {
		if separator != "" {
			f(Rule{Type: Metric, Separator: separator}, "it matches an empty text")
		}
	}
	f(Rule{Type: Metric, Separator: "[a-z]{60}x{60}"}, "steps, want at most 100")
	f(Rule{Type: Metric, Separator: "("}, "bad regular expression")
	if err := (&Rule{Type: MetricCustom, Field: "f", CustomField: "c", Separator: "a+|[.]|^x"}).Validate(); err != nil {
		t.Error(err)
	}

	stored := Rule{Type: Metric, Separator: `\.`, TreeID: 1}
	merged := stored.Merge(Rule{Notes: "n", TreeID: 1}, false)
	if merged != (Rule{Type: Metric, Separator: `\.`, Notes: "n", TreeID: 1}) {
		t.Errorf("merged: %+v", merged)
	}
	replaced := stored.Merge(Rule{Type: TagK, Field: "h", TreeID: 1}, true)
	if replaced != (Rule{Type: TagK, Field: "h", TreeID: 1}) {
		t.Errorf("replaced: %+v", replaced)
	}
	for text, want := range map[string]Type{"metric": Metric, "TagV_Custom": TagVCustom} {
		if got, err := ParseType(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	if _, err := ParseType("x"); err == nil {
		t.Error("type x is parsed, want an error")
	}
}

// The expressions of all rules of a tree together are bounded in steps, and the rules in number.
func TestCompile_bounds(t *testing.T) {
	rules := make([]Rule, 20)
	for i := range rules {
		rules[i] = Rule{Type: Metric, Order: i, Regex: "([a-z]{600})"}
	}
	if _, err := Compile(Tree{ID: 1, Rules: rules}); err == nil ||
		!strings.Contains(err.Error(), "more than 10000 steps") {
		t.Errorf("got %v, want that there are too many steps", err)
	}
	// The rules are counted before any is compiled: the bad expression is not the error.
	many := make([]Rule, 300)
	many[0] = Rule{Type: Metric, Regex: "(("}
	if _, err := Compile(Tree{ID: 1, Rules: many}); err == nil ||
		!strings.Contains(err.Error(), "300 rules, want at most 256") {
		t.Errorf("got %v, want that there are too many rules", err)
	}
}

// Branches and leaves are sorted without regard to case, and names that differ only in case are
// all kept, in capital letters first.
func TestBranch_Sort(t *testing.T) {
	b := &Branch{Key: Key(1), Path: []string{Root}}
	for _, name := range []string{"jim", "b", "Jim", "A", "\U0001F600", "ﬀ"} {
		b.Leaves = append(b.Leaves, Leaf{DisplayName: name})
		b.Branches = append(b.Branches, &Branch{Key: AppendChild(Key(1), name), Path: []string{Root, name}})
	}
	b.Sort()
	want := []string{"A", "b", "Jim", "jim", "\U0001F600", "ﬀ"} // by UTF-16 units
	var got, branches []string
	for i := range b.Leaves {
		got, branches = append(got, b.Leaves[i].DisplayName), append(branches, b.Branches[i].Path[1])
	}
	if !slices.Equal(got, want) || !slices.Equal(branches, want) {
		t.Errorf("leaves %q, branches %q, want %q", got, branches, want)
	}
}

// A rule with any texts is stored as valid JSON, and is read as it was stored. A branch with any
// names can be read again.
func FuzzStored(f *testing.F) {
	f.Add("name", "\\.", "é\"\n", 3)
	f.Fuzz(func(t *testing.T, a, b, c string, n int) {
		rule := Rule{Type: Metric, Field: a, Regex: b, Notes: c, Level: n, TreeID: 1}
		first := rule.AppendStored(nil)
		read, err := ParseRule(first)
		if err != nil || !json.Valid(first) {
			t.Fatalf("%s: got %v, want valid JSON that can be parsed", first, err)
		}
		if again := read.AppendStored(nil); !bytes.Equal(first, again) {
			t.Fatalf("stored as %s\nread and stored again as %s", first, again)
		}
		branch, err := ParseBranch(Key(1), AppendBranch(nil, []string{Root, a, b}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(branch); err != nil {
			t.Fatal(err)
		}
	})
}

// Any bytes that others may have written to the table are parsed or refused, without a panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"path":{"0":"ROOT","1":null},"displayName":null}`))
	f.Add([]byte(`{"name":null,"type":"X","tsuid":1}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if b, err := ParseBranch(Key(1), value); err == nil {
			if _, err := json.Marshal(b); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = ParseLeaf(value)
		if r, err := ParseRule(value); err == nil {
			_ = r.Validate()
		}
		if d, err := ParseDefinition(1, value); err == nil {
			_ = d.AppendDefinition(nil)
		}
	})
}
