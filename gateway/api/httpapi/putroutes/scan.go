package putroutes

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unsafe"

	"downpour/gateway/jackson"
	"downpour/gateway/write"
)

// scanPoints reads a put body as collectors write them: objects with each of the four
// members once and nothing else, strings of plain ASCII without escapes, and numbers.
// ok is false for every other body, valid or not, which is then decoded. The points are
// what the decoder would return, at a tenth of the cost. They are in the memory of dst,
// which is empty, if they fit.
func scanPoints(body []byte, dst []scannedPoint) (points []scannedPoint, ok bool) {
	if len(body) > maxBody { // positions are 32 bits
		return nil, false
	}

	s := scanner{body: body}
	if !s.accept('[') {
		points = append(dst, scannedPoint{})
		return points, s.point(&points[0]) && s.at == len(body)
	}

	points = slices.Grow(dst, min(1+len(body)/shortPoint, maxPoints))
	for {
		// The decoder refuses too many points.
		if len(points) == maxPoints {
			return nil, false
		}
		points = append(points, scannedPoint{})
		if !s.point(&points[len(points)-1]) {
			return nil, false
		}
		if !s.accept(',') {
			break
		}
	}

	// Nothing may follow the list.
	return points, s.accept(']') && s.at == len(body)
}

// shortPoint is the length of a short point in JSON. The list allocated by it
// seldom has to grow.
const shortPoint = 80

// scannedPoint is where the parts of a point are in a body.
type scannedPoint struct {
	metric           textRange // without quotes
	timestamp, value textRange // numbers, or strings without quotes
	tags             textRange // the object, with braces
}

// textRange is a part of a body, by its offsets.
type textRange struct{ from, end uint32 }

// in returns the part as a string, which is valid as long as nobody writes into
// body.
func (s textRange) in(body []byte) string {
	part := body[s.from:s.end]
	return unsafe.String(unsafe.SliceData(part), len(part))
}

var quote = []byte{'"'}

// spelling returns how the client spells the series, in parts. The quote separates
// the metric from the tags: no scanned string holds one.
func (p *scannedPoint) spelling(body []byte) (metric, separator, tags []byte) {
	return body[p.metric.from:p.metric.end], quote, body[p.tags.from:p.tags.end]
}

// token returns a copy of the point's time.
func (p *scannedPoint) token(body []byte) timestamp {
	t := timestamp{Kind: jackson.Integer, Text: string(body[p.timestamp.from:p.timestamp.end])}
	if body[p.timestamp.from-1] == '"' {
		t.Kind = jackson.Text
	} else if strings.ContainsAny(t.Text, ".eE") {
		t.Kind = jackson.Float
	}
	return t
}

// time returns the point's time, 0 if it is none.
func (p *scannedPoint) time(body []byte) int64 {
	if text := p.timestamp.in(body); text != "" {
		if t, ok := write.ShortInt(text); ok { // nearly all times
			return t
		}
	}
	return p.token(body).time()
}

// decode returns a copy of the point as the decoder does.
func (p *scannedPoint) decode(body []byte) *dataPoint {
	copied := func(s textRange) string { return string(body[s.from:s.end]) }
	d := &dataPoint{copied(p.metric), p.token(body), copied(p.value), map[string]string{}}
	s := scanner{body: body, at: int(p.tags.from)}
	s.tags(func(k, v textRange) { d.Tags[copied(k)] = copied(v) })
	return d
}

// scanner reads a body. Each method reads one element and the blanks after it. Once a method has
// returned false the scanner can no longer be used.
type scanner struct {
	body []byte
	at   int // the next byte to read
}

// point reads a point's object into p, with its members in any order.
func (s *scanner) point(p *scannedPoint) (ok bool) {
	if !s.accept('{') {
		return false
	}

	var seen uint // a bit for each member
	for {
		member := s.member()
		if member < 0 || seen&(1<<member) != 0 || !s.accept(':') {
			return false
		}
		seen |= 1 << member

		switch member {
		case memberMetric:
			p.metric, ok = s.text()
		case memberTimestamp:
			p.timestamp, ok = s.scalar()
		case memberValue:
			p.value, ok = s.scalar()
		case memberTags:
			p.tags, ok = s.tags(nil)
		}
		if !ok {
			return false
		}

		// The last member: all four must have been there.
		if !s.accept(',') {
			return s.accept('}') && seen == 1<<members-1
		}
	}
}

// The members of a point.
const (
	memberMetric = iota
	memberTimestamp
	memberValue
	memberTags
	members
)

