package damage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/gateway/extra/tools/fsck"
)

// damages are what can be done to a row. One that does not fit the row does nothing.
var damages = []func(*drawer){
	(*drawer).unknownColumn, (*drawer).otherObject, (*drawer).badSingle, (*drawer).badBesideGood, (*drawer).paddedFloat,
	(*drawer).wrongWidth, (*drawer).longInteger, (*drawer).longAndWrong, (*drawer).duplicate, (*drawer).duplicateCell,
	(*drawer).disorder, (*drawer).trailer, (*drawer).uncuttable, (*drawer).badInside, (*drawer).beyondTheHour,
	(*drawer).brokenColumn, (*drawer).badInColumn, (*drawer).overwritten,
}

// did notes a damage.
func (d *drawer) did(format string, args ...any) {
	d.damages = append(d.damages, fmt.Sprintf(format, args...))
}

// taken says that a cell of the row has the qualifier.
func (d *drawer) taken(q []byte) bool {
	has := func(x *layout) bool {
		got, _ := x.cell()
		return !x.appended && bytes.Equal(got, q)
	}
	for i := range d.cells {
		if has(&d.cells[i]) {
			return true
		}
	}
	return slices.ContainsFunc(d.others, func(x fsck.Cell) bool { return bytes.Equal(x.Qualifier, q) })
}

// other adds a cell that holds no point that can be read.
func (d *drawer) other(q, v []byte) bool {
	if d.taken(q) {
		return false
	}
	d.others = append(d.others, fsck.Cell{Qualifier: q, Value: v, Timestamp: d.stamp(0)})
	return true
}

// random returns n random bytes.
func (d *drawer) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(d.rng.IntN(256))
	}
	return b
}

// unknownColumn adds a cell that nothing writes.
func (d *drawer) unknownColumn() {
	q := d.random([]int{1, 7, 9, 2}[d.rng.IntN(4)]) // lengths that no kind of cell has, and one that some have
	if len(q) == 2 {
		q[0] |= 0xF0 // half of a qualifier in ms
	}
	if d.other(q, d.random(d.rng.IntN(9))) {
		d.did("unknown column % X", q)
	}
}

// otherObject adds an annotation, a histogram or what may come: no damage at all.
func (d *drawer) otherObject() {
	q := []byte{[]byte{encoding.PrefixAnnotation, encoding.PrefixHistogram, 0x09}[d.rng.IntN(3)], 0,
		byte(d.rng.IntN(256))}
	d.other(q, []byte(`{"startTime":1356998400}`))
}

// bad returns a single cell of a time whose value cannot be read.
func (d *drawer) bad(offset int32, milli bool) (q, v []byte, what string) {
	e := encoding.Qualifier{OffsetMS: offset, Milli: milli}
	switch d.rng.IntN(3) {
	case 0:
		e.Float, e.Width = true, 4
		v = append([]byte{0x11, 0x22, 0x33, byte(d.rng.IntN(256))}, d.random(4)...) // no padding: that is zeros or FF
		what = "float of 4 bytes with other bytes before it"
	case 1:
		e.Float, e.Width = true, 4
		v, what = d.random([]int{0, 1, 2, 3, 5, 6, 7, 9}[d.rng.IntN(8)]), "float of no length"
	default:
		e.Width = 1 << d.rng.IntN(4)
		v, what = d.random([]int{0, 3, 5, 6, 7, 9}[d.rng.IntN(6)]), "integer of no length"
	}
	return encoding.AppendQualifier(nil, e), v, what
}

// badSingle adds a value that cannot be read, at a time of its own.
func (d *drawer) badSingle() {
	milli := d.rng.IntN(3) == 0
	if q, v, what := d.bad(d.offset(milli), milli); d.other(q, v) {
		d.did("%s, % X = % X", what, q, v)
	}
}

// badBesideGood adds an older value that cannot be read at the time of a good one.
func (d *drawer) badBesideGood() {
	e, ok := d.any()
	if !ok {
		return
	}
	q, v, what := d.bad(e.q.OffsetMS, e.q.Milli)
	if d.taken(q) {
		return
	}
	d.others = append(d.others, fsck.Cell{Qualifier: q, Value: v, Timestamp: int64(d.base)*1000 + 1})
	d.did("older %s beside a good value, % X = % X", what, q, v)
}

// any returns one of the row's points that can be read.
func (d *drawer) any() (entry, bool) {
	var all []entry
	for i := range d.cells {
		all = append(all, d.cells[i].entries...)
	}
	all = slices.DeleteFunc(all, func(e entry) bool { return len(d.values[e.q.OffsetMS]) == 0 })
	if len(all) == 0 {
		return entry{}, false
	}
	return all[d.rng.IntN(len(all))], true
}

