package hbase

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"downpour/pushdown/store"

	"pgregory.net/rapid"
)

func TestPattern(t *testing.T) {
	values := func(v ...string) [][]byte {
		var out [][]byte
		for _, s := range v {
			out = append(out, []byte(s))
		}
		return out
	}
	for want, p := range map[string]store.KeyPattern{
		`(?s)^.{7}`:   {Head: 7, NameLen: 3, ValueLen: 3},
		`(?s)^\x61\z`: {NameLen: 1, Exact: true, Wants: []store.Want{{Name: []byte("a")}}},
		`(?s)^.{7}(?:.{6})*?\x00\x00\x01\x00\x00[\x01-\x03]`: {Head: 7, NameLen: 3, ValueLen: 3,
			Wants: []store.Want{{
				Name:   []byte("\x00\x00\x01"),
				Values: values("\x00\x00\x02", "\x00\x00\x01", "\x00\x00\x03"),
			}}},
		`(?s)^.{7}(?:.{6})*?\x00\x00\x01.{3}(?:.{6})*?\x00\x00\x02\x5c\x45\x0a`: {Head: 7, NameLen: 3, ValueLen: 3,
			Wants: []store.Want{{Name: []byte("\x00\x00\x01")},
				{Name: []byte("\x00\x00\x02"), Values: values("\\E\n")}}},
		`(?s)^.{8}\x01(?:\x00(?:\x01\x02|\x02[\x00\xfe-\xff])|\xff\x00\x00)\z`: {
			Head:     8,
			NameLen:  1,
			ValueLen: 3,
			Exact:    true,
			Wants: []store.Want{{
				Name:   []byte{1},
				Values: values("\x00\x01\x02", "\x00\x02\x00", "\x00\x02\xfe", "\x00\x02\xff", "\xff\x00\x00"),
			}},
		},
	} {
		before := fmt.Sprintf("%q", p.Wants)
		if got := Pattern(&p); got != want {
			t.Errorf("%+v:\n got %s\nwant %s", p, got, want)
		}
		if after := fmt.Sprintf("%q", p.Wants); after != before {
			t.Errorf("got %s after, want the values as they were", after)
		}
	}
}

// latin1 returns a string of one character for each byte, like the server's
// comparator.
func latin1(b []byte) string {
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return string(runes)
}

// oddBytes are bytes that are special in expressions, line ends for Java, or invalid in
// UTF-8.
var oddBytes = []byte{0, 1, 2, '\n', '\r', '\\', 'E', 'Q', '$', '^', '.', '[', ']', '-', 0x80, 0x85, 0xa0, 0xc2, 0xe2,
	0xff}

// drawPattern draws a pattern and its names, ascending.
func drawPattern(t *rapid.T) (*store.KeyPattern, [][]byte) {
	p := &store.KeyPattern{
		Head:     rapid.IntRange(0, 8).Draw(t, "head"),
		NameLen:  rapid.IntRange(1, 3).Draw(t, "name length"),
		ValueLen: rapid.IntRange(1, 3).Draw(t, "value length"),
		Exact:    rapid.Bool().Draw(t, "exact"),
	}

	names := drawSet(t, "names", p.NameLen, 0, 5)
	for _, name := range names {
		if !rapid.Bool().Draw(t, "wanted") {
			continue
		}
		p.Wants = append(p.Wants, store.Want{Name: name, Values: drawSet(t, "values", p.ValueLen, 0, 12)})
	}

	return p, names
}

// drawSet draws different byte strings of one length, ascending.
func drawSet(t *rapid.T, label string, length, least, most int) [][]byte {
	one := rapid.SliceOfN(rapid.SampledFrom(oddBytes), length, length)
	set := rapid.SliceOfNDistinct(one, least, most, func(b []byte) string { return string(b) }).Draw(t, label)
	slices.SortFunc(set, bytes.Compare)
	return set
}

// drawKey draws a key of the pattern's layout, with values that often are
// wanted ones.
func drawKey(t *rapid.T, p *store.KeyPattern, names [][]byte) []byte {
	key := rapid.SliceOfN(rapid.SampledFrom(oddBytes), p.Head, p.Head).Draw(t, "key head")
	for _, name := range names {
		if !rapid.Bool().Draw(t, "has") {
			continue
		}
		value := rapid.SliceOfN(rapid.SampledFrom(oddBytes), p.ValueLen, p.ValueLen).Draw(t, "value")
		for _, w := range p.Wants {
			if bytes.Equal(w.Name, name) && len(w.Values) > 0 && rapid.Bool().Draw(t, "right") {
				value = rapid.SampledFrom(w.Values).Draw(t, "wanted value")
			}
		}
		key = append(append(key, name...), value...)
	}

	return key
}

