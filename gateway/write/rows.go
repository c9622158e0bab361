package write

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

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
	// index finds rows by their hashes. A row has a slot, the first free one from its home on; the
	// number of slots is a power of two, and at most half are taken. A slot is the number of the
	// batch in the upper 32 bits and the row's index in list in the lower: one of an earlier batch is
	// free, so nothing has to be cleared.
	index   []uint64
	batch   uint32 // number of the batch, from 1 on
	list    []row
	log     []byte
	lastRun int         // where the last run starts in log
	keys    []byte      // the unused rest of a block that keys are cut from
	sorted  []sortedRow // the rows in the order of their keys; set by groupByRow

	values []byte // the entries row by row; set by groupByRow
	cells  cells

	histograms []histogramCell // in the order of their arrival
}

// rowItem is what is added to a row: a point as an entry, or a histogram, which is a separate cell.
type rowItem struct {
	entry     []byte
	histogram *histogramCell // nil for a point
}

// row is one row of a batch.
type row struct {
	// metric is the first byte of a SeriesKey's Metric, by whose address that series is known
	// again. The byte does not change while anything refers to it.
	metric *byte
	hash   uint64 // SeriesKey.rowHash
	base   uint32
	key    []byte
	size   int // bytes of its entries
	points int
	end    int // where its entries end in values; set by groupByRow
}

// smallRows is how many slots the smallest index has.
const smallRows = 1024

// runHeader is the length of a run's row and size.
const runHeader = 6

func newRows() *rows { return &rows{index: make([]uint64, smallRows), batch: 1} }

// add adds a point or a histogram to the row of a series and base time, and returns by
// how many bytes the batch grows.
func (r *rows) add(schema *encoding.Schema, s *SeriesKey, base uint32, item rowItem) (grown int) {
	i, grown := r.findOrAdd(schema, s, base)
	r.list[i].points++
	if item.histogram != nil {
		return grown + r.addHistogram(i, item.histogram)
	}

	r.list[i].size += len(item.entry)
	r.appendToLog(i, item.entry)
	return grown + len(item.entry)
}

// is reports whether a row is that of a series and base time.
func (r *row) is(schema *encoding.Schema, s *SeriesKey, base uint32) bool {
	if r.base != base {
		return false
	}
	// The usual case reads no key, because shards add under a lock.
	if r.metric == &s.Metric[0] {
		return true
	}

	// One series can have several SeriesKeys, cached under two spellings for example.
	key := r.key[schema.SaltWidth:]
	metric, tags := key[:len(s.Metric)], key[len(s.Metric)+encoding.BaseTimeWidth:]
	return bytes.Equal(tags, s.Tags) && bytes.Equal(metric, s.Metric)
}

// rowCost is what a row counts in a batch's size, in addition to its key and entries.
const rowCost = 64

// findOrAdd returns the index in list of the row of a series and base time. It adds the row if the batch
// has none, and returns by how many bytes the batch grows.
func (r *rows) findOrAdd(schema *encoding.Schema, s *SeriesKey, base uint32) (i uint32, grown int) {
	hash := s.rowHash(base)
	mask := uint64(len(r.index) - 1)
	at := r.home(hash)
	for ; r.isTaken(at); at = (at + 1) & mask {
		if i = uint32(r.index[at]); r.list[i].hash == hash && r.list[i].is(schema, s, base) {
			return i, 0
		}
	}

	// There is no such row, and the slot at which the search has ended is free.
	var buf [96]byte // room for 14 tags of 6 bytes; a longer key is allocated
	key := r.copyKey(schema.AppendRowKey(buf[:0], s.Metric, base, s.Tags))
	i = uint32(len(r.list))
	r.list = append(r.list, row{metric: &s.Metric[0], hash: hash, base: base, key: key})
	r.take(at, i)
	if 2*len(r.list) > len(r.index) {
		r.reindex(2 * len(r.index))
	}
	return i, len(key) + rowCost
}

// isTaken reports whether a row of this batch has the slot.
func (r *rows) isTaken(slot uint64) bool { return uint32(r.index[slot]>>32) == r.batch }

// take gives a slot to row i of this batch.
func (r *rows) take(slot uint64, i uint32) { r.index[slot] = uint64(r.batch)<<32 | uint64(i) }

