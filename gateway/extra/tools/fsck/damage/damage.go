// Package damage draws damaged rows of the data table, for tests of what repairs them.
// A row is drawn whole, its points are laid out in cells of all forms, and then it is
// damaged; so it is known of each point whether it is good.
package damage

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"downpour/encoding"
	"downpour/gateway/extra/tools/fsck"
)

// Series is a series that rows are drawn of. Tags are tag pairs as in row keys.
type Series struct {
	Metric encoding.UID
	Tags   []byte
}

// Config says what rows are drawn.
type Config struct {
	Schema encoding.Schema
	// Series are those whose UIDs all have names. Orphans are those where one has
	// none; without any no row is an orphan.
	Series, Orphans []Series
	// First is the base time of the first row, in seconds; each row is of another hour.
	First uint32
	// BadKeys draws rows of impossible keys, too.
	BadKeys bool
	// NoAppends draws no append columns.
	NoAppends bool
}

// Point is a point that can be read.
type Point struct {
	OffsetMS int32 // from the base time
	Value    encoding.Value
}

// Row is a row as it was drawn.
type Row struct {
	fsck.Row
	// Good are the points that no repair may lose: they can be read, or at least be made
	// out, and no other value has their time. They ascend.
	Good []Point
	// Doubled are the values that can be read, at times that have several.
	Doubled map[int32][]encoding.Value
	// Orphan is set for a row of Config.Orphans, BadKey for one of an impossible key.
	Orphan, BadKey bool
	// Damage names what was done to the row.
	Damage []string
}

// Draw draws n rows. Equal seeds give equal rows. Cells have times of writing of their
// own, 1 to 10,000 ms after the hour's end.
func Draw(seed uint64, n int, cfg Config) []Row {
	d := &drawer{cfg: cfg, rng: rand.New(rand.NewPCG(seed, 0))}
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = d.row(cfg.First + uint32(i)*encoding.RowSeconds)
	}
	return rows
}

// drawer draws one row after another.
type drawer struct {
	cfg Config
	rng *rand.Rand

	base    uint32
	cells   []layout
	used    map[int32]bool             // times that have a value, of whatever kind
	values  map[int32][]encoding.Value // that can be read
	others  []fsck.Cell                // which hold no points
	damages []string
}

// layout is a cell before it becomes bytes.
type layout struct {
	entries  []entry
	appended bool
	trailer  []byte // in place of the right last byte
	tail     []byte // behind an append column
	stamp    int64
}

// entry is a point of a cell.
type entry struct {
	q     encoding.Qualifier
	value []byte
}

// row draws one row.
func (d *drawer) row(base uint32) Row {
	d.base, d.cells, d.others, d.damages = base, nil, nil, nil
	d.used, d.values = map[int32]bool{}, map[int32][]encoding.Value{}

	d.lay(d.points(1 + d.rng.IntN(30)))
	for range d.rng.IntN(4) {
		damages[d.rng.IntN(len(damages))](d)
	}

	r := Row{Doubled: map[int32][]encoding.Value{}}
	d.key(&r)
	r.Cells = d.bytes()
	r.Damage = d.damages
	for offset, values := range d.values {
		if len(values) == 1 {
			r.Good = append(r.Good, Point{offset, values[0]})
		} else {
			r.Doubled[offset] = values
		}
	}
	slices.SortFunc(r.Good, func(a, b Point) int { return cmp.Compare(a.OffsetMS, b.OffsetMS) })
	return r
}

// key draws the row's key.
func (d *drawer) key(r *Row) {
	from := d.cfg.Series
	if len(d.cfg.Orphans) > 0 && d.rng.IntN(12) == 0 {
		from, r.Orphan = d.cfg.Orphans, true
	}
	s := from[d.rng.IntN(len(from))]
	r.Key = d.cfg.Schema.AppendRowKey(nil, s.Metric, d.base, s.Tags)
	if d.cfg.BadKeys && d.rng.IntN(15) == 0 {
		r.BadKey, r.Orphan = true, false
		// With one byte more the key cannot be parsed, and fsck does not ask whether its UIDs have
		// names.
		r.Key = append(r.Key, byte(d.rng.IntN(256)))
	}
}

