package encoding

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// Describe appends a cell as text for people, one line for each field: offset,
// bytes in hex, meaning. It never fails: bytes that cannot be read are shown with
// the reason, on a line with !! in it. The text may change.
//
//	row key, 13 bytes
//	     0  00 00 01                 metric 1
//	     3  50 E2 27 00              base time 1356998400, 2013-01-01 00:00:00 UTC
//	     7  00 00 01 00 00 01        tagk 1 = tagv 1
//	qualifier, 2 bytes
//	     0  03 CF                    +60 s, float on 8 bytes
//	value, 8 bytes
//	     0  40 33 80 00 00 00 00 00  19.5
func (s Schema) Describe(dst []byte, kind TableKind, c Cell) []byte {
	p := &page{dst: dst}
	switch kind {
	case TableUID:
		s.describeUIDCell(p, c)
	case TableMeta:
		s.describeMetaCell(p, c)
	default:
		s.describeDataCell(p, c)
	}
	return p.dst
}

// DescribeRowKey appends the row key of a data table as Describe shows it.
func (s Schema) DescribeRowKey(dst, key []byte) []byte {
	p := &page{dst: dst}
	s.describeRowKey(p, key)
	return p.dst
}

// page is the text of Describe under construction.
type page struct {
	dst []byte
	at  int // offset of the next byte
}

const (
	hexPerLine  = 8
	textPerLine = 16
)

// title writes the heading of a key, qualifier or value, whose offsets begin at 0.
func (p *page) title(what string, b []byte) {
	p.at = 0
	p.dst = fmt.Appendf(p.dst, "%s, %d byte%s\n", what, len(b), plural(len(b)))
}

// field writes bytes and, on their first line, what they mean.
func (p *page) field(b []byte, meaning string, args ...any) {
	p.wrap(b, hexPerLine, func(n int) string {
		if n > 0 {
			return ""
		}
		return fmt.Sprintf(meaning, args...)
	})
}

// text writes bytes and, on each line, the name that they spell in ISO-8859-1.
func (p *page) text(b []byte) {
	p.wrap(b, textPerLine, func(n int) string { return strconv.Quote(ParseName(b[n:min(n+textPerLine, len(b))])) })
}

// json writes bytes and, on each line, the UTF-8 text that they are.
func (p *page) json(b []byte) {
	// An empty value gets a line, too.
	for first := true; first || len(b) > 0; first = false {
		n := min(textPerLine, len(b))

		// A line must not end inside a character. It has at least a byte, also of what
		// is no UTF-8 at all.
		for n > 1 && n < len(b) && !utf8.RuneStart(b[n]) {
			n--
		}
		p.line(b[:n], textPerLine, strconv.Quote(string(b[:n])))
		b = b[n:]
	}
}

// wrap writes bytes in lines of perLine; meaning gets the offset of a line in b.
func (p *page) wrap(b []byte, perLine int, meaning func(n int) string) {
	for n := 0; n < len(b) || n == 0; n += perLine {
		part := b[n:min(n+perLine, len(b))]
		p.line(part, perLine, meaning(n))
	}
}

