package encoding

import (
	"encoding/binary"
	"fmt"
	"math"
)

// describeDataCell writes a cell of the data table. A qualifier of even length is
// of points; the first byte of an odd one says what the cell holds.
func (s Schema) describeDataCell(p *page, c Cell) {
	s.describeRowKey(p, c.Row)
	p.title("qualifier", c.Qualifier)
	switch {
	case len(c.Qualifier) == 0:
		p.field(nil, "!! empty")
		p.title("value", c.Value)
		p.field(c.Value, "")
	case len(c.Qualifier)%2 == 0:
		p.points(c.Qualifier, c.Value)
	case c.Qualifier[0] == PrefixAppend && len(c.Qualifier) == len(AppendColumn):
		p.field(c.Qualifier, "append column")
		p.title("value", c.Value)
		p.entries(c.Value)
	// Before annotations: column 1 of a rollup table begins as they do, and is as long.
	case looksLikeRollup(c):
		p.rollup(c.Qualifier, c.Value)
	case c.Qualifier[0] == PrefixAnnotation:
		p.annotation(c.Qualifier, c.Value)
	case c.Qualifier[0] == PrefixHistogram:
		p.histogram(c.Qualifier, c.Value)
	default:
		p.other(c.Qualifier, c.Value)
	}
}

// points writes the qualifiers of a single or compacted cell, then its values.
func (p *page) points(qualifier, value []byte) {
	var qs []Qualifier
	for left := qualifier; len(left) > 0; {
		q, rest, err := ParseQualifier(left)
		if err != nil {
			p.field(left, "!! %v", err)
			p.title("value", value)
			p.field(value, "")
			return
		}
		p.field(left[:len(left)-len(rest)], "%s", q.describe())
		qs, left = append(qs, q), rest
	}

	p.title("value", value)
	if len(qs) == 1 {
		p.single(qs[0], value)
		return
	}
	p.compacted(qs, value)
}

// describe returns a qualifier in words: offset, type, length of the value.
func (q Qualifier) describe() string {
	kind, unit, offset := "integer", "s", q.OffsetMS/1000
	if q.Float {
		kind = "float"
	}
	if q.Milli {
		unit, offset = "ms", q.OffsetMS
	}
	return fmt.Sprintf("+%d %s, %s on %d byte%s", offset, unit, kind, q.Width, plural(q.Width))
}

// single writes the value of one point.
func (p *page) single(q Qualifier, value []byte) {
	v, err := ParseValue(q, value)
	switch {
	case err != nil:
		p.field(value, "!! %v", err)
	case len(value) != q.Width:
		p.field(value, "%s, though the qualifier says %d byte%s", v, q.Width, plural(q.Width))
	default:
		p.field(value, "%s", v)
	}
}

// compacted writes the values of a compacted cell and its last byte.
func (p *page) compacted(qs []Qualifier, value []byte) {
	for _, q := range qs {
		if len(value) < q.Width {
			p.field(value, "!! want %d bytes", q.Width)
			return
		}
		p.single(q, value[:q.Width])
		value = value[q.Width:]
	}

	switch {
	case len(value) != 1:
		p.field(value, "!! %d bytes after the points, want 1", len(value))
	case value[0] == 0:
		p.field(value, "end: times all in s or all in ms")
	case value[0] == 1:
		p.field(value, "end: times in s and ms")
	default:
		p.field(value, "!! end, want 00 or 01")
	}
}

// entries writes the entries of an append column.
func (p *page) entries(value []byte) {
	for len(value) > 0 {
		q, rest, err := ParseQualifier(value)
		if err != nil {
			p.field(value, "!! %v", err)
			return
		}
		p.field(value[:len(value)-len(rest)], "%s", q.describe())

		if len(rest) < q.Width {
			p.field(rest, "!! want %d bytes", q.Width)
			return
		}
		p.single(q, rest[:q.Width])
		value = rest[q.Width:]
	}
}

// annotation writes an annotation's qualifier and JSON.
func (p *page) annotation(qualifier, value []byte) {
	offset, milli, err := ParseAnnotationQualifier(qualifier)
	p.noPoint("annotation", qualifier, offset, milli, err)
	p.title("value", value)
	p.json(value)
}

// noPoint writes the qualifier of something that is no point: what it is and when, in ms or,
// without milli, in seconds.
func (p *page) noPoint(what string, qualifier []byte, offset int32, milli bool, err error) {
	switch {
	case err != nil:
		p.field(qualifier, "!! %v", err)
	case milli:
		p.field(qualifier, "%s at +%d ms", what, offset)
	default:
		p.field(qualifier, "%s at +%d s", what, offset/1000)
	}
}

// histogram writes a histogram's qualifier, its codec and its counts.
func (p *page) histogram(qualifier, value []byte) {
	offset, milli, err := ParseHistogramQualifier(qualifier)
	p.noPoint("histogram", qualifier, offset, milli, err)

	p.title("value", value)
	var h Histogram
	if len(value) == 0 || ParseHistogram(value[1:], &h) != nil {
		p.field(value, "!! no SimpleHistogram")
		return
	}
	p.field(value[:1], "codec %d", value[0])
	p.field(value[1:3], "%d bucket%s", binary.BigEndian.Uint16(value[1:]),
		plural(int(binary.BigEndian.Uint16(value[1:]))))

	// As stored: in any order, with doubles. ParseHistogram has read every count, so none
	// of them is cut short.
	left := value[3:]
	for range binary.BigEndian.Uint16(value[1:]) {
		count, rest, _ := parseCount(left[boundsBytes:])
		p.field(left[:len(left)-len(rest)], "[%v, %v): %d", math.Float32frombits(binary.BigEndian.Uint32(left)),
			math.Float32frombits(binary.BigEndian.Uint32(left[4:])), count)
		left = rest
	}

	for _, name := range []string{"underflow", "overflow"} {
		count, rest, _ := parseCount(left)
		p.field(left[:len(left)-len(rest)], "%s %d", name, count)
		left = rest
	}

	if len(left) > 0 {
		p.field(left, "!! %d byte%s after the histogram", len(left), plural(len(left)))
	}
}

// other writes a cell that is neither points nor an annotation nor a histogram.
func (p *page) other(qualifier, value []byte) {
	meaning := "!! unknown prefix, skipped by readers"
	if qualifier[0] == PrefixAppend {
		meaning = fmt.Sprintf("!! append column, want %d bytes", len(AppendColumn))
	}
	p.field(qualifier, "%s", meaning)
	p.title("value", value)
	p.field(value, "")
}
