package scanplan

import (
	"encoding/binary"
	"math"

	"downpour/encoding"
)

// AppendIdentity appends the identity of a plan: bytes that two plans share exactly if all their
// fields are equal; an absent list is equal to an empty one. It is for keys in memory: it takes
// a twentieth of the wire form's time, and is never stored.
func (p *Plan) AppendIdentity(dst []byte) []byte { return identity(dst).plan(p) }

// AppendIdentity appends the identity of a part, see that of a plan.
func (p *Part) AppendIdentity(dst []byte) []byte {
	return identity(dst).plan(&p.Plan).keyRange(p.Range).text(string(p.Mode))
}

// identity is written field by field in one order. A field of varying length follows its length,
// and an optional one a flag, so no two plans have the same bytes.
type identity []byte

func (b identity) plan(p *Plan) identity {
	b = b.number(int64(p.Version)).schema(p.Schema).text(p.Table).bytes(p.Metric)
	b = b.number(p.From).number(p.To).number(p.Start).number(p.End)

	b = b.number(int64(len(p.Ranges)))
	for _, r := range p.Ranges {
		b = b.keyRange(r)
	}
	b = b.number(int64(len(p.Tags)))
	for _, t := range p.Tags {
		b = b.bytes(t.TagK).number(int64(t.Op)).uids(t.Values)
	}
	b = b.flag(p.Exact).uids(p.TSUIDs)

	b = b.histograms(p.Histograms).downsample(p.Downsample).rollup(p.Rollup).rate(p.Rate).window(p.Window)
	b = b.text(string(p.Aggregator)).uids(p.GroupBy)
	return b.flag(p.FixDuplicates).number(int64(p.Fix)).flag(p.SplitOffHour).number(p.MaxBytes)
}

func (b identity) schema(s encoding.Schema) identity {
	for _, n := range [...]int{s.SaltWidth, s.SaltBuckets, s.MetricWidth, s.TagKWidth, s.TagVWidth, s.MaxTags} {
		b = b.number(int64(n))
	}
	return b
}

func (b identity) histograms(h *Histograms) identity {
	if h == nil {
		return b.flag(false)
	}
	b = b.flag(true).number(int64(h.Codec)).number(int64(len(h.Percentiles)))
	for _, p := range h.Percentiles {
		b = b.number(int64(math.Float32bits(p)))
	}
	return b.flag(h.Buckets)
}

func (b identity) downsample(d *Downsample) identity {
	if d == nil {
		return b.flag(false)
	}
	b = b.flag(true).flag(d.All).number(d.Interval).number(int64(d.Count)).text(d.Unit)
	b = b.flag(d.Calendar).text(d.Zone) //fault:identity-without-the-zone TestIdentity_everyField
	return b.text(string(d.Function)).text(string(d.Fill))
}

func (b identity) rollup(r *Rollup) identity {
	if r == nil {
		return b.flag(false)
	}
	b = b.flag(true).number(r.Layout.Interval).number(int64(r.Layout.Span.Count)).text(
		r.Layout.Span.Unit).column(r.Column)
	if r.Count == nil {
		return b.flag(false)
	}
	return b.flag(true).column(*r.Count)
}

func (b identity) column(c encoding.RollupColumn) identity {
	return b.number(int64(c.ID)).text(c.Name)
}

func (b identity) rate(r *Rate) identity {
	if r == nil {
		return b.flag(false)
	}
	return b.flag(true).flag(r.Counter).number(r.CounterMax).number(r.ResetValue).flag(r.DropResets)
}

func (b identity) window(w *Window) identity {
	if w == nil {
		return b.flag(false)
	}
	b = b.flag(true).text(w.Function).number(w.Range).number(w.First).number(w.Last).number(w.Step)
	g := w.Groups
	if g == nil {
		return b.flag(false)
	}
	return b.flag(true).text(g.Function).uids(g.Keys).flag(g.Without)
}

func (b identity) keyRange(r KeyRange) identity { return b.bytes(r.Start).bytes(r.Stop) }

func (b identity) uids(uids []encoding.UID) identity {
	b = b.number(int64(len(uids)))
	for _, u := range uids {
		b = b.bytes(u)
	}
	return b
}

func (b identity) number(n int64) identity { return binary.AppendVarint(b, n) }

func (b identity) bytes(v []byte) identity { return append(b.number(int64(len(v))), v...) }

func (b identity) text(s string) identity { return append(b.number(int64(len(s))), s...) }

func (b identity) flag(v bool) identity {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
