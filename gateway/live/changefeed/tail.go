package changefeed

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// tailHour is how the rows of one hour end: their cells from offset cut on.
type tailHour struct {
	cut    int32 // ms from the base time
	millis bool  // there are points in milliseconds
	rows   map[string]*tail
	round  int
	kept   *int64     // bytes kept of all hours
	limit  int64      // of kept
	last   []keptCell // scratch
}

// tail is the end of one row, or all of it.
type tail struct {
	// row is the whole row, if whole: one whose cells have one point each. Of
	// other rows cells is the end, by hashes, in order of qualifier.
	whole    bool
	row      []keptCell
	cells    []cellSeen
	appended uint64    // hash of the column of appended points, 0 for none
	last     int32     // the last offset, -1 for none
	moved    time.Time // when last grew
	round    int
	dirty    bool
}

// cellSeen is a cell as it was.
type cellSeen struct {
	offset int32 // everywhere for what is no point, or has several
	hash   uint64
}

// everywhere is the offset of cells that no range of columns leaves out.
const everywhere = math.MaxInt32

var seed = maphash.MakeSeed()

func newTailHour(kept *int64, limit int64) *tailHour {
	return &tailHour{rows: map[string]*tail{}, kept: kept, limit: limit}
}

// columns are the qualifiers from the cut on. One range to the end of the row is
// by far the cheapest to scan, and has the points in milliseconds (F0000000 on)
// too; all of them, so that an hour that has any is asked for two: seconds (0000
// to EFFF) and milliseconds.
func (h *tailHour) columns() []store.KeyRange {
	if h.cut <= 0 {
		return nil
	}
	seconds := binary.BigEndian.AppendUint16(nil, uint16(h.cut/1000)<<4)
	if !h.millis {
		return []store.KeyRange{{Start: seconds}}
	}
	millis := binary.BigEndian.AppendUint32(nil, 0xF0000000|uint32(h.cut)<<6)
	return []store.KeyRange{{Start: seconds, Stop: []byte{0xF0}}, {Start: millis}}
}

// appended is the column 05 00 00 of appended points, which lies before the
// columns of all but the first minutes; nil where those have it. It is a scan of
// its own, for a range more in one scan costs several times as much.
func (h *tailHour) appended() []store.KeyRange {
	if h.cut/1000<<4 <= 0x0500 {
		return nil
	}
	column := encoding.AppendColumn
	return []store.KeyRange{{Start: column, Stop: append(slices.Clone(column), 0)}}
}

func (h *tailHour) begin() { h.round++ }

// compareRow compares the end of a row with what it was.
func (h *tailHour) compareRow(r *store.Row, now time.Time, base int64, s *stamps, d *delay) {
	t := h.rows[string(r.Key)]
	if t == nil {
		t = &tail{last: -1, moved: now}
		h.rows[string(r.Key)] = t
	}
	t.round = h.round
	if h.appended() == nil {
		h.see(t, r, d)
	}
	single := false
	h.last, single = keep(h.last[:0], r.Cells)
	h.millis = h.millis || slices.ContainsFunc(h.last, func(c keptCell) bool { return c.width == 4 })
	switch {
	case t.whole && single:
		h.splice(t)
	default:
		h.forget(t)
		h.compare(t, r)
		if single && h.cut == 0 {
			h.hold(t, h.last)
		}
	}
	if t.dirty {
		for i := range r.Cells {
			s.see(&r.Cells[i], offsetOf(r.Cells[i].Qualifier), base)
		}
	}
	if last := lastOf(r, t.last); last > t.last {
		d.grown(r, t.last)
		t.last, t.moved = last, now
	}
}

// lastOf is the last offset of the row's points, or least if that is later.
func lastOf(r *store.Row, least int32) int32 {
	for i := range r.Cells {
		if o := offsetOf(r.Cells[i].Qualifier); o != everywhere {
			least = max(least, o)
		}
	}
	return least
}

// splice takes the end of a row into what is kept of it. One that has lost cells
// must be read.
func (h *tailHour) splice(t *tail) {
	before, changed, lost := len(t.row), false, false
	t.row, changed, lost = splice(t.row, h.last, h.cut)
	t.dirty = t.dirty || changed
	*h.kept += int64(len(t.row)-before) * keptBytes
	switch {
	case lost && h.cut == 0 && len(h.last) > 0:
		h.hold(t, h.last) // that was all of it
	case lost:
		h.forget(t)
	}
}

// hold keeps a whole row if there is room.
func (h *tailHour) hold(t *tail, row []keptCell) {
	h.forget(t)
	if *h.kept+int64(len(row))*keptBytes > h.limit {
		return
	}
	t.whole, t.row, t.cells = true, append([]keptCell(nil), row...), nil
	*h.kept += int64(len(row)) * keptBytes
}

// forget keeps nothing of a row but its end, which has changed if it was kept.
func (h *tailHour) forget(t *tail) {
	if t.whole {
		*h.kept -= int64(len(t.row)) * keptBytes
		t.whole, t.row, t.dirty = false, nil, true
	}
}