// raw adds a single cell as it is given, whose value can be made out.
func (d *drawer) raw(offset int32, q, v []byte, value encoding.Value) {
	if d.other(q, v) {
		d.values[offset] = append(d.values[offset], value)
		d.did("% X = % X", q, v)
	}
}

// paddedFloat adds a float on 4 bytes that is stored on 8.
func (d *drawer) paddedFloat() {
	offset := d.offset(false)
	short := encoding.AppendShortFloat(nil, float64(float32(d.rng.NormFloat64())))
	head := []byte{0, 0, 0, 0}
	if d.rng.IntN(2) == 0 {
		head = []byte{0xFF, 0xFF, 0xFF, 0xFF}
	}
	q := encoding.Qualifier{OffsetMS: offset, Float: true, Width: 4}
	value, _ := encoding.ParseValue(q, short) // 4 bytes are always a float
	d.raw(offset, encoding.AppendQualifier(nil, q), append(head, short...), value)
}

// wrongWidth adds a value of another length than its qualifier says.
func (d *drawer) wrongWidth() {
	offset := d.offset(false)
	q := encoding.Qualifier{OffsetMS: offset, Width: 8}
	v := d.random([]int{1, 2, 4}[d.rng.IntN(3)])
	if d.rng.IntN(3) == 0 {
		q.Float = true
		v = encoding.AppendShortFloat(nil, float64(float32(d.rng.NormFloat64())))
	}
	value, _ := encoding.ParseValue(encoding.Qualifier{Float: q.Float, Width: len(v)}, v)
	d.raw(offset, encoding.AppendQualifier(nil, q), v, value)
}

// longInteger adds an integer on 8 bytes that fits fewer.
func (d *drawer) longInteger() {
	offset := d.offset(false)
	n := int64(d.rng.IntN(1<<20)) - 1<<19
	q := encoding.Qualifier{OffsetMS: offset, Width: 8}
	d.raw(offset, encoding.AppendQualifier(nil, q), binary.BigEndian.AppendUint64(nil, uint64(n)), encoding.IntValue(n))
}

// longAndWrong adds two values of one time that both belong under the same qualifier: an
// integer on 8 bytes that fits fewer, and one of as many bytes under a third qualifier.
func (d *drawer) longAndWrong() {
	offset := d.offset(false)
	for _, width := range []int{4, 8} { // what the qualifier says
		n := int64(d.rng.IntN(100))
		v := []byte{byte(n)}
		if width == 8 {
			v = binary.BigEndian.AppendUint64(nil, uint64(n))
		}
		q := encoding.Qualifier{OffsetMS: offset, Width: width}
		d.raw(offset, encoding.AppendQualifier(nil, q), v, encoding.IntValue(n))
	}
}

// duplicate adds another value at the time of one, in a cell of its own.
func (d *drawer) duplicate() {
	e, ok := d.any()
	if !ok {
		return
	}
	milli := e.q.Milli || d.rng.IntN(2) == 0
	again := d.entry(e.q.OffsetMS, milli)
	if q := encoding.AppendQualifier(nil, again.q); !d.taken(q) {
		d.cells = append(d.cells, layout{entries: []entry{again}})
		d.noteValue(again)
		d.did("duplicate at %d ms, % X", e.q.OffsetMS, q)
	}
}

// duplicateCell adds a compacted cell of points that the row has, some with other values.
func (d *drawer) duplicateCell() {
	var again []entry
	for range 2 + d.rng.IntN(3) {
		e, ok := d.any()
		// A compacted cell has a time once.
		if !ok || slices.ContainsFunc(again, func(o entry) bool { return o.q.OffsetMS == e.q.OffsetMS }) {
			continue
		}
		if d.rng.IntN(2) == 0 {
			e = d.entry(e.q.OffsetMS, e.q.Milli)
		}
		again = append(again, e)
	}
	x := layout{entries: again}
	slices.SortFunc(x.entries, func(a, b entry) int { return int(a.q.OffsetMS - b.q.OffsetMS) })
	if q, _ := x.cell(); len(again) > 0 && !d.taken(q) {
		d.cells = append(d.cells, x)
		for _, e := range again {
			d.noteValue(e)
		}
		d.did("%d values again in % X", len(again), q)
	}
}