// member reads the name of a member and returns -1 if a point has no such member.
func (s *scanner) member() int {
	member, size := -1, 0
	switch b := s.body[s.at:]; { // by names of constant lengths, which are compared as numbers
	case len(b) > 8 && string(b[:8]) == `"metric"`:
		member, size = memberMetric, 8
	case len(b) > 7 && string(b[:7]) == `"value"`:
		member, size = memberValue, 7
	case len(b) > 6 && string(b[:6]) == `"tags"`:
		member, size = memberTags, 6
	case len(b) > 11 && string(b[:11]) == `"timestamp"`:
		member, size = memberTimestamp, 11
	}
	s.at += size
	s.blanks()
	return member
}

// tags reads an object of strings and numbers. It calls each, unless that is nil,
// for every pair in it.
func (s *scanner) tags(each func(k, v textRange)) (object textRange, ok bool) {
	from := s.at
	if !s.accept('{') {
		return textRange{}, false
	}

	if s.at < len(s.body) && s.body[s.at] == '}' {
		return s.closeObject(from), true
	}
	for {
		k, ok := s.text()
		if !ok || !s.accept(':') {
			return textRange{}, false
		}
		v, ok := s.scalar()
		if !ok {
			return textRange{}, false
		}
		if each != nil {
			each(k, v)
		}

		if s.accept(',') {
			continue
		}
		// Not by accept: the object ends at its brace, before the blanks.
		if s.at == len(s.body) || s.body[s.at] != '}' {
			return textRange{}, false
		}
		return s.closeObject(from), true
	}
}

// closeObject reads the closing brace of an object that begins at from, and
// returns the object.
func (s *scanner) closeObject(from int) textRange {
	s.at++
	whole := textRange{uint32(from), uint32(s.at)}
	s.blanks()
	return whole
}

// scalar reads a string or a number.
func (s *scanner) scalar() (textRange, bool) {
	if s.at < len(s.body) && s.body[s.at] == '"' {
		return s.text()
	}
	return s.number()
}

// unescaped reports whether a scanned string may hold a byte: printable ASCII that is not escaped.
func unescaped(c byte) bool { return c >= ' ' && c < 0x7F && c != '"' && c != '\\' }

// firstEscaped returns the place, in eight bytes with the first one lowest, of the first byte
// that a scanned string may not hold; 8 if it may hold all.
func firstEscaped(eight uint64) int {
	const (
		ones = 0x0101010101010101
		tops = 0x8080808080808080
	)
	// The top bit of the first byte that is 0, and perhaps of later ones.
	zero := func(x uint64) uint64 { return (x - ones) &^ x }
	found := (zero(eight^'"'*ones) | zero(eight^'\\'*ones) | (eight-' '*ones)&^eight | eight | (eight + ones)) & tops
	return bits.TrailingZeros64(found) / 8
}

// text reads a string and returns what is between its quotes.
func (s *scanner) text() (textRange, bool) {
	b, from := s.body, s.at+1
	if from > len(b) || b[from-1] != '"' {
		return textRange{}, false
	}

	end := from
	for len(b)-end >= 8 {
		n := firstEscaped(binary.LittleEndian.Uint64(b[end:]))
		if end += n; n < 8 {
			break
		}
	}
	for end < len(b) && unescaped(b[end]) { // the last bytes of the body
		end++
	}
	if end == len(b) || b[end] != '"' {
		return textRange{}, false
	}
	s.at = end + 1
	s.blanks()
	return textRange{uint32(from), uint32(end)}, true
}

// number reads a number in the syntax of RFC 8259.
func (s *scanner) number() (textRange, bool) {
	from := s.at
	s.skip('-')
	// A number does not begin with a zero unless that is its only integer digit.
	if !s.skip('0') && !s.digits() {
		return textRange{}, false
	}
	if s.skip('.') && !s.digits() {
		return textRange{}, false
	}
	if s.skip('e') || s.skip('E') {
		if !s.skip('+') {
			s.skip('-')
		}
		if !s.digits() {
			return textRange{}, false
		}
	}

	whole := textRange{uint32(from), uint32(s.at)}
	s.blanks()
	return whole, true
}

// digits reads at least one digit.
func (s *scanner) digits() bool {
	b, at := s.body, s.at
	for at < len(b) && b[at]-'0' <= 9 {
		at++
	}
	found := at > s.at
	s.at = at
	return found
}

// skip reads the byte c, if it is next.
func (s *scanner) skip(c byte) bool {
	if s.at < len(s.body) && s.body[s.at] == c {
		s.at++
		return true
	}
	return false
}

// accept reads the byte c, if it is next, and the blanks after it.
func (s *scanner) accept(c byte) bool {
	if s.at >= len(s.body) || s.body[s.at] != c {
		return false
	}
	s.at++
	s.blanks()
	return true
}

// blanks reads JSON's white space.
func (s *scanner) blanks() {
	if s.at < len(s.body) && s.body[s.at] <= ' ' {
		s.skipBlanks()
	}
}

func (s *scanner) skipBlanks() {
	for s.at < len(s.body) {
		switch s.body[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}
