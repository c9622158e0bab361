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
	// index has a place for each row, in the first free one from its home on; its length is a
	// power of two, and at most half is taken. A place is the number of the batch in the upper
	// half and the index in list in the lower: one of an earlier batch is free, so nothing has
	// to be cleared.
	index   []uint64
	batch   uint32 // number of the batch, from 1 on
	list    []row
	log     []byte
	lastRun int     // where the last run starts in log
	keys    []byte  // the unused rest of a block that keys are cut from
	order   []place // of the rows by key; set by groupByRow

	values []byte // the entries row by row; set by groupByRow
	cells  cells

	histograms []histogramCell // in the order of their arrival
}

// addition is an addition to a row: a point as an entry, or a histogram, which is a separate cell.
type addition struct {
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
	end    int // where its entries end in values
}

// smallRows is how many places the smallest index has.
const smallRows = 1024

// runHeader is the length of a run's row and size.
const runHeader = 6

func newRows() *rows { return &rows{index: make([]uint64, smallRows), batch: 1} }

// add adds a point or a histogram to the row of a series and base time, and returns by
// how many bytes the batch grows.
func (r *rows) add(schema *encoding.Schema, s *SeriesKey, base uint32, what addition) (grown int) {
	at, grown := r.findOrAdd(schema, s, base)
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

// rowCost is what a row counts in a batch's size, in addition to its key and entries.
const rowCost = 64

// findOrAdd returns the index of a row and adds the row if it is new.
func (r *rows) findOrAdd(schema *encoding.Schema, s *SeriesKey, base uint32) (at uint32, grown int) {
	hash := s.rowHash(base)
	mask := uint64(len(r.index) - 1)
	free := r.home(hash)
	for ; uint32(r.index[free]>>32) == r.batch; free = (free + 1) & mask {
		if at = uint32(r.index[free]); r.list[at].hash == hash && r.list[at].is(schema, s, base) {
			return at, 0
		}
	}

	var buf [96]byte // room for 14 tags of 6 bytes; a longer key is allocated
	key := r.copyKey(schema.AppendRowKey(buf[:0], s.Metric, base, s.Tags))
	at = uint32(len(r.list))
	r.list = append(r.list, row{metric: &s.Metric[0], hash: hash, base: base, key: key})
	r.index[free] = uint64(r.batch)<<32 | uint64(at)
	if 2*len(r.list) > len(r.index) {
		r.reindex(2 * len(r.index))
	}
	return at, len(key) + rowCost
}

// home returns the place at which the search for a row begins. It uses the upper bits of a product,
// because the lowest bits of the hash select the shard, and are equal in all rows of a batch.
func (r *rows) home(hash uint64) uint64 {
	const spread = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio, as Knuth has it
	return hash * spread >> (64 - bits.Len(uint(len(r.index)-1)))
}

// reindex makes an index of some places for the rows of the list.
func (r *rows) reindex(places int) {
	r.index, r.batch = make([]uint64, places), 1
	mask := uint64(places - 1)
	for at := range r.list {
		free := r.home(r.list[at].hash)
		for r.index[free] != 0 {
			free = (free + 1) & mask
		}
		r.index[free] = uint64(r.batch)<<32 | uint64(at)
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

// groupByRow sorts the rows by key and copies the entries from the log into values, row by
// row. The entries of a row keep their order.
func (r *rows) groupByRow() {
	r.sort()

	// Each row's end begins at its start, and moves as entries are copied.
	total := 0
	for _, p := range r.order {
		r.list[p.row].end = total
		total += r.list[p.row].size
	}

	r.values = slices.Grow(r.values[:0], total)[:total]
	for log := r.log; len(log) > 0; {
		to, n := &r.list[binary.LittleEndian.Uint32(log)], int(binary.LittleEndian.Uint16(log[4:]))
		to.end += copy(r.values[to.end:], log[runHeader:runHeader+n])
		log = log[runHeader+n:]
	}
}

// sort sets the order of the rows. An embedded store puts keys that follow each other into
// its memtable with less effort.
func (r *rows) sort() {
	r.order = slices.Grow(r.order[:0], len(r.list))
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
		r.order = append(r.order, place{eightBytes(r.list[i].key[common:]), uint32(i)})
	}

	byKey := func(a, b place) int {
		if a.eight != b.eight {
			return cmp.Compare(a.eight, b.eight)
		}
		return bytes.Compare(r.list[a.row].key, r.list[b.row].key)
	}
	if !slices.IsSortedFunc(r.order, byKey) {
		slices.SortFunc(r.order, byKey)
	}
}

// place is a row among others.
type place struct {
	eight uint64 // of its key, see eightBytes
	row   uint32 // index in rows.list
}

// commonPrefix returns how many bytes a and b have in common at their beginning.
func commonPrefix(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// eightBytes returns the first eight bytes of b as a number, with zeros for those that it has
// not: the number of a text that sorts first is not the greater one.
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
	clear(r.list)
	clear(r.histograms)
	r.list, r.log, r.lastRun, r.histograms = r.list[:0], r.log[:0], 0, r.histograms[:0]
	r.cells.reset()
	if r.batch++; r.batch == 0 { // the numbers start again, and so does the index
		r.reindex(len(r.index))
	}
}