// line writes one line.
func (p *page) line(b []byte, perLine int, meaning string) {
	p.dst = fmt.Appendf(p.dst, "  %4d  %-*s", p.at, 3*perLine-1, fmt.Sprintf("% X", b))
	p.dst = append(append(p.dst, "  "...), meaning...)
	p.dst = append(bytes.TrimRight(p.dst, " "), '\n')
	p.at += len(b)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// describeRowKey writes the parts of a row key of the data table, or why it is none.
func (s Schema) describeRowKey(p *page, key []byte) {
	p.title("row key", key)
	k, err := s.ParseRowKey(key)
	if err != nil {
		p.field(key, "!! %v", err)
		return
	}

	// wrongSalt, globalRow and notOnHour return what is to be remarked, mostly nothing.
	if len(k.Salt) > 0 {
		p.field(k.Salt, "salt %d%s", UIDNumber(k.Salt), s.wrongSalt(k))
	}
	p.field(k.Metric, "metric %d%s", UIDNumber(k.Metric), globalRow(k))
	p.field(key[len(k.Salt)+len(k.Metric):s.HeadWidth()], "base time %d, %s%s", k.BaseTime,
		utcText(int64(k.BaseTime)*1000), notOnHour(k.BaseTime))
	s.describeTags(p, k.Tags)
}

// wrongSalt warns of a key whose salt is not the one that its series has.
func (s Schema) wrongSalt(k RowKey) string {
	// Global annotations always have salt 0. Salt divides by the number of buckets.
	if k.Global() || s.SaltBuckets < 1 {
		return ""
	}
	if want := s.Salt(k.Metric, k.Tags); UIDNumber(k.Salt) != uint64(want) {
		return fmt.Sprintf(" !! with %d buckets it would be %d", s.SaltBuckets, want)
	}
	return ""
}

// notOnHour warns of a base time that is not the start of an hour.
func notOnHour(base uint32) string {
	if base%RowSeconds != 0 {
		return " !! not on the hour"
	}
	return ""
}

// globalRow names the row of global annotations.
func globalRow(k RowKey) string {
	if k.Global() {
		return ", the row of global annotations"
	}
	return ""
}

// describeTags writes tag pairs, a field each.
func (s Schema) describeTags(p *page, tags []byte) {
	for _, t := range s.AppendPairs(nil, tags) {
		pair := append(append([]byte{}, t.K...), t.V...)
		p.field(pair, "tagk %d = tagv %d", UIDNumber(t.K), UIDNumber(t.V))
	}
}

// utcText is a time in ms as text.
func utcText(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.999 UTC") }

// describeUIDCell writes a cell of the UID table: a mapping from name to UID or
// back, a counter, or UIDMeta.
func (s Schema) describeUIDCell(p *page, c Cell) {
	kind, meta, ok := ParseUIDKind(c.Qualifier)
	counter := c.Family == FamilyID && string(c.Row) == string(CounterRow)

	p.title("row", c.Row)
	switch {
	case counter:
		p.field(c.Row, "row of the counters")
	case c.Family == FamilyName:
		p.field(c.Row, "UID %d", UIDNumber(c.Row))
	default:
		p.text(c.Row)
	}

	p.title("qualifier", c.Qualifier)
	p.text(c.Qualifier)

	p.title("value", c.Value)
	switch {
	// Downpour's own counter has no kind, so !ok would match it.
	case counter && string(c.Qualifier) == ChangesQualifier:
		p.counter(c.Value, "changes of names: %d")
	case !ok:
		p.field(c.Value, "!! unknown qualifier")
	case meta:
		p.json(c.Value)
	case counter:
		p.counter(c.Value, "last %s UID given: %d", kind)
	case c.Family == FamilyName:
		p.text(c.Value)
	default:
		p.field(c.Value, "%s UID %d%s", kind, UIDNumber(c.Value), s.wrongWidth(kind, c.Value))
	}
}

// wrongWidth warns of a UID whose width is not the schema's.
func (s Schema) wrongWidth(k UIDKind, uid []byte) string {
	if len(uid) != s.UIDWidth(k) {
		return fmt.Sprintf(" !! %d bytes, want %d", len(uid), s.UIDWidth(k))
	}
	return ""
}

// counter writes a counter's value. meaning is a format for args and the number.
func (p *page) counter(b []byte, meaning string, args ...any) {
	n, err := ParseCounter(b)
	if err != nil {
		p.field(b, "!! %v", err)
		return
	}
	p.field(b, meaning, append(args, n)...)
}

// describeMetaCell writes a cell of the meta table: a counter or TSMeta.
func (s Schema) describeMetaCell(p *page, c Cell) {
	p.title("row, a TSUID", c.Row)
	if metric, tags, err := s.SplitTSUID(c.Row); err != nil {
		p.field(c.Row, "!! %v", err)
	} else {
		p.field(metric, "metric %d", UIDNumber(metric))
		s.describeTags(p, tags)
	}

	p.title("qualifier", c.Qualifier)
	p.text(c.Qualifier)

	p.title("value", c.Value)
	if string(c.Qualifier) == MetaCounterQualifier {
		p.counter(c.Value, "%d points put")
		return
	}
	p.json(c.Value)
}