// home returns the slot at which the search for a row begins. It uses the upper bits of a product,
// because the lowest bits of the hash select the shard, and are equal in all rows of a batch.
func (r *rows) home(hash uint64) uint64 {
	const spread = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio, as Knuth has it
	return hash * spread >> (64 - bits.Len(uint(len(r.index)-1)))
}

// reindex replaces the index by one of so many slots, a power of two, in which each row of the list
// has one. It begins the numbers of batches again.
func (r *rows) reindex(slots int) {
	r.index, r.batch = make([]uint64, slots), 1
	mask := uint64(slots - 1)
	for i := range r.list {
		at := r.home(r.list[i].hash)
		for r.isTaken(at) {
			at = (at + 1) & mask
		}
		r.take(at, uint32(i))
	}
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

// appendToLog adds an entry of row i to the last run if that is of the same row and has
// room, else it begins a run.
func (r *rows) appendToLog(i uint32, entry []byte) {
	if r.lastRun < len(r.log) && binary.LittleEndian.Uint32(r.log[r.lastRun:]) == i {
		sizeField := r.log[r.lastRun+4 : r.lastRun+runHeader]
		if size := int(binary.LittleEndian.Uint16(sizeField)) + len(entry); size < 1<<16 {
			binary.LittleEndian.PutUint16(sizeField, uint16(size))
			r.log = append(r.log, entry...)
			return
		}
	}

	r.lastRun = len(r.log)
	r.log = binary.LittleEndian.AppendUint32(r.log, i)
	r.log = binary.LittleEndian.AppendUint16(r.log, uint16(len(entry)))
	r.log = append(r.log, entry...)
}

// groupByRow sets sorted to the rows in the order of their keys, and values to their entries in the same
// order. The entries of a row keep the order of their arrival.
func (r *rows) groupByRow() {
	r.sortRows()

	// The end of each row is first where its entries begin in values, and moves as they are copied.
	total := 0
	for _, s := range r.sorted {
		r.list[s.row].end = total
		total += r.list[s.row].size
	}

	r.values = slices.Grow(r.values[:0], total)[:total]
	for log := r.log; len(log) > 0; {
		row, size := &r.list[binary.LittleEndian.Uint32(log)], int(binary.LittleEndian.Uint16(log[4:]))
		row.end += copy(r.values[row.end:], log[runHeader:runHeader+size])
		log = log[runHeader+size:]
	}
}

// sortRows sets sorted. An embedded store puts keys that follow each other into its memtable with less
// effort.
func (r *rows) sortRows() {
	r.sorted = slices.Grow(r.sorted[:0], len(r.list))
	if len(r.list) == 0 {
		return
	}

	// The keys of a batch have a common prefix: the eight bytes after that usually distinguish
	// them.
	common := len(r.list[0].key)
	for i := range r.list {
		common = commonPrefix(r.list[0].key[:common], r.list[i].key)
	}
	for i := range r.list {
		r.sorted = append(r.sorted, sortedRow{eightBytes(r.list[i].key[common:]), uint32(i)})
	}

	byKey := func(a, b sortedRow) int {
		if a.eight != b.eight {
			return cmp.Compare(a.eight, b.eight)
		}
		return bytes.Compare(r.list[a.row].key, r.list[b.row].key)
	}
	if !slices.IsSortedFunc(r.sorted, byKey) {
		slices.SortFunc(r.sorted, byKey)
	}
}

// sortedRow is a row in the order of keys, with a part of its key, for comparisons without the key.
type sortedRow struct {
	eight uint64 // eightBytes of the key after the common prefix
	row   uint32 // index in rows.list
}

// commonPrefix returns how many bytes a and b have in common at their beginning.
func commonPrefix(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// eightBytes returns the first eight bytes of b as a number, with zeros in the place of missing ones. If a
// sorts before b, eightBytes(a) <= eightBytes(b).
func eightBytes(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var eight [8]byte
	copy(eight[:], b)
	return binary.BigEndian.Uint64(eight[:])
}

// entries returns the entries of row i; groupByRow must have been called.
func (r *rows) entries(i uint32) []byte {
	row := &r.list[i]
	return r.values[row.end-row.size : row.end : row.end]
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
	clear(r.list)
	clear(r.histograms)
	r.list, r.log, r.lastRun, r.histograms = r.list[:0], r.log[:0], 0, r.histograms[:0]
	r.cells.reset()
	// When the numbers of batches are used up, slots of earlier ones would seem taken: all are cleared.
	if r.batch++; r.batch == 0 {
		r.reindex(len(r.index))
	}
}
