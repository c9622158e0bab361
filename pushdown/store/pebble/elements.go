package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"downpour/pushdown/store"
)

// Every block of a table carries the set of the elements (see store.KeyPattern) of its rows'
// keys, as a bloom filter, in the entry that the table's index has for the block. A scan with a
// pattern skips blocks that hold none of the wanted values: one series of a million is found by
// looking at the index alone, whatever tags its key begins with.
//
// Nothing can be missed. The set is made of the keys that a block holds, while pebble writes the
// block, and is in the same table: there is no state of the store in which it is older than
// the block, or incomplete, whatever has written the rows, and it dies with the block. Where it
// is missing (memtables, tables of earlier versions, blocks of too many elements) the block is read.
// And it depends on row keys only: if one of the writes, appends and deletions of a cell is in a block
// that is skipped, then the whole row is not wanted. So no deletion is overlooked in a wanted
// row, and what is left of other rows the pattern rejects.

// elementsName names the property of blocks. It is on disk and never changes.
const elementsName = "downpour.elements.v1"

const (
	// elementsHeader is the length of what a set begins with: the layout of the keys.
	elementsHeader = 2
	// bitsPerElement and probes make one in 900 blocks a false hit. A hit costs a block of some
	// hundred rows to be read, and a bit about a tenth of a byte of index for each row.
	bitsPerElement = 14
	probes         = 10
	// maxElements bounds a set: 7 KiB next to a block of 32 KiB.
	maxElements = 4096
	// maxWantedElements bounds the elements that are looked up in each set: one of very many
	// values is in most blocks.
	maxWantedElements = 256
)

// elementLayout says where the elements of row keys are.
type elementLayout struct {
	head  int // bytes before the first element
	width int // of an element; 0: nothing is known of row keys
}

// layoutOf returns the layout of a grouping's row keys; the zero layout if a set could not hold
// it.
func layoutOf(g Grouping) elementLayout {
	head, width := g.Elements()
	if width <= 0 || width > 255 || head < 0 || head > 255 {
		return elementLayout{}
	}
	return elementLayout{head, width}
}

// hashElement hashes an element. What it returns decides which bits of a set are set: it never
// changes.
func hashElement(e []byte) uint64 {
	var h uint64
	for len(e) > 8 {
		h = mix(h ^ binary.BigEndian.Uint64(e))
		e = e[8:]
	}
	var last uint64
	for _, c := range e {
		last = last<<8 | uint64(c)
	}
	return mix(h ^ last)
}

// mix spreads each bit of x over all bits of the result: the finalizer of SplitMix64, with its
// increment, so that 0 is not mapped to itself.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// bitOf returns the bit for probe i of a hash in a set of n bits.
func bitOf(h uint64, i int, n uint32) uint32 {
	at := uint32(h) + uint32(i)*(uint32(h>>32)|1)
	hi, _ := bits.Mul32(at, n)
	return hi
}

// appendSet appends the set of hashes.
func (l elementLayout) appendSet(dst []byte, hashes []uint64) []byte {
	dst = append(dst, byte(l.head), byte(l.width))
	from, size := len(dst), (len(hashes)*bitsPerElement+7)/8
	dst = append(dst, make([]byte, size)...)
	set, n := dst[from:], uint32(size)*8
	for _, h := range hashes {
		for i := range probes {
			bit := bitOf(h, i, n)
			set[bit/8] |= 1 << (bit % 8)
		}
	}
	return dst
}

