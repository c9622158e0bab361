package tools

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"downpour/encoding"
	"downpour/gateway/write"
)

// An import line is what telnet puts are, with or without the put:
//
//	sys.cpu.user 1356998400 42 host=web01 cpu=0
//	put sys.cpu.user 1356998400250 0.5 host=web01 cpu=0
//
// metric, time in seconds or milliseconds, value, and tags, at blanks or tabs.
// Without '.', 'e' and 'E' a value is an integer. Text that is not UTF-8 is
// ISO-8859-1. tsdb scan --import and export write such lines. Lines that begin
// with # are comments; some of them are meta lines, see metaLine.
// Source: TextImporter.importFile, DumpSeries.appendImportCell.

// maxLine is the longest line that is read. An annotation may be that long.
const maxLine = 1 << 20

// linePoint is a parsed line. Names are its metric and tag words with single blanks
// between them, so equal names are the same series.
type linePoint struct {
	number int64 // of the line, from 1
	names  []byte
	time   int64 // seconds, or milliseconds beyond 32 bits
	value  encoding.Value
}

// parseLine parses the line of a point. It appends the names to dst, and uses parts
// as scratch.
func parseLine(dst, line []byte, parts *[][]byte) (p linePoint, out []byte, err error) {
	*parts = words((*parts)[:0], line)
	w := *parts

	// A metric may be called put: then the fourth word is a tag and no value.
	if len(w) > 4 && string(w[0]) == "put" && bytes.IndexByte(w[3], '=') < 0 {
		w = w[1:]
	}
	if len(w) < 4 {
		return p, dst, fmt.Errorf("has %d words, want metric, time, value and at least one tag", len(w))
	}
	if p.time, err = parseTime(w[1]); err != nil {
		return p, dst, err
	}
	if p.value, err = write.ParseValue(string(w[2])); err != nil {
		return p, dst, fmt.Errorf("value: got %q, want a number of 64 bits", w[2])
	}

	start := len(dst)
	dst = append(dst, w[0]...)
	for _, tag := range w[3:] {
		dst = append(append(dst, ' '), tag...)
	}

	p.names = dst[start:len(dst):len(dst)]
	return p, dst, nil
}

// words appends the words of a line, at any number of blanks and tabs.
func words(dst [][]byte, line []byte) [][]byte {
	start := -1
	for i, c := range line {
		blank := c == ' ' || c == '\t' || c == '\r' // lines of Windows end with the last one
		switch {
		case blank && start >= 0:
			dst = append(dst, line[start:i])
			start = -1
		case !blank && start < 0:
			start = i
		}
	}
	if start >= 0 {
		dst = append(dst, line[start:])
	}
	return dst
}

// parseTime reads seconds, milliseconds, or seconds with three decimals. A TSD
// just leaves out the dot; with other than three decimals that makes a time in
// 1970, which nobody means to import.
func parseTime(w []byte) (int64, error) {
	digits := w
	if dot := bytes.IndexByte(w, '.'); dot >= 0 {
		if dot != 10 || len(w) != 14 {
			return 0, fmt.Errorf("time: got %q, want seconds, seconds with three decimals, or milliseconds", w)
		}
		digits = slices.Concat(w[:dot], w[dot+1:])
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("time: got %q, want digits", w)
		}
	}
	t, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || t <= 0 || t > maxTime {
		return 0, fmt.Errorf("time: got %q, want 1 to %d (2106-02-07T06:28:15.999Z)", w, int64(maxTime))
	}
	return t, nil
}

// maxTime is the largest time that a row can hold, in ms.
const maxTime = encoding.MaxTime*1000 + 999

// importable reports whether import reads the line of a point, whose time is in ms or
// seconds, as that point. It takes neither NaN nor infinity, no time before 1 or beyond
// maxTime, and it takes times below 2^32 for seconds and others for ms.
func importable(t int64, milli bool, v encoding.Value) bool {
	if d := v.Double(); v.Float && (math.IsNaN(d) || math.IsInf(d, 0)) {
		return false
	}
	return t > 0 && t <= maxTime && milli == write.IsMillis(t)
}

// splitNames makes metric and tags of a line's names.
func splitNames(names []byte) (metric string, tags []write.Tag, err error) {
	w := bytes.Split(names, []byte{' '})
	for _, word := range w[1:] {
		k, v, ok := bytes.Cut(word, []byte{'='})
		if !ok || len(k) == 0 || len(v) == 0 || bytes.IndexByte(v, '=') >= 0 {
			return "", nil, fmt.Errorf("invalid tag: %s", name(word))
		}
		t := write.Tag{K: name(k), V: name(v)}
		// A tag may stand there twice, as in a put, with one value.
		if i := slices.IndexFunc(tags, func(o write.Tag) bool { return o.K == t.K }); i < 0 {
			tags = append(tags, t)
		} else if tags[i].V != t.V {
			return "", nil, fmt.Errorf("duplicate tag: %s=%s and %s=%s", t.K, tags[i].V, t.K, t.V)
		}
	}
	return name(w[0]), tags, nil
}

func name(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return encoding.ParseName(b)
}

// point is a line's point, its names checked.
func (p *linePoint) point(s *Settings) (*write.Point, error) {
	metric, tags, err := splitNames(p.names)
	if err != nil {
		return nil, err
	}
	out := &write.Point{Metric: metric, Tags: tags, Time: p.time, Value: p.value, Narrow: true}
	return out, out.Validate(s.Schema, s.Allowed...)
}

// namePrefix begins a line of the list of names that export -all writes.
const namePrefix = "#uid"

// nameLine is one name of that list.
type nameLine struct {
	kind encoding.UIDKind
	name string
}

// parseNameLine reads "#uid KIND NAME"; ok is false for any other comment.
func parseNameLine(w [][]byte) (n nameLine, ok bool) {
	if len(w) != 3 || string(w[0]) != namePrefix {
		return n, false
	}
	n.kind, ok = kinds[string(w[1])]
	n.name = name(w[2])
	return n, ok
}

// appendLine appends the line of a point, without its end. tags are in the form
// of appendTags.
func appendLine(dst []byte, metric string, time int64, v encoding.Value, tags string) []byte {
	dst = append(append(dst, metric...), ' ')
	dst = append(strconv.AppendInt(dst, time, 10), ' ')
	return append(append(dst, v.String()...), tags...)
}

// appendTag appends a blank and one tag.
func appendTag(dst []byte, k, v string) ([]byte, error) {
	for _, n := range []string{k, v} {
		if err := checkName(n); err != nil {
			return dst, err
		}
	}
	return append(append(append(append(dst, ' '), k...), '='), v...), nil
}

// checkName returns errName for a name that a line would not give back: it has a blank or
// an equals sign, or would make its line a comment.
func checkName(n string) error {
	for i, c := range []byte(n) {
		if i == 0 && c == '#' || c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '=' {
			return fmt.Errorf("name %q: %w", n, errName)
		}
	}
	return nil
}
