package putroutes

import (
	"bytes"
	"unsafe"

	"downpour/gateway/api/httpapi/httpio"
)

// scanPoints reads a put body that is written as collectors write them: objects
// that have each of the four members once and nothing else, whose strings are
// plain ASCII without escapes, and whose other values are numbers. Every other
// body, right or wrong, is left to the decoder: ok is false. What is read means
// what the decoder would make of it, and costs a tenth.
func scanPoints(body []byte) (points []plainPoint, ok bool) {
	if len(body) > maxBody {
		return nil, false
	}
	s := scan{body: body}
	if !s.accept('[') {
		p, ok := s.point()
		return []plainPoint{p}, ok && s.at == len(body)
	}
	points = make([]plainPoint, 0, min(1+len(body)/leastPoint, maxPoints))
	for {
		p, ok := s.point()
		if !ok || len(points) == maxPoints {
			return nil, false
		}
		points = append(points, p)
		if !s.accept(',') {
			break
		}
	}
	return points, s.accept(']') && s.at == len(body)
}

// leastPoint is the length of a short point: the list seldom grows.
const leastPoint = 80

// plainPoint is where in a body the parts of a point stand.
type plainPoint struct {
	metric           textRange // without quotes
	timestamp, value textRange // texts of numbers, or without quotes
	tags             textRange // the object, with braces
}

// textRange is a part of a body.
type textRange struct{ from, end uint32 }

// in is the part as a string, for as long as nobody writes into body.
func (s textRange) in(body []byte) string {
	part := body[s.from:s.end]
	return unsafe.String(unsafe.SliceData(part), len(part))
}

// spelled is how long the spelling is.
func (p *plainPoint) spelled() int {
	return 2 + int(p.metric.end-p.metric.from) + int(p.tags.end-p.tags.from)
}

// appendSpelling appends how the client spells the series. No other door's
// spelling begins like it, and no metric that is valid holds a quote.
func (p *plainPoint) appendSpelling(dst, body []byte) []byte {
	dst = append(append(dst, 4), body[p.metric.from:p.metric.end]...)
	return append(append(dst, '"'), body[p.tags.from:p.tags.end]...)
}

// decode is the point as the decoder gives it, in memory of its own.
func (p *plainPoint) decode(body []byte) *dataPoint {
	copied := func(s textRange) httpio.Scalar { return httpio.Scalar(body[s.from:s.end]) }
	d := &dataPoint{Metric: copied(p.metric), Timestamp: copied(p.timestamp), Value: copied(p.value), Tags: map[string]httpio.Scalar{}}
	s := scan{body: body, at: int(p.tags.from)}
	s.tags(func(k, v textRange) { d.Tags[string(copied(k))] = copied(v) })
	return d
}

// scan is a place in a body. Its methods read one thing and the blanks behind
// it; where they return false, the place means nothing any more.
type scan struct {
	body []byte
	at   int
}

// point reads an object of a point.
func (s *scan) point() (p plainPoint, ok bool) {
	if !s.accept('{') {
		return p, false
	}
	var seen uint
	for {
		member := s.member()
		if member < 0 || seen&(1<<member) != 0 || !s.accept(':') {
			return p, false
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
			return p, false
		}
		if !s.accept(',') {
			return p, s.accept('}') && seen == 1<<len(members)-1
		}
	}
}

// The members of a point.
const (
	memberMetric = iota
	memberTimestamp
	memberValue
	memberTags
)

var members = [...][]byte{[]byte(`"metric"`), []byte(`"timestamp"`), []byte(`"value"`), []byte(`"tags"`)}

// member reads the name of a member; -1 if it is none of ours.
func (s *scan) member() int {
	for i, name := range members {
		if bytes.HasPrefix(s.body[s.at:], name) {
			s.at += len(name)
			s.blanks()
			return i
		}
	}
	return -1
}

// tags reads an object of texts and numbers, and calls each, if set, for every
// pair in it.
func (s *scan) tags(each func(k, v textRange)) (object textRange, ok bool) {
	from := s.at
	if !s.accept('{') {
		return textRange{}, false
	}
	if s.at < len(s.body) && s.body[s.at] == '}' {
		return s.closed(from), true
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
		if s.at == len(s.body) || s.body[s.at] != '}' {
			return textRange{}, false
		}
		return s.closed(from), true
	}
}

// closed steps over a brace and is what began at from.
func (s *scan) closed(from int) textRange {
	s.at++
	whole := textRange{uint32(from), uint32(s.at)}
	s.blanks()
	return whole
}

// scalar reads a string or a number.
func (s *scan) scalar() (textRange, bool) {
	if s.at < len(s.body) && s.body[s.at] == '"' {
		return s.text()
	}
	return s.number()
}

// plain are the bytes that a string may hold here: they stand for themselves.
var plain = func() (t [256]bool) {
	for c := ' '; c < 0x7F; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// text reads a string and is what stands between its quotes.
func (s *scan) text() (textRange, bool) {
	if s.at == len(s.body) || s.body[s.at] != '"' {
		return textRange{}, false
	}
	from := s.at + 1
	end := from
	for end < len(s.body) && plain[s.body[end]] {
		end++
	}
	if end == len(s.body) || s.body[end] != '"' {
		return textRange{}, false
	}
	s.at = end + 1
	s.blanks()
	return textRange{uint32(from), uint32(end)}, true
}

// number reads a number as RFC 8259 has it.
func (s *scan) number() (textRange, bool) {
	from := s.at
	s.skip('-')
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
func (s *scan) digits() bool {
	from := s.at
	for s.at < len(s.body) && s.body[s.at]-'0' <= 9 {
		s.at++
	}
	return s.at > from
}

// skip steps over c, if that is what comes.
func (s *scan) skip(c byte) bool {
	if s.at < len(s.body) && s.body[s.at] == c {
		s.at++
		return true
	}
	return false
}

// accept steps over c and the blanks behind it, if that is what comes.
func (s *scan) accept(c byte) bool {
	if !s.skip(c) {
		return false
	}
	s.blanks()
	return true
}

// blanks steps over what JSON takes for blanks.
func (s *scan) blanks() {
	for s.at < len(s.body) {
		switch s.body[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}
