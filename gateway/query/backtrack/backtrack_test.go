package backtrack

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"downpour/encoding/seedtest"
)

func compile(t *testing.T, text string) *Expression {
	t.Helper()
	e, err := Compile(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}

// Repetitions in repetitions are looked for in few steps, for no way is tried twice. Back-references may take too many.
//
//fault:failure-of-another-place |= mask => &^= mask
func TestExpression_steps(t *testing.T) {
	long := strings.Repeat("a", 200)
	for _, text := range []string{`^(a+)+$(?=)`, `(?!)(a|aa)+b`, `^(?:a|a|aa)*+b`, `^(?=(a|ab|b)+c)`,
		`(?:(?:a+)+)+\b!`, `^(?!(?:a+)+b)c`} {
		e := compile(t, text)
		if _, err := e.Find(long); err != nil || e.steps.Load() > 1_000_000 {
			t.Errorf("%s: %v after %d steps, want at most a million", text, err, e.steps.Load())
		}
	}
	for _, text := range []string{`(a*)(a*)(a*)(a*)(a*)(a*)\1b`, `^(a)(?:a?)*(?:a?)*(?:a?)*(?:a?)*\1b`} {
		if found, err := compile(t, text).Find(long); found || !errors.Is(err, ErrSteps) {
			t.Errorf("%s: %t, %v, want ErrSteps", text, found, err)
		}
	}
}

// A step in a class of many ranges costs as many: the bound is one of time, too.
//
//fault:classes-for-nothing m.stepsLeft -= int64(in.x) =>
func TestExpression_stepsOfClasses(t *testing.T) {
	many := func(add string) string {
		var b strings.Builder
		for c := 'a'; c < 'a'+300; c += 2 {
			b.WriteString(add)
			b.WriteRune(c)
		}
		return "[" + b.String() + "]"
	}
	one, all := compile(t, "^[a]x"), compile(t, "^"+many("")+"x")
	same := compile(t, "^"+many("a")+"x")
	for _, e := range []*Expression{one, all, same} {
		if _, err := e.Find("ax"); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := all.steps.Load()-one.steps.Load(), int64(149); got != want {
		t.Errorf("a class of 150 ranges: %d steps more than one of 1, want %d", got, want)
	}
	if got, want := same.steps.Load(), all.steps.Load(); got != want {
		t.Errorf("a class that names a range 150 times: %d steps, want %d as without", got, want)
	}
}

// What is not known here as Java has it is refused by its name, and its neighbors are taken.
func TestCompile_unsupported(t *testing.T) {
	for _, c := range []struct{ refused, taken, what string }{
		{`(?:a|^){2}b`, `(?:a|^)b`, "a repetition, more than once, of what may take nothing"},
		{`(?:a?){3}b`, `(?:a?){0,1}b`, "a repetition, more than once, of what may take nothing"},
		{`(?:a*){2,}b`, `(?:aa*){2,}b`, "a repetition, more than once, of what may take nothing"},
		{`^(?:([ab])-)*\1`, `^(?:([ab])-)\1`, "or a repetition"},
		{`^(a?)*\1`, `^(a)*\1`, "or a repetition"},
		{`\Q\E*`, `\Qa\E*`, "a repetition of nothing"},
		{`[\Q\E]`, `[\Qa\E]`, "an empty quotation in a class"},
		{`[\v-z]`, `[\vz]`, `\v in a range`},
		{`[!-\v]`, `[!\v]`, `\v in a range`},
	} {
		var e *Unsupported
		if _, err := Compile(c.refused); !errors.As(err, &e) || !strings.Contains(e.What, c.what) {
			t.Errorf("%s: %v, want that it uses %s", c.refused, err, c.what)
		}
		if _, err := Compile(c.taken); err != nil {
			t.Errorf("%s: %v, want no error", c.taken, err)
		}
	}
}

// An ordinary expression does not come to its end, however many names it is looked for in.
func TestExpression_longInUse(t *testing.T) {
	e := compile(t, `^(?!web(0[1-9]|x)+-\w+\.lga$)(\w+)-\2`)
	name := "web01x02x03-" + strings.Repeat("abc", 20) + ".lga"
	for range 10_000 {
		if _, err := e.Find(name); err != nil {
			t.Fatal(err)
		}
	}
	if each := e.steps.Load() / 10_000; each > nameSteps/2 {
		t.Errorf("%d steps for a name, want less than half of %d", each, nameSteps)
	}
}

// drawn writes an expression that RE2 knows, too, and reads as Java does.
func drawn(r *rand.Rand, depth int) string {
	atoms := []string{"a", "b", "c", ".", "[ab]", "[^a]", `\d`, `\w`, "^", "$", "1"}
	var b strings.Builder
	for range r.IntN(4) {
		switch {
		case depth > 0 && r.IntN(3) == 0:
			b.WriteString("(" + drawn(r, depth-1) + ")")
		case depth > 0 && r.IntN(4) == 0:
			b.WriteString("(?:" + drawn(r, depth-1) + "|" + drawn(r, depth-1) + ")")
		default:
			b.WriteString(atoms[r.IntN(len(atoms))])
		}
		if r.IntN(3) == 0 {
			b.WriteString([]string{"*", "+", "?", "{2}", "{1,2}", "{2,}"}[r.IntN(6)] + []string{"", "?"}[r.IntN(2)])
		}
	}
	return b.String()
}

// Drawn expressions that RE2 knows completely are found in the names in which RE2 finds them,
// whether failures are kept or not.
func TestExpression_drawn(t *testing.T) {
	r := seedtest.Rand(t)
	for taken := 0; taken < 3_000; {
		text := drawn(r, 3)
		re, err := regexp.Compile(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var refused *Unsupported
		if _, err := Compile(text); errors.As(err, &refused) && refused.Otherwise {
			continue
		}
		taken++
		e := compile(t, text)
		forgets := compile(t, text)
		forgets.stateless = false
		for range 10 {
			name := make([]byte, r.IntN(12))
			for i := range name {
				name[i] = "abc1-"[r.IntN(5)]
			}
			want := re.Match(name)
			for _, e := range []*Expression{e, forgets} {
				if got, err := e.Find(string(name)); got != want && !errors.Is(err, ErrSteps) {
					t.Fatalf("%s in %q: got %t, want %t (kept %t)", text, name, got, want, e.stateless)
				}
			}
		}
	}
}

// Any text is compiled or refused, and found or not, in bounded steps.
func FuzzCompile(f *testing.F) {
	f.Add(`^(?!test)(\w+)-\1$`, "a-a")
	f.Add(`(?i)[^a-z\d]++(?<=é{1,2})\b\R`, "é")
	f.Add(`(?x: a {2} # b`, "")
	f.Add(`(?:(?:){9}){9}{9`, "x")
	f.Fuzz(func(t *testing.T, text, name string) {
		if len(text) > 1<<10 || len(name) > 1<<10 {
			return
		}
		e, err := Compile(text)
		if err != nil {
			return
		}
		found, err := e.Find(name)
		if found && err == nil && !strings.HasPrefix(strings.ToValidUTF8(name, "\ufffd"), e.Prefix()) &&
			strings.ToValidUTF8(name, "") == name {
			t.Errorf("%q is found in %q, which has not its prefix %q", text, name, e.Prefix())
		}
	})
}