// inSet reports whether an element with hash h may be in a set, without its header.
func inSet(set []byte, h uint64) bool {
	n := uint32(len(set)) * 8
	if n == 0 {
		return false
	}
	for i := range probes {
		if bit := bitOf(h, i, n); set[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// elementCollector makes the sets of one table that is being written. It implements
// pebble.BlockPropertyCollector.
type elementCollector struct {
	layout elementLayout
	hashes hashSet // of the block

	// row is the prefix of the last row of the block that has elements, and from where they
	// begin there. Most rows share elements with the row before.
	row  []byte
	from int
}

func newElementCollector(l elementLayout) *elementCollector { return &elementCollector{layout: l} }

// Name implements pebble.BlockPropertyCollector.
func (*elementCollector) Name() string { return elementsName }

// AddPointKey adds the elements of a row. Deletions count like any other key: a scan that wants
// the row must see them.
func (c *elementCollector) AddPointKey(key pebble.InternalKey, _ []byte) error {
	prefix := key.UserKey[:split(key.UserKey)]
	if bytes.Equal(prefix, c.row) {
		return nil // another cell of the same row
	}

	table := bytes.IndexByte(prefix, 0)
	from := table + 1 + c.layout.head
	// Of rows that are no head and whole elements a pattern of this layout wants none.
	n := len(prefix) - 1 - from // without the 00 that ends the row
	if table < 0 || n < 0 || n%c.layout.width != 0 {
		return nil
	}
	old := c.row
	if from != c.from {
		old = nil // of a table with a name of another length
	}
	for at := from; at < from+n; at += c.layout.width {
		e := prefix[at : at+c.layout.width]
		if at+c.layout.width < len(old) && bytes.Equal(e, old[at:at+c.layout.width]) {
			continue
		}
		c.hashes.add(hashElement(e))
	}
	c.row, c.from = append(c.row[:0], prefix...), from
	return nil
}

// FinishDataBlock appends the set of a block.
func (c *elementCollector) FinishDataBlock(buf []byte) ([]byte, error) {
	// Nothing stands for a block that may hold any element.
	if len(c.hashes.all) <= maxElements {
		buf = c.layout.appendSet(buf, c.hashes.all)
	}
	c.hashes.reset()
	c.row = c.row[:0]
	return buf, nil
}

// FinishIndexBlock says that the blocks of an index block may hold any element, as FinishTable
// does of a table: a set of so many elements would be as large as those of all blocks.
func (*elementCollector) FinishIndexBlock(buf []byte) ([]byte, error) { return buf, nil }

// FinishTable implements pebble.BlockPropertyCollector.
func (*elementCollector) FinishTable(buf []byte) ([]byte, error) { return buf, nil }

// AddPrevDataBlockToIndexBlock implements pebble.BlockPropertyCollector.
func (*elementCollector) AddPrevDataBlockToIndexBlock() {}

// AddRangeKeys implements pebble.BlockPropertyCollector. The store writes no range keys.
func (*elementCollector) AddRangeKeys(sstable.Span) error { return nil }

// SupportsSuffixReplacement implements pebble.BlockPropertyCollector.
func (*elementCollector) SupportsSuffixReplacement() bool { return false }

// AddCollectedWithSuffixReplacement implements pebble.BlockPropertyCollector.
func (*elementCollector) AddCollectedWithSuffixReplacement(_, _, _ []byte) error {
	return errors.New("tables of cells are not rewritten with other suffixes")
}

// hashSet is a set of hashes, up to one more than a block's set can have. Its memory is used
// for one block after the other.
type hashSet struct {
	all   []uint64
	slots []uint16 // open addressing: 1 + an index of all; 0 is free
}

// minSlots is the least size of the slots, which is a power of two.
const minSlots = 256

func (s *hashSet) add(h uint64) {
	if len(s.all) > maxElements {
		return // there will be no set
	}
	if 2*len(s.all) >= len(s.slots) {
		s.grow()
	}
	if at := s.slot(h); s.slots[at] == 0 {
		s.all = append(s.all, h)
		s.slots[at] = uint16(len(s.all))
	}
}

// slot returns the slot that h has, or would get.
func (s *hashSet) slot(h uint64) uint64 {
	mask := uint64(len(s.slots) - 1)
	at := h & mask
	for s.slots[at] != 0 && s.all[s.slots[at]-1] != h {
		at = (at + 1) & mask
	}
	return at
}

func (s *hashSet) grow() {
	s.slots = make([]uint16, max(minSlots, 2*len(s.slots)))
	for i, h := range s.all {
		s.slots[s.slot(h)] = uint16(i + 1)
	}
}

func (s *hashSet) reset() {
	s.all = s.all[:0]
	clear(s.slots)
}

// elementFilter says which blocks a scan need not read. It implements
// pebble.BlockPropertyFilter.
type elementFilter struct {
	layout elementLayout
	wants  [][]uint64 // for each wanted name the hashes of its values; all must be there
}

// newElementFilter returns the filter for a scan's pattern, nil if it would skip nothing.
func newElementFilter(l elementLayout, p *store.KeyPattern) *elementFilter {
	if p == nil || l.width == 0 || p.Head != l.head || p.NameLen+p.ValueLen != l.width {
		return nil
	}

	f := &elementFilter{layout: l}
	element := make([]byte, 0, l.width)
	for _, w := range p.Wants {
		if len(w.Values) == 0 || len(w.Values) > maxWantedElements {
			continue
		}
		hashes := make([]uint64, len(w.Values))
		for i, v := range w.Values {
			element = append(append(element[:0], w.Name...), v...)
			hashes[i] = hashElement(element)
		}
		f.wants = append(f.wants, hashes)
	}
	if len(f.wants) == 0 {
		return nil
	}
	return f
}

// Name implements pebble.BlockPropertyFilter.
func (*elementFilter) Name() string { return elementsName }

// Intersects reports whether a block may hold a wanted row. Without a set, or with one of keys of
// another layout, it may.
func (f *elementFilter) Intersects(set []byte) (bool, error) {
	if len(set) < elementsHeader || int(set[0]) != f.layout.head || int(set[1]) != f.layout.width {
		return true, nil
	}
	set = set[elementsHeader:]
	for _, hashes := range f.wants {
		if !anyInSet(set, hashes) {
			return false, nil
		}
	}
	return true, nil
}

func anyInSet(set []byte, hashes []uint64) bool {
	for _, h := range hashes {
		if inSet(set, h) {
			return true
		}
	}
	return false
}

// SyntheticSuffixIntersects implements pebble.BlockPropertyFilter. No table of the store has a
// synthetic suffix.
func (f *elementFilter) SyntheticSuffixIntersects([]byte, []byte) (bool, error) { return true, nil }
