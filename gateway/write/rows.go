package write

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"downpour/encoding"
)

// rows are the points of a batch: a log of entries as they arrived, and what it
// takes to deal them out to their rows. The memory goes on from batch to batch,
// but for that of the keys.
type rows struct {
	index map[string]uint32 // by row key: place in list
	list  []row
	log   []byte // runs: place in list (4 bytes), length (2 bytes), entries
	run   int    // where the last run begins
	keys  []byte // what is left of a block that keys are cut from

	values []byte // the entries row by row, once dealt out
	cells  cells
}

// row is one row of a batch.
type row struct {
	series *SeriesKey
	base   uint32
	key    []byte
	size   int // bytes of its entries
	points int
	end    int // of its entries in values
}

// runHead is the length of a run's place and length.
const runHead = 6

func newRows() *rows { return &rows{index: map[string]uint32{}} }

// add puts an entry into the row of a series and base time, and returns by how
// much the batch grows.
func (r *rows) add(schema *encoding.Schema, s *SeriesKey, base uint32, entry []byte) (grown int) {
	at := s.place.Load()
	if int(at) >= len(r.list) || r.list[at].series != s || r.list[at].base != base {
		at, grown = r.find(schema, s, base)
		s.place.Store(at)
	}
	r.list[at].size += len(entry)
	r.list[at].points++
	r.write(at, entry)
	return grown + len(entry)
}

// rowCost is what a row counts for beside its key and entries.
const rowCost = 64

// find looks a row up by its key: the series may be known under two spellings.
func (r *rows) find(schema *encoding.Schema, s *SeriesKey, base uint32) (at uint32, grown int) {
	var buf [96]byte
	key := schema.AppendRowKey(buf[:0], s.Metric, base, s.Tags)
	if at, ok := r.index[string(key)]; ok {
		return at, 0
	}
	at, kept := uint32(len(r.list)), r.keep(key)
	r.index[unsafe.String(unsafe.SliceData(kept), len(kept))] = at
	r.list = append(r.list, row{series: s, base: base, key: kept})
	return at, len(kept) + rowCost
}

// keyBlock is how much memory is taken for keys at a time.
const keyBlock = 16 << 10

// keep copies a key. A store may still hold a key when its batch is done, so
// its memory is not used again.
func (r *rows) keep(key []byte) []byte {
	if len(r.keys) < len(key) {
		r.keys = make([]byte, max(keyBlock, len(key)))
	}
	n := copy(r.keys, key)
	kept := r.keys[:n:n]
	r.keys = r.keys[n:]
	return kept
}

// write adds an entry to the log: to the last run, if that is of the same row.
func (r *rows) write(at uint32, entry []byte) {
	if r.run < len(r.log) && binary.LittleEndian.Uint32(r.log[r.run:]) == at {
		length := r.log[r.run+4 : r.run+runHead]
		if n := int(binary.LittleEndian.Uint16(length)) + len(entry); n < 1<<16 {
			binary.LittleEndian.PutUint16(length, uint16(n))
			r.log = append(r.log, entry...)
			return
		}
	}
	r.run = len(r.log)
	r.log = binary.LittleEndian.AppendUint32(r.log, at)
	r.log = binary.LittleEndian.AppendUint16(r.log, uint16(len(entry)))
	r.log = append(r.log, entry...)
}

// deal sorts the entries by row; those of a row stay in order.
func (r *rows) deal() {
	total := 0
	for i := range r.list {
		r.list[i].end = total
		total += r.list[i].size
	}
	r.values = slices.Grow(r.values[:0], total)[:total]
	for log := r.log; len(log) > 0; {
		to, n := &r.list[binary.LittleEndian.Uint32(log)], int(binary.LittleEndian.Uint16(log[4:]))
		to.end += copy(r.values[to.end:], log[runHead:runHead+n])
		log = log[runHead+n:]
	}
}

// entries are those of row i, dealt out.
func (r *rows) entries(i int) []byte {
	to := &r.list[i]
	return r.values[to.end-to.size : to.end : to.end]
}

// points counts them.
func (r *rows) points() (n int) {
	for i := range r.list {
		n += r.list[i].points
	}
	return n
}

// reset empties r for another batch.
func (r *rows) reset() {
	clear(r.index)
	clear(r.list)
	r.list, r.log, r.run = r.list[:0], r.log[:0], 0
	r.cells.reset()
}