// drop forgets all rows.
func (h *tailHour) drop() {
	for _, t := range h.rows {
		h.forget(t)
	}
}

// compare compares the end of a row that is not kept.
func (h *tailHour) compare(t *tail, r *store.Row) {
	cells := make([]cellSeen, 0, len(r.Cells))
	for i := range r.Cells {
		if !isAppended(&r.Cells[i]) {
			cells = append(cells, seen(&r.Cells[i]))
		}
	}
	cells = behind(cells, h.cut)
	t.dirty = t.dirty || !slices.Equal(cells, behind(t.cells, h.cut))
	t.cells = cells
}

// compareAppended compares the column of appended points.
func (h *tailHour) compareAppended(r *store.Row, now time.Time, d *delay) {
	t := h.rows[string(r.Key)]
	if t == nil {
		t = &tail{last: -1, moved: now}
		h.rows[string(r.Key)] = t
	}
	h.see(t, r, d)
}

// see notes the column of appended points, if the row has it.
func (h *tailHour) see(t *tail, r *store.Row, d *delay) {
	now, stamp := uint64(0), int64(0)
	for i := range r.Cells {
		if isAppended(&r.Cells[i]) {
			now, stamp = seen(&r.Cells[i]).hash|1, r.Cells[i].Timestamp
		}
	}
	if now != t.appended {
		if t.appended != 0 && now != 0 {
			d.see(stamp)
		}
		h.forget(t)
		t.appended, t.dirty = now, true
	}
}

func isAppended(c *store.Cell) bool { return string(c.Qualifier) == string(encoding.AppendColumn) }

// behind are the cells from offset cut on.
func behind(cells []cellSeen, cut int32) []cellSeen {
	var out []cellSeen
	for _, c := range cells {
		if c.offset >= cut {
			out = append(out, c)
		}
	}
	return out
}

// seen reduces a cell to what tells it from others.
func seen(c *store.Cell) cellSeen {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(c.Qualifier)
	h.WriteByte(0)
	h.Write(c.Value)
	var stamp [8]byte
	binary.LittleEndian.PutUint64(stamp[:], uint64(c.Timestamp))
	h.Write(stamp[:])
	return cellSeen{offsetOf(c.Qualifier), h.Sum64()}
}

// offsetOf is the offset of the one point of a cell, else everywhere.
func offsetOf(qualifier []byte) int32 {
	if len(qualifier) == 0 || len(qualifier)%2 != 0 || len(qualifier) != encoding.QualifierWidth(qualifier[0]) {
		return everywhere
	}
	q, _, err := encoding.ParseQualifier(qualifier)
	if err != nil {
		return everywhere
	}
	return q.OffsetMS
}

// finish lists the rows that have changed, and chooses where the next look
// begins: before the slowest of the live series.
func (h *tailHour) finish(now time.Time, cfg *Poll) (keys [][]byte) {
	next := int32(-1)
	for key, t := range h.rows {
		if t.round != h.round { // nothing there any more from the cut on
			h.ended(t)
		}
		if t.dirty {
			keys = append(keys, []byte(key))
			t.dirty = false
		}
		if t.last >= 0 && now.Sub(t.moved) < cfg.Alive && (next < 0 || t.last < next) {
			next = t.last
		}
	}
	h.cut = max(0, next-int32(cfg.Overlap.Milliseconds()))
	h.cut -= h.cut % 1000 // the ranges of seconds and of milliseconds begin alike
	return keys
}

// ended takes in that a row has no cells from the cut on.
func (h *tailHour) ended(t *tail) {
	if t.whole {
		h.last = h.last[:0]
		h.splice(t)
		return
	}
	t.dirty = t.dirty || len(behind(t.cells, h.cut)) > 0
	t.cells = nil
}

// extend takes in a row that was read whole. One that has grown behind the cut is
// live, however slow, and is seen from the next look on.
func (h *tailHour) extend(r *store.Row, now time.Time) {
	t := h.rows[string(r.Key)]
	if t == nil {
		t = &tail{last: -1}
		h.rows[string(r.Key)] = t
	}
	if last := lastOf(r, t.last); last > t.last {
		t.last, t.moved = last, now
	}
	single := false
	if h.last, single = keep(h.last[:0], r.Cells); single {
		h.hold(t, h.last)
		t.dirty = false
	}
	if t.moved.Equal(now) && t.last >= 0 && t.last < h.cut {
		h.cut = 0
	}
}

// stamps judges by new cells whether they carry the time of their data.
type stamps struct {
	seen, equal int
	told        bool
}

// enoughStamps is how many cells are looked at before judging.
const enoughStamps = 8

func (s *stamps) see(c *store.Cell, offset int32, base int64) {
	if offset == everywhere || s.seen >= 1<<20 {
		return
	}
	s.seen++
	if c.Timestamp == base*1000+int64(offset) {
		s.equal++
	}
}

// ofData tells whether cells carry data time: by chance one in a thousand does.
func (s *stamps) ofData() bool { return s.seen >= enoughStamps && s.equal*2 > s.seen }

// tell returns true once.
func (s *stamps) tell() bool {
	first := !s.told
	s.told = true
	return first
}
