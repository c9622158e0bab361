package scanplan

import (
	"encoding/binary"

	"downpour/encoding"
)

// Hours are the rows of whole hours in one salt bucket.
type Hours struct {
	Salt     string // its bytes, "" on an unsalted table
	From, To int64  // base times, s, half-open
}

// Grid is the number of buckets of the plan's downsampling in the hours; the
// first starts at From. The downsampling must divide the hour.
func (h Hours) Grid(d *Downsample) int { return int((h.To - h.From) * 1000 / d.Interval) }

// WholeHours tells which hours a key range of the plan is, false if it cuts one:
// its keys must be salt, metric and base time without tags, as
//
//	00 0000001 50E22700 to 00 0000001 50E24320
//
// A range that begins or ends inside an hour has some of the hour's series only.
func (p *Plan) WholeHours(r KeyRange) (h Hours, ok bool) {
	at, whole := p.Schema.BaseTimeAt(), p.Schema.HeadWidth()
	if len(r.Start) != whole || len(r.Stop) != whole || string(r.Start[:at]) != string(r.Stop[:at]) {
		return h, false
	}
	h.Salt = string(r.Start[:p.Schema.SaltWidth])
	h.From = int64(binary.BigEndian.Uint32(r.Start[at:]))
	h.To = int64(binary.BigEndian.Uint32(r.Stop[at:]))
	return h, h.From%encoding.RowSeconds == 0 && h.To%encoding.RowSeconds == 0 && h.From < h.To
}

// AppendGroupKey appends the key of the group that a span belongs to: the tag
// values of GroupBy in its order, of the aggregator none the span. It returns
// false for a span that lacks one of the tag keys and is in no group.
func (p *Plan) AppendGroupKey(dst, span []byte) ([]byte, bool) {
	if p.Aggregator == "none" {
		return append(dst, span...), true
	}
	tags := p.Schema.SpanTags(span)
	for _, k := range p.GroupBy {
		v, ok := p.Schema.Tag(tags, k)
		if !ok {
			return dst, false
		}
		dst = append(dst, v...)
	}
	return dst, true
}
