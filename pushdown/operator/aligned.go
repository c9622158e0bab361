package operator

import (
	"bytes"
	"errors"
	"slices"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/rate"
	"downpour/pushdown/store"
)

// aligned is the last stage of a part whose groups are expected to have series with points at
// the same times, as series put by one timer have. Then nothing is interpolated, and the part
// aggregates row by row what a gateway would aggregate series by series: rows come hour after
// hour, and in each hour in span order, so that every time has its values in the order in
// which OpenTSDB adds them. Only the last point of a row is kept, for rates.
//
// It checks all conditions of this. All rows of a group and hour have the same times and the
// same type. A series has rows in all of its group's hours from its first to its last: a
// hole would be interpolated. Otherwise the part ends with errUnaligned, and the plan is
// executed per series.
type aligned struct {
	plan *scanplan.Plan
	fn   *aggregate.Function

	groups map[string]*alignedGroup
	order  []*alignedGroup
	key    []byte
	bytes  int64 // of groups and members

	base     int64  // of the last row, s; -1 before the first
	lastSpan []byte // of the last row
	bits     []uint64
	offsets  []int32
	rates    []float64
	members  []alignedMember // allocated and unused
}

// errUnaligned is returned for a part whose series do not have points at the same times.
var errUnaligned = errors.New("operator: series have points at different times")

// alignedGroup is a group of the part.
type alignedGroup struct {
	key    string
	spans  []*series
	floats bool // type of what is aggregated, once there is an hour
	// The results so far.
	time []int64
	bits []uint64

	hours   int // begun
	base    int64
	open    bool
	offsets []int32   // of the open hour, ms from base
	seconds []float64 // with a rate: distances of its times from the ones before
	sums    aggregate.Aligned
}

// alignedMember is what a part with aligned aggregation knows of a series with points.
type alignedMember struct {
	firstHour, lastHour int // of its group's hours, from 1 on
	// The first and the last point so far, for rates.
	first, last encoding.Value
}

// Estimated bytes of a group and of a member, without columns.
const (
	alignedGroupBytes  = 400
	alignedMemberBytes = 64
)

// newAligned returns the aligned aggregation of a part, nil if it has none.
func newAligned(part *scanplan.Part) (*aligned, error) {
	if part.Mode != scanplan.Aligned {
		return nil, nil
	}
	fn, _ := aggregate.Lookup(part.Plan.Aggregator)
	if !aggregate.MayAlign(&part.Plan) {
		return nil, errors.New("mode aligned of a plan whose series cannot be aggregated row by row")
	}
	return &aligned{plan: &part.Plan, fn: fn, groups: map[string]*alignedGroup{}, base: -1}, nil
}

// addAligned adds a row to its group, and returns the number of its points.
func (o *partOperator) addAligned(sp *series, r *store.Row, base uint32) (points int, err error) {
	a, d := o.aligned, &o.decoder
	if err := a.checkOrder(sp, int64(base)); err != nil {
		return 0, err
	}

	ok, isFloat := false, false
	if len(r.Cells) == 1 {
		a.offsets, a.bits, isFloat, ok = onlyBits(d, &r.Cells[0], a)
	}
	if ok {
		return len(a.bits), a.add(sp, int64(base), a.offsets, a.bits, nil, isFloat)
	}

	if err := addCells(d, base, r.Cells); err != nil {
		return 0, err
	}
	o.row.Reset()
	if err := d.Finish(&o.row); err != nil || o.row.Len() == 0 {
		return 0, err
	}
	a.offsets = a.offsets[:0]
	for _, t := range o.row.Time {
		a.offsets = append(a.offsets, int32(t-int64(base)*1000))
	}
	float := o.row.Float
	if isFloat = float[0]; !slices.Contains(float, !isFloat) {
		float = nil // all of one type
	}
	return o.row.Len(), a.add(sp, int64(base), a.offsets, o.row.Bits, float, isFloat)
}

// onlyBits decodes the only cell of a row. The offsets are a copy: the decoder's own are not
// for long.
func onlyBits(d *encoding.RowDecoder, c *store.Cell, a *aligned) (offsets []int32, bits []uint64, isFloat, ok bool) {
	offsets, bits, isFloat, ok = d.OnlyBits(c.Qualifier, c.Value, a.bits)
	return append(a.offsets[:0], offsets...), bits, isFloat, ok
}

