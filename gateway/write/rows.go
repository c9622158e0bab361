package write

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unsafe"

	"downpour/encoding"
)

// rows are the points of a batch. Entries are first appended to a log in the order
// of their arrival, because a row's entries may arrive between those of many other
// rows. groupByRow then sorts them by row.
//
// The log is a list of runs. A run holds consecutive entries of one row:
//
//	row, 4 bytes   index in list
//	size, 2 bytes  of the entries that follow
//	entries        qualifier and value of each
//
// The memory is reused from batch to batch, except that of the keys.
type rows struct {
	index   map[string]uint32 // row key to index in list
	list    []row
	log     []byte
	lastRun int // where the last run starts in log
	// recent is the index in list of the row that a point of some hash went to last: a
	// guess for the next point, which is checked. It may be of an earlier batch.
	recent [recentRows]uint32
	keys   []byte // the unused rest of a block that keys are cut from

	values []byte // the entries row by row; set by groupByRow
	cells  cells

	histograms []histogramCell // in the order of their arrival
}

// addition is what is added to a row: a point as an entry, or a histogram, which is a
// cell of its own.
type addition struct {
	entry     []byte
	histogram *histogramCell // nil for a point
}

// row is one row of a batch.
type row struct {
	// metric is the first byte of a SeriesKey's Metric, by whose address that series is known
	// again. The byte does not change while anything refers to it.
	metric *byte
	base   uint32
	key    []byte
	size   int // bytes of its entries
	points int
	end    int // where its entries end in values
}

// recentRows is more than the rows that a batch usually has; a power of two.
const recentRows = 4096

// runHeader is the length of a run's row and size.
const runHeader = 6

func newRows() *rows { return &rows{index: map[string]uint32{}} }

// add adds a point or a histogram to the row of a series and base time, and returns by
// how many bytes the batch grows.
func (r *rows) add(schema *encoding.Schema, s *SeriesKey, base uint32, what addition) (grown int) {
	// The row of the series' last point is most often also the row of this one.
	recent := &r.recent[s.rowHash(base)%recentRows]
	at := *recent
	if int(at) >= len(r.list) || !r.list[at].is(schema, s, base) {
		at, grown = r.findOrAdd(schema, s, base)
		*recent = at
	}

	r.list[at].points++
	if what.histogram != nil {
		return grown + r.addHistogram(at, what.histogram)
	}

	entry := what.entry
	r.list[at].size += len(entry)
	r.appendToLog(at, entry)
	return grown + len(entry)
}

// is reports whether a row is that of a series and base time.
func (r *row) is(schema *encoding.Schema, s *SeriesKey, base uint32) bool {
	// Shards add under a lock, so the usual case reads no key.
	if r.base != base || r.metric == &s.Metric[0] {
		return r.base == base
	}

	// One series can have several SeriesKeys, cached under two spellings for example.
	key := r.key[schema.SaltWidth:]
	metric, tags := key[:len(s.Metric)], key[len(s.Metric)+encoding.BaseTimeWidth:]
	return bytes.Equal(tags, s.Tags) && bytes.Equal(metric, s.Metric)
}

// rowCost is what a row counts in a batch's size, beside its key and entries.
const rowCost = 64

// findOrAdd returns the index of a row and adds the row if it is new.
func (r *rows) findOrAdd(schema *encoding.Schema, s *SeriesKey, base uint32) (at uint32, grown int) {
	var buf [96]byte // room for 14 tags of 6 bytes; a longer key is allocated
	key := schema.AppendRowKey(buf[:0], s.Metric, base, s.Tags)
	if at, ok := r.index[string(key)]; ok {
		return at, 0
	}

	at, kept := uint32(len(r.list)), r.copyKey(key)
	// The map's key may share these bytes: nothing writes to them again, see copyKey.
	r.index[unsafe.String(unsafe.SliceData(kept), len(kept))] = at
	r.list = append(r.list, row{metric: &s.Metric[0], base: base, key: kept})
	return at, len(kept) + rowCost
}

// keyBlock is how much memory is allocated for keys at a time.
const keyBlock = 16 << 10

// copyKey copies a key into memory that is never reused: a store may still hold
// the key when its batch is done.
func (r *rows) copyKey(key []byte) []byte {
	if len(r.keys) < len(key) {
		r.keys = make([]byte, max(keyBlock, len(key)))
	}
	n := copy(r.keys, key)
	kept := r.keys[:n:n]
	r.keys = r.keys[n:]
	return kept
}

// appendToLog adds an entry to the last run if that is of the same row and has
// room, else it begins a run.
func (r *rows) appendToLog(at uint32, entry []byte) {
	if r.lastRun < len(r.log) && binary.LittleEndian.Uint32(r.log[r.lastRun:]) == at {
		size := r.log[r.lastRun+4 : r.lastRun+runHeader]
		if n := int(binary.LittleEndian.Uint16(size)) + len(entry); n < 1<<16 {
			binary.LittleEndian.PutUint16(size, uint16(n))
			r.log = append(r.log, entry...)
			return
		}
	}

	r.lastRun = len(r.log)
	r.log = binary.LittleEndian.AppendUint32(r.log, at)
	r.log = binary.LittleEndian.AppendUint16(r.log, uint16(len(entry)))
	r.log = append(r.log, entry...)
}

// groupByRow copies the entries from the log into values, row by row. The entries
// of a row keep their order.
func (r *rows) groupByRow() {
	// Each row's end begins at its start, and moves as entries are copied.
	total := 0
	for i := range r.list {
		r.list[i].end = total
		total += r.list[i].size
	}

	r.values = slices.Grow(r.values[:0], total)[:total]
	for log := r.log; len(log) > 0; {
		to, n := &r.list[binary.LittleEndian.Uint32(log)], int(binary.LittleEndian.Uint16(log[4:]))
		to.end += copy(r.values[to.end:], log[runHeader:runHeader+n])
		log = log[runHeader+n:]
	}
}

// entries returns the entries of row i; groupByRow must have been called.
func (r *rows) entries(i int) []byte {
	to := &r.list[i]
	return r.values[to.end-to.size : to.end : to.end]
}

// points returns the number of points.
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
	clear(r.histograms)
	r.list, r.log, r.lastRun, r.histograms = r.list[:0], r.log[:0], 0, r.histograms[:0]
	r.cells.reset()
}