// On keys of the layout the expression matches what Matches accepts, and no more.
func TestPattern_equalsMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, names := drawPattern(t)
		expr := regexp.MustCompile(Pattern(p))
		for range 20 {
			key := drawKey(t, p, names)
			if got, want := expr.MatchString(latin1(key)), p.Matches(key); got != want {
				t.Fatalf("pattern %s, key %x: got %v, want %v", Pattern(p), key, got, want)
			}
		}
	})
}

// On any key the expression matches what Matches accepts, and perhaps more.
func TestPattern_neverFewer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, _ := drawPattern(t)
		expr := regexp.MustCompile(Pattern(p))
		key := rapid.SliceOf(rapid.SampledFrom(oddBytes)).Draw(t, "key")
		if p.Matches(key) && !expr.MatchString(latin1(key)) {
			t.Fatalf("pattern %s refuses key %x", Pattern(p), key)
		}
	})
}

// The part of the expression that lists values admits these values and no others.
func FuzzPattern_values(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x00\x00\x02\xff\xff\xff"), []byte("\x00\x00\x03"))
	f.Fuzz(func(t *testing.T, raw, probe []byte) {
		var values [][]byte
		for ; len(raw) >= 3; raw = raw[3:] {
			values = append(values, raw[:3])
		}
		if len(values) == 0 || len(probe) != 3 {
			return
		}
		p := &store.KeyPattern{
			NameLen:  0,
			ValueLen: 3,
			Exact:    true,
			Wants:    []store.Want{{Values: sortedValues(values)}},
		}
		expr, err := regexp.Compile(Pattern(p))
		if err != nil {
			t.Fatalf("%s: %v", Pattern(p), err)
		}
		for _, v := range append(values, probe) {
			if got, want := expr.MatchString(latin1(v)), p.Matches(v); got != want {
				t.Fatalf("pattern %s, value %x: got %v, want %v", Pattern(p), v, got, want)
			}
		}
	})
}

// 3000 values must not make an expression of 3000 alternatives.
func TestPattern_isShort(t *testing.T) {
	var values [][]byte
	for i := range 3000 {
		values = append(values, []byte{0, byte(i >> 8), byte(i)})
	}
	p := &store.KeyPattern{
		Head:     7,
		NameLen:  3,
		ValueLen: 3,
		Wants:    []store.Want{{Name: []byte{0, 0, 1}, Values: values}},
	}
	if s := Pattern(p); len(s) > 300 {
		t.Errorf("got %d bytes, want a few for each of 12 blocks of 256 values: %s", len(s), s)
	}
}

func TestCheckPattern(t *testing.T) {
	for _, p := range []store.KeyPattern{{NameLen: 1, ValueLen: 0}, {NameLen: 0, ValueLen: 1}} {
		if err := checkPattern(&p); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, p := range []store.KeyPattern{
		{Head: -1, NameLen: 1, ValueLen: 1},
		{Head: 1},
		{NameLen: 3, ValueLen: 3, Wants: []store.Want{{Name: []byte("ab")}}},
		{NameLen: 3, ValueLen: 3, Wants: []store.Want{{Name: []byte("abc"), Values: [][]byte{[]byte("ab")}}}},
	} {
		if err := checkPattern(&p); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
}

func TestDescribeFilter(t *testing.T) {
	pattern := &store.KeyPattern{
		Head:     7,
		NameLen:  3,
		ValueLen: 3,
		Wants:    []store.Want{{Name: []byte{0, 0, 1}, Values: [][]byte{{0, 0, 2}}}},
	}
	ranges := []store.KeyRange{{Start: []byte("a"), Stop: []byte("b")}, {Start: []byte("c")}}
	expr := `regex((?s)^.{7}(?:.{6})*?\x00\x00\x01\x00\x00\x02)`
	for want, f := range map[string]store.RowFilter{
		"none":                  {},
		"ranges(2)":             {Ranges: ranges},
		expr:                    {Pattern: pattern},
		"ranges(2) and " + expr: {Ranges: ranges, Pattern: pattern},
	} {
		if got := DescribeFilter(f); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for i := range 100 {
		pattern.Wants[0].Values = append(pattern.Wants[0].Values, fmt.Appendf(nil, "\xff%c%c", i, 2*i))
		pattern.Wants[0].Values[i+1] = pattern.Wants[0].Values[i+1][:3]
	}
	if got := DescribeFilter(store.RowFilter{Pattern: pattern}); len(got) > 250 || !strings.HasSuffix(got, "bytes)") {
		t.Errorf("a long expression is not cut: %s", got)
	}
}