// checkOrder returns errUnaligned for a row that does not follow the last one in the order of
// hours, and in an hour of spans.
func (a *aligned) checkOrder(sp *series, base int64) error {
	if base < a.base || base == a.base && bytes.Compare(sp.id, a.lastSpan) <= 0 {
		return errUnaligned
	}
	a.base, a.lastSpan = base, sp.id
	return nil
}

// add adds the points of a row: isFloat is the type of the first, and float that of each, or nil if all have this one.
func (a *aligned) add(sp *series, base int64, offsets []int32, bits []uint64, float []bool, isFloat bool) error {
	g := a.group(sp)
	if g == nil {
		return nil // the series lacks a tag key of the group-by
	}
	// Integers and doubles at one time are aggregated in doubles; later rows may add such times.
	if a.plan.Rate == nil && (float != nil || g.hours > 0 && g.floats != isFloat) {
		return errUnaligned
	}

	if !g.open || g.base != base {
		if err := a.begin(g, base, offsets, isFloat); err != nil {
			return err
		}
	} else if !slices.Equal(g.offsets, offsets) {
		return errUnaligned
	}

	n := len(bits)
	m := sp.aligned
	switch {
	case m == nil:
		m = a.newMember(g, sp)
		m.first = encoding.Value{Float: isFloat, Bits: bits[0]}
	case m.lastHour != g.hours-1:
		return errUnaligned // a hole, which is interpolated
	}
	m.lastHour = g.hours

	if a.plan.Rate == nil {
		g.sums.Add(bits)
		return nil
	}

	// A rate before the first point of the part is the gateway's. It takes no series that
	// begins later than others, because its first rate, from 1970, counts for the times before.
	if m.firstHour > 1 {
		return errUnaligned
	}
	a.rates = slices.Grow(a.rates[:0], n)[:n]
	rate.Column(a.plan.Rate, m.last, bits, float, isFloat, g.seconds, a.rates)
	if m.firstHour == g.hours {
		a.rates[0] = 0
	}
	m.last = encoding.Value{Float: isFloat, Bits: bits[n-1]}
	if float != nil {
		m.last.Float = float[n-1]
	}
	g.sums.AddDoubles(a.rates)
	return nil
}

// group returns the group of a series, nil if it is in none.
func (a *aligned) group(sp *series) *alignedGroup {
	if sp.aligned != nil {
		return sp.group
	}

	var ok bool
	if a.key, ok = a.plan.AppendGroupKey(a.key[:0], sp.id); !ok {
		return nil
	}
	g := a.groups[string(a.key)]
	if g == nil {
		g = &alignedGroup{key: string(a.key)}
		a.groups[g.key] = g
		a.order = append(a.order, g)
		a.bytes += alignedGroupBytes + int64(len(a.key))
	}
	return g
}

// newMember makes a series a member of the group, in the group's open hour.
func (a *aligned) newMember(g *alignedGroup, sp *series) *alignedMember {
	if len(a.members) == 0 {
		a.members = make([]alignedMember, maxSpans/4)
	}
	sp.group, sp.aligned = g, &a.members[0]
	a.members = a.members[1:]
	*sp.aligned = alignedMember{firstHour: g.hours}
	g.spans = append(g.spans, sp)
	a.bytes += alignedMemberBytes
	return sp.aligned
}

// begin begins an hour of a group, whose rows have points at the given offsets.
func (a *aligned) begin(g *alignedGroup, base int64, offsets []int32, isFloat bool) error {
	// OpenTSDB fails for a rate at the beginning of 1970.
	if a.plan.Rate != nil && base*1000+int64(offsets[0]) <= 0 {
		return errUnaligned
	}
	a.end(g)

	before := g.sums.Bytes() + int64(cap(g.time)+cap(g.bits))*8
	g.floats = isFloat || a.plan.Rate != nil
	g.base, g.open = base, true
	g.hours++
	g.offsets = append(g.offsets[:0], offsets...)
	var last int64
	if len(g.time) > 0 {
		last = g.time[len(g.time)-1]
	}
	g.seconds = g.seconds[:0]
	for _, o := range offsets {
		t := base*1000 + int64(o)
		if a.plan.Rate != nil {
			g.seconds = append(g.seconds, rate.Seconds(last, t))
		}
		g.time, last = append(g.time, t), t
	}
	g.sums.Reset(a.fn, g.floats, len(offsets))
	a.bytes += g.sums.Bytes() + int64(cap(g.time)+cap(g.bits))*8 - before
	return nil
}