// offset draws a time that has no value yet, of whole seconds or not.
func (d *drawer) offset(milli bool) int32 {
	for {
		o := d.rng.Int32N(encoding.RowSeconds) * 1000
		if d.rng.IntN(4) == 0 {
			o = 78_000 + d.rng.Int32N(20)*1000 // where a qualifier looks like an append column
		}
		if milli {
			o += d.rng.Int32N(1000)
		}
		if !d.used[o] {
			d.used[o] = true
			return o
		}
	}
}

// points draws points of different times, each as it is written.
func (d *drawer) points(n int) []entry {
	var all []entry
	millis := d.rng.IntN(3) // none, some, all
	for range n {
		milli := millis == 2 || millis == 1 && d.rng.IntN(2) == 0
		e := d.entry(d.offset(milli), milli)
		d.noteValue(e)
		all = append(all, e)
	}
	return all
}

// entry draws the value of a time.
func (d *drawer) entry(offset int32, milli bool) entry {
	e := entry{q: encoding.Qualifier{OffsetMS: offset, Milli: milli}}
	switch d.rng.IntN(4) {
	case 0:
		e.q.Float, e.q.Width = true, 4
		e.value = encoding.AppendShortFloat(nil, float64(float32(d.rng.NormFloat64())))
	case 1:
		e.q.Float, e.q.Width = true, 8
		e.value = encoding.AppendDouble(nil, d.rng.NormFloat64()*math.Pi)
	default:
		e.value = encoding.AppendInt(nil, int64(d.rng.Uint64())>>(d.rng.IntN(64))) // of all lengths
		e.q.Width = len(e.value)
	}
	return e
}

// noteValue notes the value of an entry, which can be read.
func (d *drawer) noteValue(e entry) {
	v, err := encoding.ParseValue(e.q, e.value)
	if err != nil {
		panic(err) // the drawer's own fault
	}
	d.values[e.q.OffsetMS] = append(d.values[e.q.OffsetMS], v)
}

// lay puts points into cells: single ones, compacted ones, and an append column.
func (d *drawer) lay(points []entry) {
	var column []entry
	var group []entry
	form := d.rng.IntN(5) // 0 single, 1 and 2 compacted, 3 appended, 4 of all forms
	for _, e := range points {
		f := form
		if form == 4 {
			f = d.rng.IntN(4)
		}
		switch {
		case f == 1 || f == 2:
			group = append(group, e)
			if d.rng.IntN(12) == 0 { // so that a row may have several compacted cells
				d.compacted(group)
				group = nil
			}
		case f == 3 && !d.cfg.NoAppends:
			column = append(column, e)
		default:
			d.cells = append(d.cells, layout{entries: []entry{e}})
		}
	}

	if len(group) > 0 {
		d.compacted(group)
	}
	if len(column) > 0 {
		d.cells = append(d.cells, layout{entries: column, appended: true})
	}
}

// compacted adds a compacted cell of points, in order.
func (d *drawer) compacted(points []entry) {
	points = slices.Clone(points)
	slices.SortFunc(points, func(a, b entry) int { return cmp.Compare(a.q.OffsetMS, b.q.OffsetMS) })
	d.cells = append(d.cells, layout{entries: points})
}

// bytes returns the row's cells in order.
func (d *drawer) bytes() []fsck.Cell {
	var cells []fsck.Cell
	for i := range d.cells {
		x := &d.cells[i]
		c := fsck.Cell{Timestamp: d.stamp(x.stamp)}
		if x.appended {
			c.Qualifier = encoding.AppendColumn
			for _, e := range x.entries {
				c.Value = append(encoding.AppendQualifier(c.Value, e.q), e.value...)
			}
			c.Value = append(c.Value, x.tail...)
		} else {
			c.Qualifier, c.Value = x.cell()
		}
		cells = append(cells, c)
	}

	cells = append(cells, d.others...)
	slices.SortStableFunc(cells, func(a, b fsck.Cell) int { return bytes.Compare(a.Qualifier, b.Qualifier) })
	return cells
}

// cell returns the bytes of a cell that is no append column.
func (x *layout) cell() (q, v []byte) {
	var b encoding.CellBuilder
	for _, e := range x.entries {
		b.Add(e.q, e.value)
	}
	q, v = b.Cell()
	if x.trailer != nil {
		v = append(v[:len(v)-1], x.trailer...)
	}
	return q, v
}

// stamp draws a time of writing, unless one is given.
func (d *drawer) stamp(given int64) int64 {
	if given != 0 {
		return given
	}
	return int64(d.base+encoding.RowSeconds)*1000 + 1 + d.rng.Int64N(10_000)
}
