package scanplan

import (
	"bytes"
	"encoding/binary"

	"downpour/encoding"
)

// Hours is an interval of whole hours in one salt bucket.
type Hours struct {
	Salt     string // its bytes, "" on an unsalted table
	From, To int64  // base times in seconds, half-open
}

// Grid is the number of buckets that a downsampling has in the hours; the first
// starts at From. The buckets must divide the hour.
func (h Hours) Grid(d *Downsample) int { return int((h.To - h.From) * 1000 / d.Interval) }

// WholeHours returns the hours that a key range of the plan consists of. Its keys
// must be salt, metric and base time without tags, as
//
//	00 000001 50E22700 to 00 000001 50E24320
//
// ok is false for a range that begins or ends inside an hour: it has only some of
// that hour's series.
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

// Between returns the plan of the hours from from to to, base times in s, half-open, and
// inside p's own: it is untrimmed, and reads what p reads of them. ok is false if one of
// p's ranges is not of whole hours.
func (p *Plan) Between(from, to int64) (between Plan, ok bool) {
	out := *p
	out.From, out.To = from, to
	out.Ranges = make([]KeyRange, len(p.Ranges))
	for i, r := range p.Ranges {
		if _, ok := p.WholeHours(r); !ok {
			return Plan{}, false
		}
		out.Ranges[i] = KeyRange{Start: p.HourKey(r, from), Stop: p.HourKey(r, to)}
	}
	return out.Untrimmed(), true
}

// HourKey returns the first key that a row with this base time, in s, can have in the salt
// bucket of r, which is not shorter than salt and metric: 00 000001 50E22700.
func (p *Plan) HourKey(r KeyRange, base int64) HexBytes {
	return binary.BigEndian.AppendUint32(bytes.Clone(r.Start[:p.Schema.BaseTimeAt()]), encoding.KeyTime(base))
}

// Reads returns the keys that a part of the plan with range r depends on. Those before r are of
// rows whose base time is no full hour, which hold points of the first hour; if r does not begin
// the plan, the part before it reads them.
func (p *Plan) Reads(r KeyRange) KeyRange {
	at := p.Schema.BaseTimeAt()
	if p.Rollup != nil || len(r.Start) != at+encoding.BaseTimeWidth || p.From <= 0 ||
		int64(binary.BigEndian.Uint32(r.Start[at:])) != p.From {
		return r
	}
	return KeyRange{Start: p.HourKey(r, p.From-encoding.RowSeconds+1), Stop: r.Stop}
}

// AppendGroupKey appends the key of the group that a span belongs to: its values of
// the tag keys in GroupBy, in that order, or the whole span if the aggregator is
// None. It returns false for a span that does not have all of these tag keys, which
// is in no group. The key of a group of windows is the span of the series that stands for it.
func (p *Plan) AppendGroupKey(dst, span []byte) ([]byte, bool) {
	if p.Window != nil && p.Window.Groups != nil {
		return p.Window.Groups.appendGroup(dst, p.Schema, span), true
	}
	if p.Aggregator == None {
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