// end computes the results of the open hour of a group, if there is one.
func (a *aligned) end(g *alignedGroup) {
	if !g.open {
		return
	}
	n := len(g.bits)
	g.bits = slices.Grow(g.bits, len(g.offsets))[:len(g.time)]
	g.sums.Finish(g.bits[n:])
	g.open = false
}

// finishAligned ends the hours that are open and makes the batches of the part.
func (o *partOperator) finishAligned() error {
	a := o.aligned
	// Series that have annotations alone are members of their groups, too.
	slices.SortFunc(o.spans.spans, func(x, y *series) int { return bytes.Compare(x.id, y.id) })
	for _, sp := range o.spans.spans {
		if sp.aligned != nil || len(sp.annotations) == 0 {
			continue
		}
		if g := a.group(sp); g != nil {
			g.spans = append(g.spans, sp)
		}
	}

	w := batch.NewAlignedWriter(o.opts.Mem)
	defer w.Release()
	pending := 0
	for i, g := range a.order {
		if i%checkSpans == 0 {
			if err := o.memory.Check(); err != nil {
				return err
			}
		}
		a.end(g)
		row := a.row(g)
		n := alignedBytes(row)
		if err := o.memory.Reserve(int64(n)); err != nil {
			return err
		}
		w.Append(row)
		// The columns of the group are no longer needed.
		g.time, g.bits, g.offsets = nil, nil, nil
		if pending += n; pending >= o.emit.limit {
			o.emit.push(w.Record())
			pending = 0
		}
	}
	if pending > 0 {
		o.emit.push(w.Record())
	}
	o.arena.reset()
	o.done = true
	return o.checkShipped()
}

// refuseAligned ends the part with the answer that its series are not aligned.
func (o *partOperator) refuseAligned() {
	w := batch.NewAlignedWriter(o.opts.Mem)
	defer w.Release()
	w.Append(&batch.Aligned{Kind: batch.AlignedNot})
	o.emit.push(w.Record())
	o.arena.reset()
	o.done = true
}

// row returns the row of a group.
func (a *aligned) row(g *alignedGroup) *batch.Aligned {
	row := &batch.Aligned{Group: []byte(g.key), Time: g.time, Bits: g.bits}
	if g.floats {
		row.Kind = batch.AlignedFloat
	}

	slices.SortFunc(g.spans, func(x, y *series) int { return bytes.Compare(x.id, y.id) })
	for i, sp := range g.spans {
		row.Spans = append(row.Spans, sp.id)
		for _, n := range sp.annotations {
			row.NoteSpan, row.Notes = append(row.NoteSpan, int32(i)), append(row.Notes, n)
		}
		sp.annotations, sp.listed = nil, false

		m, flags := sp.aligned, uint8(0)
		switch {
		case m == nil:
			flags = batch.SpanAnnotationsOnly
		default:
			if m.firstHour > 1 {
				flags |= batch.SpanLate
			}
			if m.lastHour < g.hours {
				flags |= batch.SpanEarly
			}
		}
		row.Flags = append(row.Flags, flags)
		if a.plan.Rate == nil || m == nil {
			continue
		}
		if flags&batch.SpanLate == 0 {
			row.AddEdge(m.first)
		}
		if flags&batch.SpanEarly == 0 {
			row.AddEdge(m.last)
		}
	}
	return row
}

// alignedBytes returns about the bytes of a row in a batch.
func alignedBytes(a *batch.Aligned) int {
	n := len(a.Group) + len(a.Time)*bucketBytes + len(a.EdgeBits)*9
	for _, s := range a.Spans {
		n += len(s) + 2
	}
	for _, s := range a.Notes {
		n += len(s) + 4
	}
	return n
}
