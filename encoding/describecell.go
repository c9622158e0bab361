package encoding

import "fmt"

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
	case c.Qualifier[0] == PrefixAnnotation:
		p.annotation(c.Qualifier, c.Value)
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
	switch {
	case err != nil:
		p.field(qualifier, "!! %v", err)
	case milli:
		p.field(qualifier, "annotation at +%d ms", offset)
	default:
		p.field(qualifier, "annotation at +%d s", offset/1000)
	}
	p.title("value", value)
	p.json(value)
}

// other writes a cell that is neither points nor an annotation.
func (p *page) other(qualifier, value []byte) {
	meaning := "!! unknown prefix, skipped by readers"
	switch qualifier[0] {
	case PrefixHistogram:
		meaning = "histogram, skipped by readers"
	case PrefixAppend:
		meaning = fmt.Sprintf("!! append column, want %d bytes", len(AppendColumn))
	}
	p.field(qualifier, "%s", meaning)
	p.title("value", value)
	p.field(value, "")
}
