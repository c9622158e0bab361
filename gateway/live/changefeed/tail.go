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

// hourTails has the ends of the rows of one hour: their cells from the offset cut on. A
// scan compares the cells that it reads with them.
//
//	scanStarted, compareRow and compareAppended for each row, scanEnded
type hourTails struct {
	cut       int32 // ms from the base time; 0 is the whole row
	hasMillis bool  // there are points in milliseconds
	rows      map[string]*rowTail
	scan      int        // number of the present scan
	keptBytes *int64     // of the kept rows of all hours
	keptLimit int64      // of keptBytes
	cells     []keptCell // scratch: the row's cells that the present scan has read
}

// rowTail is the end of one row, or all of it.
type rowTail struct {
	// If kept is set, the whole row is in row. Only rows whose cells have one point
	// each are kept. For other rows, hashes has the cells from the cut on, in order of
	// qualifier.
	kept   bool
	row    []keptCell
	hashes []cellHash

	appended uint64    // hash of the append column, 0 if the row has none
	last     int32     // offset of the last point (ms), -1 for none
	grew     time.Time // when last became later
	scan     int       // number of the last scan that has read the row
	dirty    bool      // the row has changed since the last scanEnded
}

// cellHash identifies a cell with its content.
type cellHash struct {
	offset int32 // everywhere for a cell that has no point, or several
	hash   uint64
}

// everywhere is the offset of cells that no range of columns leaves out.
const everywhere = math.MaxInt32

var seed = maphash.MakeSeed()

// newHourTails returns the tails of an unread hour. keptBytes counts the kept rows of
// all hours, up to keptLimit.
func newHourTails(keptBytes *int64, keptLimit int64) *hourTails {
	return &hourTails{rows: map[string]*rowTail{}, keptBytes: keptBytes, keptLimit: keptLimit}
}

// columns returns the ranges of qualifiers from the cut on, nil for all.
//
// One range to the end of the row is by far the cheapest to scan. It starts among
// the qualifiers of seconds (0000 to EFFF) and so has all points in milliseconds
// (F0000000 on). An hour that has points in milliseconds is scanned by two ranges.
func (h *hourTails) columns() []store.KeyRange {
	if h.cut <= 0 {
		return nil
	}
	seconds := binary.BigEndian.AppendUint16(nil, uint16(h.cut/1000)<<4)
	if !h.hasMillis {
		return []store.KeyRange{{Start: seconds}}
	}
	millis := binary.BigEndian.AppendUint32(nil, 0xF0000000|uint32(h.cut)<<6)
	return []store.KeyRange{{Start: seconds, Stop: []byte{0xF0}}, {Start: millis}}
}

// appendColumn returns the range of the append column, 05 00 00. It is nil if columns already has
// that column: for a cut in the first minutes. It is scanned separately, because another range
// makes a scan several times as expensive.
func (h *hourTails) appendColumn() []store.KeyRange {
	if h.cut/1000<<4 <= 0x0500 {
		return nil
	}
	column := encoding.AppendColumn
	return []store.KeyRange{{Start: column, Stop: append(slices.Clone(column), 0)}}
}

// scanStarted begins a scan of the hour.
func (h *hourTails) scanStarted() { h.scan++ }

// findOrAdd returns the tail of a row; a new one has no cells.
func (h *hourTails) findOrAdd(key []byte, now time.Time) *rowTail {
	t := h.rows[string(key)]
	if t == nil {
		t = &rowTail{last: -1, grew: now}
		h.rows[string(key)] = t
	}
	return t
}

// compareRow compares the cells of a row from the cut on with what they were, and
// marks the row as dirty if they differ. base is the hour's base time in seconds.
func (h *hourTails) compareRow(r *store.Row, now time.Time, base int64, s *timestamps, d *delay) {
	t := h.findOrAdd(r.Key, now)
	t.scan = h.scan
	// Otherwise the append column is scanned separately, see compareAppended.
	if h.appendColumn() == nil {
		h.checkAppended(t, r, d)
	}

	single := false // whether every cell holds one point
	h.cells, single = appendKept(h.cells[:0], r.Cells)
	// Only qualifiers in milliseconds have 4 bytes. The scans then need a range for them.
	h.hasMillis = h.hasMillis || slices.ContainsFunc(h.cells, func(c keptCell) bool { return c.width == 4 })

	if t.kept && single {
		h.spliceKept(t)
	} else {
		h.stopKeeping(t) // a kept row has got a cell that is not of one point
		h.compareHashes(t, r)
		if single && h.cut == 0 { // the scan has read the whole row
			h.keep(t, h.cells)
		}
	}

	// The cells of a row that has not changed were observed when they were new.
	if t.dirty {
		for i := range r.Cells {
			s.observe(&r.Cells[i], offsetOf(r.Cells[i].Qualifier), base)
		}
	}

	if last := lastOffset(r, t.last); last > t.last {
		d.observeRow(r, t.last) // while t.last still shows which cells are new
		t.last, t.grew = last, now
	}
}

