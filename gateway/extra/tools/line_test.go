package tools

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/gateway/write"
)

func settingsForTest() *Settings { return &Settings{Schema: encoding.DefaultSchema()} }

// parsed returns the point of a line as text, or the error.
func parsed(line string) string {
	var parts [][]byte
	l, _, err := parseLine(nil, []byte(line), &parts)
	if err != nil {
		return err.Error()
	}
	p, err := l.point(settingsForTest())
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(p.Metric, " ", p.Time, " ", p.Value, " ", p.Tags)
}

func TestParseLine(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		if got := parsed(line); !strings.Contains(got, want) || want == "" {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	f("sys.cpu 1356998400 42 host=a", "sys.cpu 1356998400 42 [{host a}]")
	f("put sys.cpu 1356998400 42 host=a", "sys.cpu 1356998400 42 [{host a}]")
	f("put 1356998400 42 host=a", "put 1356998400 42 [{host a}]") // a metric of that name
	f("put 1356998400 42 host=a b=c", "put 1356998400 42 [{host a} {b c}]")
	f("sys.cpu\t1356998400250  1.0  host=a \r", "sys.cpu 1356998400250 1.0 [{host a}]")
	f("m 1356998400.250 -1e3 a=b c=d", "m 1356998400250 -1000.0 [{a b} {c d}]")
	f("m 1356998400 1.0E10 a=b a=b", "m 1356998400 1e+10 [{a b}]") // as Java prints
	f("caf\xe9 1356998400 1 a=\xfc", "café 1356998400 1 [{a ü}]")
	f("café 1356998400 1 a=ü", "café 1356998400 1 [{a ü}]")
	f("m 1356998400 9223372036854775807 a=b", "9223372036854775807")
	f("m 1356998400 9223372036854775808 a=b", "value: got")
	f("m 1356998400 NaN a=b", "value: got")
	f("m 1356998400 0x10 a=b", "value: got")
	f("m 1356998400.2 1 a=b", "time: got")
	f("m 0 1 a=b", "time: got")
	f("m -5 1 a=b", "time: got")
	f("m 10000000000000 1 a=b", "time: got")
	f("m 1356998400 1", "has 3 words")
	f("m 1356998400 1 ab", "invalid tag: ab")
	f("m 1356998400 1 a=b a=c", "duplicate tag")
	f("m 1356998400 1 a=b=c", "invalid tag: a=b=c")
	f("m! 1356998400 1 a=b", "illegal character")
	f("m 1356998400 1 a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1", "Too many tags")
}

// A line that an export writes is read by an import as the same point, to the bit.
func TestAppendLine_property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := encoding.IntValue(rapid.Int64().Draw(t, "int"))
		if rapid.Bool().Draw(t, "float") {
			d := rapid.Float64().Filter(func(d float64) bool { return !math.IsInf(d, 0) && !math.IsNaN(d) }).
				Draw(t, "double")
			v = encoding.FloatValue(d)
		}
		word := rapid.StringMatching(`[a-zA-Z0-9._/\-éü]{1,10}`)
		want := &write.Point{
			Metric: word.Draw(t, "metric"),
			Time:   rapid.Int64Range(1, maxTime).Draw(t, "time"),
			Value:  v,
			Narrow: true,
		}
		var tags []byte
		for i := range rapid.IntRange(1, 8).Draw(t, "tags") {
			tag := write.Tag{K: fmt.Sprint("k", i), V: word.Draw(t, "value")}
			var err error
			if tags, err = appendTag(tags, tag.K, tag.V); err != nil {
				t.Fatal(err)
			}
			want.Tags = append(want.Tags, tag)
		}
		line := appendLine(nil, want.Metric, want.Time, want.Value, string(tags))
		var parts [][]byte
		l, _, err := parseLine(nil, line, &parts)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got, err := l.point(settingsForTest())
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	})
}

// Any line is refused, or it is a point that is read as itself after it was written as a line.
func FuzzParseLine(f *testing.F) {
	for _, line := range []string{"sys.cpu 1356998400 42 host=a", "put m 1356998400250 0.5 a=b c=d",
		"m 1356998400.250 -1e3 a=b", "put 1 1 a=b", "m 1 1 a=b a=b", "caf\xe9 1 .5 a=\xfc", "m 1 -0.0 a=b", "\t",
		"# x", "m 1 1e-400 a=b"} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var parts [][]byte
		before := []byte("x")
		l, names, err := parseLine(before, line, &parts)
		if err != nil {
			return
		}
		if names[0] != 'x' || len(names) > 1+len(line) {
			t.Fatalf("names of %q: %q", line, names)
		}
		p, err := l.point(settingsForTest())
		if err != nil {
			return
		}
		var tags []byte
		for _, tag := range p.Tags {
			if tags, err = appendTag(tags, tag.K, tag.V); err != nil {
				t.Fatal(err)
			}
		}
		again, _, err := parseLine(nil, appendLine(nil, p.Metric, p.Time, p.Value, string(tags)), &parts)
		if err != nil {
			t.Fatalf("%q: written again: %v", line, err)
		}
		q, err := again.point(settingsForTest())
		if err != nil {
			t.Fatalf("%q: written again: %v", line, err)
		}
		if diff := cmp.Diff(p, q); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	})
}
