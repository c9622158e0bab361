package follow

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
	cut   int32 // ms from the base time
	rows  map[string]*tail
	round int
}

// tail is the end of one row.
type tail struct {
	cells []cellSeen // in order of qualifier
	last  int32      // the last offset, -1 for none
	moved time.Time  // when last grew
	round int
	dirty bool
}

// cellSeen is a cell as it was.
type cellSeen struct {
	offset int32 // everywhere for what is no point, or has several
	hash   uint64
}

// everywhere is the offset of cells that no range of columns leaves out.
const everywhere = math.MaxInt32

var seed = maphash.MakeSeed()

func newTailHour() *tailHour { return &tailHour{rows: map[string]*tail{}} }

// columns are the qualifiers from the cut on: points in seconds (0000 to EFFF),
// points in milliseconds (F0000000 on), and the appended column 05 00 00.
func (h *tailHour) columns() []store.KeyRange {
	if h.cut <= 0 {
		return nil
	}
	seconds := binary.BigEndian.AppendUint16(nil, uint16(h.cut/1000)<<4)
	millis := binary.BigEndian.AppendUint32(nil, 0xF0000000|uint32(h.cut)<<6)
	ranges := []store.KeyRange{{Start: seconds, Stop: []byte{0xF0}}, {Start: millis}}
	appended := encoding.AppendColumn
	if string(seconds) > string(appended) {
		stop := append(slices.Clone(appended), 0)
		ranges = append([]store.KeyRange{{Start: appended, Stop: stop}}, ranges...)
	}
	return ranges
}

func (h *tailHour) begin() { h.round++ }

// take compares the end of a row with what it was.
func (h *tailHour) take(r *store.Row, now time.Time, base int64, s *stamps) {
	t := h.rows[string(r.Key)]
	if t == nil {
		t = &tail{last: -1, moved: now}
		h.rows[string(r.Key)] = t
	}
	t.round = h.round
	cells := make([]cellSeen, len(r.Cells))
	last := t.last
	for i := range r.Cells {
		cells[i] = seen(&r.Cells[i])
		if o := cells[i].offset; o != everywhere {
			last = max(last, o)
		}
	}
	t.dirty = !slices.Equal(cells, behind(t.cells, h.cut))
	if t.dirty {
		for i := range r.Cells {
			s.see(&r.Cells[i], cells[i].offset, base)
		}
	}
	if t.cells = cells; last > t.last {
		t.last, t.moved = last, now
	}
}

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
			t.dirty = len(behind(t.cells, h.cut)) > 0
			t.cells = nil
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

// extend notes the end of a row that was read whole. One that has grown behind
// the cut is live, however slow, and is seen from the next look on.
func (h *tailHour) extend(r *store.Row, now time.Time) {
	t := h.rows[string(r.Key)]
	if t == nil {
		t = &tail{last: -1}
		h.rows[string(r.Key)] = t
	}
	for i := range r.Cells {
		if o := offsetOf(r.Cells[i].Qualifier); o != everywhere && o > t.last {
			t.last, t.moved = o, now
		}
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
