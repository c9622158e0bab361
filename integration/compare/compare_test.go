package compare

import (
	"fmt"
	"strings"
	"testing"

	_ "downpour/encoding/seedtest" // gives rapid its seed

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// lines gives the differences of two JSON texts as the strings of the report.
func lines(t *testing.T, c Comparer, want, got string) []string {
	t.Helper()
	r, err := c.JSON([]byte(want), []byte(got))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range r.Differences {
		out = append(out, d.String())
	}
	return out
}

func TestJSON_equal(t *testing.T) {
	f := func(want, got string) {
		t.Helper()
		if d := lines(t, Comparer{}, want, got); d != nil {
			t.Errorf("%s and %s differ: %q", want, got, d)
		}
	}
	f(`{"a":1,"b":2}`, `{"b":2,"a":1}`)
	f(`{"1":1,"1":2}`, `{"1":2}`)                                               // a doubled second: the last one counts
	f(`{"o":{"x":1,"y":2},"o":{"z":3}}`, `{"o":{"z":3}}`)                       // not merged
	f(`[{"aggregateTags":["host","dc"]}]`, `[{"aggregateTags":["dc","host"]}]`) // a set
	f(`1.0E10`, `10000000000.0`)                                                // Java's and Go's text of one double
	f(`4.9E-324`, `5e-324`)                                                     // the smallest one
	f(`9223372036854775808`, `9223372036854775808`)                             // beyond int64
	f(`"NaN"`, `"NaN"`)
	f(`[]`, ` [ ] `)
	f(`null`, `null`)
}

func TestJSON_different(t *testing.T) {
	f := func(want, got string, differences ...string) {
		t.Helper()
		if d := cmp.Diff(differences, lines(t, Comparer{}, want, got)); d != "" {
			t.Errorf("%s and %s: -want +got\n%s", want, got, d)
		}
	}
	f(`[{"dps":{"5":1}}]`, `[{"dps":{"5":1.0}}]`, `[0].dps.5: int/float, want 1, got 1.0`)
	f(`1`, `2`, `(top): value, want 1, got 2`)
	f(`9007199254740993`, `9007199254740992`, `(top): value, want 9007199254740993, got 9007199254740992`)
	f(`0.3`, `0.30000000000000004`, `(top): value, want 0.3, got 0.30000000000000004 (1 ULP, 1.9e-16 relative)`)
	f(`0.0`, `-0.0`, `(top): value, want 0.0, got -0.0 (1 ULP, 0 relative)`)
	f(`{"a":1}`, `{"b":1}`, `a: missing, want 1`, `b: extra, got 1`)
	f(`[1,2]`, `[2,1]`, `[0]: value, want 1, got 2`, `[1]: value, want 2, got 1`)
	f(`[1]`, `[1,2]`, `(top): length, want 1 of [1], got 2 of [1,2]`)
	f(`{"aggregateTags":["a","b"]}`, `{"aggregateTags":["a","c"]}`, `aggregateTags[1]: value, want "b", got "c"`)
	f(`{"tsuids":["a","b"]}`, `{"tsuids":["b","a"]}`, `tsuids[0]: value, want "a", got "b"`,
		`tsuids[1]: value, want "b", got "a"`)
	f(`null`, `"NaN"`, `(top): type, want null, got "NaN"`)
	f(`{"a":[]}`, `{"a":{}}`, `a: type, want [], got {}`)
	f(`true`, `false`, `(top): type, want true, got false`)
	f(`1e400`, `1e401`, `(top): value, want 1e400, got 1e401 (18446744073709551615 ULP, +Inf relative)`)
}

func TestJSON_unreadable(t *testing.T) {
	for _, got := range []string{``, `{`, `[1] 2`, `[NaN]`} {
		if _, err := (Comparer{}).JSON([]byte(`[]`), []byte(got)); err == nil ||
			!strings.Contains(err.Error(), "answer got") {
			t.Errorf("%q: error %v, want one about the answer got", got, err)
		}
	}
	if _, err := (Comparer{}).JSON([]byte(`{`), []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "wanted") {
		t.Errorf("error %v, want one about the wanted answer", err)
	}
}

func TestJSON_relative(t *testing.T) {
	c := Comparer{Relative: 1e-12}
	if d := lines(t, c, `1000000000000.0`, `1000000000000.5`); d != nil {
		t.Errorf("5e-13 apart: %q", d)
	}
	if d := lines(t, c, `1000000000000.0`, `1000000000002.0`); len(d) != 1 {
		t.Errorf("2e-12 apart: %q, want one difference", d)
	}
	if d := lines(t, c, `1.0`, `1`); len(d) != 1 {
		t.Errorf("float and integer: %q, want one difference", d)
	}
}

func TestAnswers(t *testing.T) {
	javaError := `{"error":{"code":400,"message":"Bad: [net.x@1","details":"TSQuery(..)"}}`
	f := func(c Comparer, want, got Answer, equal bool) {
		t.Helper()
		r, err := c.Answers(want, got)
		if err != nil || r.Equal() != equal {
			t.Errorf("%+v, %+v: %v, error %v; want equal %v", want, got, r, err, equal)
		}
	}
	standard := Comparer{Permits: Standard}
	f(standard, Answer{204, nil}, Answer{204, []byte("\n")}, true)
	f(standard, Answer{200, nil}, Answer{204, nil}, false)
	f(standard, Answer{404, []byte("<html>")}, Answer{404, []byte(`{"error":{}}`)}, true)
	f(standard, Answer{400, []byte(javaError)},
		Answer{400, []byte(`{"error":{"code":400,"message":"Bad: [net.x@1"}}`)}, true)
	f(standard, Answer{400, []byte(javaError)}, Answer{400, []byte(`{"error":{"code":400,"message":"Worse"}}`)}, false)
	f(standard, Answer{400, []byte(javaError)},
		Answer{400, []byte(`{"error":{"code":401,"message":"Bad: [net.x@1"}}`)}, false)

	cut := Answer{400, []byte(`{"error":{"code":400,"message":"Bad: "}}`)}
	f(Comparer{Permits: Standard, MessageStart: true}, cut, Answer{400, []byte(javaError)}, true)
	f(standard, cut, Answer{400, []byte(javaError)}, false)
}

func TestPermits(t *testing.T) {
	table := []Permit{
		{Path: Path{"**", "created"}, Kinds: []Kind{Value}, Reason: "clock"},
		{Path: Path{"*", "b"}, Reason: "b"},
	}
	f := func(path Path, kind Kind, want string) {
		t.Helper()
		if got, _ := permits(table, Difference{Path: path, Kind: kind}); got != want {
			t.Errorf("%s %s: reason %q, want %q", path, kind, got, want)
		}
	}
	f(Path{"created"}, Value, "clock")
	f(Path{"[0]", "meta", "created"}, Value, "clock")
	f(Path{"created"}, Missing, "")
	f(Path{"created", "x"}, Value, "")
	f(Path{"[0]", "b"}, Extra, "b")
	f(Path{"b"}, Extra, "")
	f(Path{"[0]", "x", "b"}, Extra, "")
	for _, p := range Standard {
		if p.Reason == "" || len(p.Path) == 0 {
			t.Errorf("%v: every line needs a path and a reason", p)
		}
	}
	r, err := Comparer{Permits: table}.JSON([]byte(`{"created":1,"x":1}`), []byte(`{"created":2,"x":1}`))
	if err != nil || !r.Equal() || len(r.Permitted) != 1 || r.Permitted[0].Permitted != "clock" {
		t.Errorf("report %+v, error %v; want one permitted difference", r, err)
	}
}

func TestReport_String(t *testing.T) {
	r, err := Comparer{}.JSON([]byte(`[]`), []byte(`[1]`))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		r.Differences = append(r.Differences, Difference{Path: Path{fmt.Sprint(i)}, Kind: Extra})
	}
	if s := r.String(); strings.Count(s, "\n") != shown+1 || !strings.Contains(s, "31 differences") ||
		!strings.Contains(s, "and 11 more") {
		t.Errorf("report of 31 differences:\n%s", s)
	}
}

// The text of any double equals itself, and neighbouring doubles are 1 ULP apart, whatever their
// signs.
func TestFloats_neighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-1e308, 1e308).Draw(t, "x")
		if same, ulps, _ := floats(text(x), text(x)); !same || ulps != 0 {
			t.Fatalf("%v and itself: %v, %d ULP", x, same, ulps)
		}
		y := next(x)
		if same, ulps, _ := floats(text(x), text(y)); same || ulps != 1 {
			t.Fatalf("%v and %v: %v, %d ULP, want 1", x, y, same, ulps)
		}
	})
}
