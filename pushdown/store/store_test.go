package store

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "downpour/encoding/seedtest" // gives rapid its seed

	"pgregory.net/rapid"
)

func TestKeyRange(t *testing.T) {
	for _, c := range []struct {
		start, stop, key string
		want             bool
	}{
		{"", "", "", true},
		{"", "", "\xff\xff", true},
		{"b", "d", "b", true},
		{"b", "d", "b\x00", true},
		{"b", "d", "c\xff", true},
		{"b", "d", "d", false},
		{"b", "d", "d\x00", false},
		{"b", "d", "a\xff", false},
		{"b", "", "\xff", true},
		{"", "b", "", true},
		{"b", "b", "b", false},
	} {
		r := KeyRange{[]byte(c.start), []byte(c.stop)}
		if got := r.Contains([]byte(c.key)); got != c.want {
			t.Errorf("[%x, %x) contains %x: %v, want the opposite", c.start, c.stop, c.key, got)
		}
	}
}

// awkward draws short keys of few different bytes, so that many are equal or begin alike.
var awkward = rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, '\n', 0xff}), 0, 4)

// A filter of sorted ranges, which are searched, matches the keys that one of the ranges contains.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edges := rapid.SliceOfN(awkward, 2, 12).Draw(t, "edges")
		slices.SortFunc(edges, bytes.Compare)
		edges = slices.CompactFunc(edges, bytes.Equal)
		var ranges []KeyRange
		hole := rapid.IntRange(1, 2).Draw(t, "step") // 1: each range begins where the last ends
		for i := 0; i+1 < len(edges); i += hole {
			ranges = append(ranges, KeyRange{edges[i], edges[i+1]})
		}
		if len(ranges) == 0 {
			return
		}
		if rapid.Bool().Draw(t, "open end") {
			ranges[len(ranges)-1].Stop = nil
		}
		key := awkward.Draw(t, "key")
		want := slices.ContainsFunc(ranges, func(r KeyRange) bool { return r.Contains(key) })
		if got := (RowFilter{Ranges: ranges}).Matches(key); got != want {
			t.Fatalf("%x in %x: %v, want %v", key, ranges, got, want)
		}
	})
}

// element draws a name or a value of two bytes.
var element = rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', '\n', 0xff}), 2, 2)

// sortedSet sorts and leaves out what occurs again.
func sortedSet(all [][]byte) [][]byte {
	slices.SortFunc(all, bytes.Compare)
	return slices.CompactFunc(all, bytes.Equal)
}

// drawPattern draws wants with ascending names.
func drawPattern(t *rapid.T) *KeyPattern {
	p := &KeyPattern{Head: 3, NameLen: 2, ValueLen: 2, Exact: rapid.Bool().Draw(t, "exact")}
	for _, name := range sortedSet(rapid.SliceOfN(element, 0, 3).Draw(t, "names")) {
		p.Wants = append(p.Wants, Want{Name: name, Values: sortedSet(rapid.SliceOfN(element, 0, 3).Draw(t, "values"))})
	}
	return p
}

// expression returns a regular expression over the hex digits of keys, which matches the keys that
// the pattern matches.
func (p *KeyPattern) expression() *regexp.Regexp {
	var b strings.Builder
	fmt.Fprintf(&b, "^.{%d}", 2*p.Head)
	any := fmt.Sprintf("(?:.{%d})*", 2*(p.NameLen+p.ValueLen))
	if p.Exact {
		any = ""
	}
	for _, w := range p.Wants {
		values := make([]string, len(w.Values))
		for i, v := range w.Values {
			values[i] = hex.EncodeToString(v)
		}
		if len(values) == 0 {
			values = []string{fmt.Sprintf(".{%d}", 2*p.ValueLen)}
		}
		fmt.Fprintf(&b, "%s%x(?:%s)", any, w.Name, strings.Join(values, "|"))
	}
	return regexp.MustCompile(b.String() + any + "$")
}

// A pattern matches the keys that its regular expression matches.
func TestPattern(t *testing.T) {
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawPattern(t)
		key := []byte("\x00\n\xff")
		var names [][]byte
		for _, w := range p.Wants {
			if rapid.IntRange(0, 7).Draw(t, "has it") > 0 {
				names = append(names, w.Name)
			}
		}
		for _, name := range sortedSet(append(names, rapid.SliceOfN(element, 0, 2).Draw(t, "other names")...)) {
			value := element.Draw(t, "value")
			for _, w := range p.Wants {
				if bytes.Equal(w.Name, name) && len(w.Values) > 0 && rapid.IntRange(0, 3).Draw(t, "right") > 0 {
					value = rapid.SampledFrom(w.Values).Draw(t, "wanted value")
				}
			}
			key = append(append(key, name...), value...)
		}
		key = key[:len(key)-rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2}).Draw(t, "cut")]
		want := p.expression().MatchString(hex.EncodeToString(key))
		if want {
			matched++
		}
		if got := p.Matches(key); got != want {
			t.Fatalf("key %x: %v, want %v by %v", key, got, want, p.expression())
		}
	})
	if matched < 10 {
		t.Errorf("only %d keys matched, want at least 10", matched)
	}
}

func TestPatternWithoutElements(t *testing.T) {
	p := &KeyPattern{Head: 3}
	if !p.Matches([]byte("abc")) || p.Matches([]byte("abcd")) || p.Matches(nil) {
		t.Error("a pattern of a head alone matches keys of another length, or not its own")
	}
	if (&KeyPattern{Head: 3, Wants: []Want{{Name: []byte("x")}}}).Matches([]byte("abc")) {
		t.Error("a want is found among elements of no length")
	}
}

func TestPartialError(t *testing.T) {
	err := fmt.Errorf("apply: %w",
		&ApplyError{Failed: []int{3, 5}, Errs: []error{fmt.Errorf("region 1: %w", ErrUnavailable), ErrNoTable}})
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrNoTable) || errors.Is(err, ErrClosed) {
		t.Errorf("reasons of %v, want ErrUnavailable and ErrNoTable and no other", err)
	}
	if want := "apply: 2 mutations failed, the first: region 1: store unavailable"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if got := (&ApplyError{}).Error(); got != "0 mutations failed" {
		t.Errorf("without reasons: got %q, want \"0 mutations failed\"", got)
	}
}
