package rules

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	_ "downpour/encoding/seedtest" // gives rapid its seed
)

var intervals = []string{"1m", "1h"}

// Each line says what it gives for points and for the rollups of both intervals.
//
//fault:retention-by-the-last-line => for i := len(r.Lines) - 1; i >= 0; i-- {
func TestParse(t *testing.T) {
	text := "# all\n\n ^sys\\.   400d   # no comment here\n"
	if _, err := Parse([]byte(text), nil); err == nil || !strings.Contains(err.Error(), "line 3: got \"#\"") {
		t.Errorf("%v, want that # is no comment behind a rule", err)
	}

	r, err := Parse(
		[]byte("# all\r\n\r\n^a 400d\n  b$\t2w rollups=5y\r\nc 90d 1m=400d rollups=keep\nd keep\n. 2h 1h=2h"),
		intervals,
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range []string{"abcd", "bcd", "b", "cd", "ed", "x", ""} {
		rule := r.Of(name)
		if rule == nil {
			got = append(got, name+" none")
			continue
		}
		got = append(got, fmt.Sprintf("%s %d %s %s %s", name, rule.Line, rule.Age(""), rule.Age("1m"), rule.Age("1h")))
	}
	want := []string{
		"abcd 3 400d keep keep", "bcd 5 90d 400d keep", "b 4 2w 5y 5y", "cd 5 90d 400d keep",
		"ed 6 keep keep keep", "x 7 2h keep 2h", " none",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if text := r.Lines[1].String(); text != "line 4, b$ 2w rollups=5y" {
		t.Errorf("rule is called %q", text)
	}
	other, _ := Parse([]byte("^a 401d"), nil)
	same, _ := Parse([]byte("#\n^a  401d"), nil)
	if other.Text() == r.Text() || other.Text() != same.Text() {
		t.Error("texts must differ where rules do")
	}
	if all := All(7200).Of("any"); all == nil || all.Age("") != 7200 || all.Age("1h") != Keep || all.String() != "2h" {
		t.Errorf("the rule of all metrics is %v", all)
	}
}

// Every wrong line is named, with what it has and what is wanted.
func TestParse_wrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "no lines, want at least one PATTERN AGE",
		"# only this":          "no lines",
		"^sys":                 `line 1: got "^sys", want PATTERN AGE`,
		"\n^s( 4d":             `line 2: pattern: got "^s(", want a regular expression`,
		"a 4":                  `line 1: age: got "4", want a number and s, m, h, d, w, n or y`,
		"a 1.5d":               `age: got "1.5d"`,
		"a -1d":                `age: got "-1d"`,
		"a 59m":                `age: got "59m", want 1h to 200y, or keep`,
		"a 0d":                 `age: got "0d", want 1h to 200y`,
		"a 201y":               `age: got "201y", want 1h to 200y`,
		"a 99999999999999999y": `age: got "99999999999999999y"`,
		"a 4D":                 `age: got "4D"`,
		"a 4d 1m":              `line 1: got "1m", want rollups=AGE or 1m=AGE or 1h=AGE`,
		"a 4d 2m=5d":           `got "2m=5d", want rollups=AGE`,
		"a 4d 1m=5d 1m=6d":     `1m is there twice, want it once`,
		"a 4d rollups=":        `rollups: got ""`,
		"a 4d 1h=3d":           `1h: got 3d, which is less than the age of points, want at least 4d`,
		"a keep rollups=3d": `rollups: got 3d, which is less than the age of points, ` +
			`want at least keep`,
		"a 4d\nb 4\nc 4d\nd( 4d":             "line 2: age",
		"a 4d\nb 4\nc 4d\nd( 4d\n":           "line 4: pattern",
		strings.Repeat("a", maxText) + " 4d": "bytes, want at most",
	} {
		if _, err := Parse([]byte(text), intervals); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// An age is written as it can be read again.
func TestAge_text(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		age := Age(rapid.Int64Range(int64(minAge), int64(maxAge)).Draw(t, "age"))
		if back, err := ParseAge(age.String()); err != nil || back != age {
			t.Errorf("%d is written %s, which is %d, %v", age, age, back, err)
		}
	})
	for text, want := range map[string]Age{
		"keep": Keep, "3600s": 3600, "60m": 3600, "1h": 3600, "1d": 86_400, "1w": 7 * 86_400,
		"1n": 30 * 86_400, "1y": 365 * 86_400,
	} {
		if got, err := ParseAge(text); got != want || err != nil {
			t.Errorf("%s is %d s, %v, want %d", text, got, err, want)
		}
	}
}

var spans = []encoding.RowSpan{
	{Count: 1, Unit: "h"},
	{Count: 6, Unit: "h"},
	{Count: 1, Unit: "d"},
	{Count: 1, Unit: "n"},
	{Count: 1, Unit: "y"},
}

// A row goes exactly if its whole span is older than the age, whenever that is.
//
//fault:retention-an-hour-early span.BaseTime(stays - 1) => stays
func TestAge_Cut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.SampledFrom(spans).Draw(t, "span")
		now := rapid.Int64Range(0, 2*math.MaxUint32).Draw(t, "now")
		if rapid.Bool().Draw(t, "on the hour") {
			now -= now % encoding.RowSeconds
		}
		age := Age(rapid.Int64Range(int64(minAge), int64(maxAge)).Draw(t, "age"))
		if rapid.Bool().Draw(t, "whole hours") {
			age -= age % encoding.RowSeconds
		}
		cut, ok := age.Cut(now, span)

		// Rows around the limit, and the first one of all.
		limit := now - int64(age)
		for _, at := range []int64{
			0, limit - 2*span.Seconds(), limit - span.Seconds(), limit - 1, limit, limit + span.Seconds(), now,
		} {
			if at < 0 || at > math.MaxUint32 {
				continue
			}
			base := span.BaseTime(at)
			goes, want := ok && base < int64(cut), span.Next(base) <= limit
			if goes != want {
				t.Errorf("span %s, now %d, age %s: the row of %d to %d goes %t, want %t; all before %d are older",
					span, now, age, base, span.Next(base), goes, want, limit)
			}
		}
		// A base time that no row has, at the end of what goes.
		if ok && limit < math.MaxUint32 && int64(cut)-1+span.Alignment() > limit && span.Unit != "n" &&
			span.Unit != "y" {
			t.Errorf("span %s, now %d, age %s: base times up to %d go, which reach beyond %d",
				span, now, age, cut-1, limit)
		}
	})
	if _, ok := Keep.Cut(math.MaxInt32, Hour); ok {
		t.Error("rows go that are to be kept")
	}
}

func TestLongest(t *testing.T) {
	for _, c := range [][3]Age{{1, 2, 2}, {2, 1, 2}, {Keep, 9, Keep}, {9, Keep, Keep}, {3, 3, 3}} {
		if got := Longest(c[0], c[1]); got != c[2] {
			t.Errorf("of %d and %d the longest is %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