// compactedCell returns one of the row's compacted cells, nil if there is none.
func (d *drawer) compactedCell() *layout {
	var all []*layout
	for i := range d.cells {
		if x := &d.cells[i]; !x.appended && len(x.entries) > 1 {
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[d.rng.IntN(len(all))]
}

// change changes a cell, unless another has its qualifier then.
func (d *drawer) change(x *layout, to layout) bool {
	if q, _ := to.cell(); d.taken(q) {
		return false
	}
	*x = to
	return true
}

// disorder shuffles the points of a compacted cell.
func (d *drawer) disorder() {
	x := d.compactedCell()
	if x == nil {
		return
	}
	to := *x
	to.entries = slices.Clone(x.entries)
	d.rng.Shuffle(len(to.entries), func(i, j int) { to.entries[i], to.entries[j] = to.entries[j], to.entries[i] })
	if d.change(x, to) {
		d.did("points out of order")
	}
}

// trailer gives a compacted cell another last byte.
func (d *drawer) trailer() {
	if x := d.compactedCell(); x != nil {
		x.trailer = []byte{byte(2 + d.rng.IntN(126))}
		d.did("last byte % X", x.trailer)
	}
}

// uncuttable adds a compacted cell of other times whose value has too few or too many
// bytes.
func (d *drawer) uncuttable() {
	var x layout
	for range 2 + d.rng.IntN(4) {
		x.entries = append(x.entries, d.entry(d.offset(false), false))
	}
	q, v := x.cell()
	// The last byte is right, so that only the lengths are wrong.
	v[len(v)-1] = 0
	switch d.rng.IntN(3) {
	case 0:
		v = v[:d.rng.IntN(len(v))]
		if n := len(v); n > 0 {
			v[n-1] = 0
		}
	case 1:
		v = append(v, 0)
	default:
		q = append(q, 0xF0, 0x00) // half of a qualifier in ms
	}
	if d.other(q, v) {
		d.did("compacted cell that cannot be cut, % X", q)
	}
}

// badInside puts a value of no length among the points of a compacted cell.
func (d *drawer) badInside() {
	if x := d.compactedCell(); x != nil {
		q := encoding.Qualifier{OffsetMS: d.offset(false), Width: 3}
		d.inject(x, entry{q, d.random(3)}, "value of 3 bytes in a compacted cell")
	}
}

// inject puts an entry among those of a cell, where its time belongs.
func (d *drawer) inject(x *layout, e entry, what string) {
	to := *x
	at, _ := slices.BinarySearchFunc(to.entries, e, func(a, b entry) int { return int(a.q.OffsetMS - b.q.OffsetMS) })
	to.entries = slices.Insert(slices.Clone(x.entries), at, e)
	if x.appended {
		*x = to
		d.did("%s", what)
	} else if d.change(x, to) {
		d.did("%s", what)
	}
}

// beyondTheHour adds a point at a time that no row has, in a cell of its own or among
// others.
func (d *drawer) beyondTheHour() {
	e := entry{encoding.Qualifier{OffsetMS: 3_700_000, Width: 1}, d.random(1)}
	if x := d.compactedCell(); x != nil && d.rng.IntN(2) == 0 {
		d.inject(x, e, "point beyond the hour in a compacted cell")
		return
	}
	if q := encoding.AppendQualifier(nil, e.q); d.other(q, e.value) {
		d.did("point beyond the hour")
	}
}

// column returns the row's append column, nil if it has none or is damaged.
func (d *drawer) column() *layout {
	for i := range d.cells {
		if x := &d.cells[i]; x.appended && x.tail == nil {
			return x
		}
	}
	return nil
}

// brokenColumn puts bytes behind an append column that are the beginning of an entry.
func (d *drawer) brokenColumn() {
	x := d.column()
	if x == nil {
		return
	}
	whole := encoding.AppendEntry(nil, encoding.Qualifier{OffsetMS: d.offset(false), Width: 8}, d.random(8))
	x.tail = whole[:1+d.rng.IntN(len(whole)-1)]
	d.did("append column ends with % X", x.tail)
}

// badInColumn puts a value of no length into an append column.
func (d *drawer) badInColumn() {
	// Behind it the column must come out at its end: then it is one bad entry, and no
	// broken column.
	if x := d.column(); x != nil {
		q := encoding.Qualifier{OffsetMS: d.offset(false), Width: 3}
		d.inject(x, entry{q, d.random(3)}, "value of 3 bytes in an append column")
		x.tail = []byte{} // so that column leaves it out from now on
	}
}

// overwritten appends another value of a time to an append column: it counts, and is no
// damage.
func (d *drawer) overwritten() {
	x := d.column()
	if x == nil {
		return
	}
	old := x.entries[d.rng.IntN(len(x.entries))]
	// Of several values it would not be known which one this entry replaces.
	if len(d.values[old.q.OffsetMS]) != 1 {
		return
	}
	e := d.entry(old.q.OffsetMS, old.q.Milli)
	x.entries = append(slices.Clone(x.entries), e)
	d.values[old.q.OffsetMS] = nil
	d.noteValue(e)
}