// lastOffset returns the last offset of a row's points, or least if that is later.
func lastOffset(r *store.Row, least int32) int32 {
	for i := range r.Cells {
		if o := offsetOf(r.Cells[i].Qualifier); o != everywhere {
			least = max(least, o)
		}
	}
	return least
}

// spliceKept puts the cells of the present scan into a kept row.
func (h *hourTails) spliceKept(t *rowTail) {
	before, changed, lost := len(t.row), false, false
	t.row, changed, lost = splice(t.row, h.cells, h.cut)
	t.dirty = t.dirty || changed
	*h.keptBytes += int64(len(t.row)-before) * keptBytes // the constant is that of one cell

	switch {
	case lost && h.cut == 0 && len(h.cells) > 0:
		h.keep(t, h.cells) // the scan has read the whole row; one without cells may have been deleted, and is read
	case lost:
		h.stopKeeping(t) // what became of the cell is not in the tail: read the row
	}
}

// keep keeps a whole row if there is room.
func (h *hourTails) keep(t *rowTail, row []keptCell) {
	h.stopKeeping(t) // its old size no longer counts
	if *h.keptBytes+int64(len(row))*keptBytes > h.keptLimit {
		return
	}
	t.kept, t.row, t.hashes = true, append([]keptCell(nil), row...), nil
	*h.keptBytes += int64(len(row)) * keptBytes
}

// stopKeeping drops a kept row. The row counts as changed then, because its tail is
// not known either.
func (h *hourTails) stopKeeping(t *rowTail) {
	if t.kept {
		*h.keptBytes -= int64(len(t.row)) * keptBytes
		t.kept, t.row, t.dirty = false, nil, true
	}
}

// close drops all kept rows.
func (h *hourTails) close() {
	for _, t := range h.rows {
		h.stopKeeping(t)
	}
}

// compareHashes compares the end of a row that is not kept. checkAppended compares the append
// column.
func (h *hourTails) compareHashes(t *rowTail, r *store.Row) {
	hashes := make([]cellHash, 0, len(r.Cells))
	for i := range r.Cells {
		if !isAppendColumn(&r.Cells[i]) {
			hashes = append(hashes, hashOf(&r.Cells[i]))
		}
	}
	hashes = hashesFrom(hashes, h.cut)
	t.dirty = t.dirty || !slices.Equal(hashes, hashesFrom(t.hashes, h.cut))
	t.hashes = hashes
}

// compareAppended compares the append column of a row, which was scanned separately.
func (h *hourTails) compareAppended(r *store.Row, now time.Time, d *delay) {
	h.checkAppended(h.findOrAdd(r.Key, now), r, d)
}

// checkAppended marks a row as dirty if its append column has changed.
func (h *hourTails) checkAppended(t *rowTail, r *store.Row, d *delay) {
	now, timestamp := uint64(0), int64(0)
	for i := range r.Cells {
		if isAppendColumn(&r.Cells[i]) {
			now, timestamp = hashOf(&r.Cells[i]).hash|1, r.Cells[i].Timestamp // 0 is no column
		}
	}
	if now == t.appended {
		return
	}

	// A column that is seen for the first time need not be new, and is no measure of delays.
	if t.appended != 0 && now != 0 {
		d.observe(timestamp)
	}
	h.stopKeeping(t) // a kept row has cells of single points only
	t.appended, t.dirty = now, true
}

func isAppendColumn(c *store.Cell) bool { return string(c.Qualifier) == string(encoding.AppendColumn) }

// hashesFrom returns the cells from offset cut on.
func hashesFrom(hashes []cellHash, cut int32) []cellHash {
	var out []cellHash
	for _, c := range hashes {
		if c.offset >= cut {
			out = append(out, c)
		}
	}
	return out
}

// hashOf hashes a cell's qualifier, value and timestamp.
func hashOf(c *store.Cell) cellHash {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(c.Qualifier)
	h.WriteByte(0) // between qualifier and value
	h.Write(c.Value)
	var timestamp [8]byte
	binary.LittleEndian.PutUint64(timestamp[:], uint64(c.Timestamp))
	h.Write(timestamp[:])
	return cellHash{offsetOf(c.Qualifier), h.Sum64()}
}

// offsetOf returns the offset (ms) of the point of a cell that has one point.
// Otherwise it returns everywhere.
func offsetOf(qualifier []byte) int32 {
	// Odd lengths are annotations, histograms and the append column; longer than one qualifier
	// is a compacted cell.
	if len(qualifier) == 0 || len(qualifier)%2 != 0 || len(qualifier) != encoding.QualifierWidth(qualifier[0]) {
		return everywhere
	}
	q, _, err := encoding.ParseQualifier(qualifier)
	if err != nil {
		return everywhere
	}
	return q.OffsetMS
}

// scanEnded returns the keys of the rows that have changed, and sets the cut of the
// next scan: before the last point of the slowest live series.
func (h *hourTails) scanEnded(now time.Time, cfg *Poll) (changed [][]byte) {
	slowest := int32(-1)
	for key, t := range h.rows {
		if t.scan != h.scan {
			h.rowEmpty(t)
		}
		if t.dirty {
			changed = append(changed, []byte(key))
			t.dirty = false
		}
		if t.last >= 0 && now.Sub(t.grew) < cfg.Alive && (slowest < 0 || t.last < slowest) {
			slowest = t.last
		}
	}

	// Whole seconds, so that the ranges of seconds and of milliseconds begin at the
	// same time.
	h.cut = max(0, slowest-int32(cfg.Overlap.Milliseconds()))
	h.cut -= h.cut % 1000
	return changed
}

// rowEmpty records that the scan has found no cells of a row from the cut on.
func (h *hourTails) rowEmpty(t *rowTail) {
	if t.kept {
		h.cells = h.cells[:0]
		h.spliceKept(t)
		return
	}
	t.dirty = t.dirty || len(hashesFrom(t.hashes, h.cut)) > 0
	t.hashes = nil
}

// rowRead takes in a row that was read whole. If it has grown before the cut, the
// series is live, but slower than was known: the next scan reads whole rows and
// sets another cut.
func (h *hourTails) rowRead(r *store.Row, now time.Time) {
	t := h.findOrAdd(r.Key, time.Time{}) // a row that no scan has seen has not grown yet
	if last := lastOffset(r, t.last); last > t.last {
		t.last, t.grew = last, now
	}

	single := false
	if h.cells, single = appendKept(h.cells[:0], r.Cells); single {
		h.keep(t, h.cells)
		t.dirty = false // the view takes in this very row
	}
	if t.grew.Equal(now) && t.last >= 0 && t.last < h.cut {
		h.cut = 0
	}
}

// timestamps judges by new cells whether cells carry the time of their data instead
// of the time of their writing.
type timestamps struct {
	cells    int  // checked
	dataTime int  // of them, those that carry the time of their point
	reported bool // see firstReport
}

const (
	// enoughTimestamps is how many cells are checked before a decision.
	enoughTimestamps = 8
	// maxTimestamps is after how many cells the judgement is final.
	maxTimestamps = 1 << 20
)

// observe counts a cell, and whether its timestamp is the time of its point, which has
// the given offset (ms) from base (s).
func (s *timestamps) observe(c *store.Cell, offset int32, base int64) {
	if offset == everywhere || s.cells >= maxTimestamps {
		return
	}
	s.cells++
	if c.Timestamp == base*1000+int64(offset) {
		s.dataTime++
	}
}

// areDataTime reports whether most cells carry data time. One in a thousand does by chance, if it
// is written in the millisecond of its point.
func (s *timestamps) areDataTime() bool { return s.cells >= enoughTimestamps && s.dataTime*2 > s.cells }

// firstReport returns true at its first call.
func (s *timestamps) firstReport() bool {
	first := !s.reported
	s.reported = true
	return first
}
