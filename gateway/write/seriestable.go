package write

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"downpour/encoding"
)

// seriesTable keeps series under keys: their canonical names, or the spelling of a client
// (see Resolver). A million series are usual, so entries are bytes in chunks: a series of
// three tags, spelled in 55 bytes, takes some 110, and the garbage collector visits none.
// Every point of a put looks one up, so look-ups take no lock. Libraries for caches of
// bytes copy each value that is found, take all their memory at the start or tens of MiB
// at least, and cannot drop series that were resolved by older names.
//
// When the bytes are used up, the oldest chunk is dropped. Those of its entries that were
// found since they were added move to the newest chunk, until they fill half of it.
//
// An entry:
//
//	size    2 bytes   the length of the text, little-endian
//	width   1         the length of the UIDs
//	room    1         the length of the places
//	text    size      the key
//	UIDs    width     of the metric, then the tag pairs as in row keys
//	places  room      where the metric, then each tagk and tagv, are in the text: a varint, from
//	                  the end of the name before, and a uvarint, the length
//
// For example metric 000001 with tag 000002=000003, put by telnet (02) as "m host=web":
//
//	0B 00 | 09 | 06
//	02 6D 20 68 6F 73 74 3D 77 65 62
//	00 00 01 | 00 00 02 00 00 03
//	02 01 | 02 04 | 02 03
type seriesTable struct {
	shards      []tableShard            // a power of two
	metricWidth int                     // bytes of a metric's UID
	hash        func(key string) uint64 // tests use one by which many keys are equal
}

// tableShard holds the entries of some hashes.
type tableShard struct {
	mu        sync.Mutex // of those that change the shard
	maxBytes  int        // of chunks and index
	usedSlots int        // slots of the index that are not 0
	state     atomic.Pointer[tableState]
}

// tableState is the contents of a shard. Entries are added to it; any other change replaces it by
// another state.
type tableState struct {
	// generation is that of the names by which all entries were resolved.
	generation uint64
	chunks     []*chunk // the oldest first; entries are added to the last
	// firstNumber is the number of chunks[0]; those after it follow. Numbers begin with 1.
	firstNumber uint64
	// index has a slot for each entry, in the first free one from the key's hash on, or 0.
	// A slot is the upper 24 bits of the hash and the place of the entry: the number of its
	// chunk in 26 bits and the offset there in 14. At most three quarters are not 0. A slot
	// whose chunk has been dropped is kept until the index is rebuilt.
	index []atomic.Uint64
}

// chunk is memory for entries. Their bytes never change: a SeriesKey that was found
// refers to them also when the chunk has been dropped.
type chunk struct {
	size  int                           // of the entries; for those that change the shard
	found [foundBits / 32]atomic.Uint32 // has the bits of entries that were found since they were added
	bytes [chunkRoom]byte
}

const (
	chunkBytes = 16 << 10 // of a chunk in memory
	chunkRoom  = chunkBytes - 8 - foundBits/8
	// An entry has a bit in found by its offset. Several entries within 16 bytes would
	// share one, but the shortest entry of a point, with a key as m k=v behind its form, has 19 bytes.
	foundBits = chunkBytes / 16

	offsetBits = 14
	numberBits = 26
	tagShift   = offsetBits + numberBits
	slotBytes  = 8

	sizeAt    = 0
	widthAt   = 2
	roomAt    = 3
	entryHead = 4

	// A small table has few shards, so that each has several chunks.
	shardBytes = 256 << 10 // the least that each of several shards has
	mostShards = 16
)

func newSeriesTable(limit int64, metricWidth int) *seriesTable {
	n := min(max(limit/shardBytes, 1), mostShards)
	n = 1 << (bits.Len64(uint64(n)) - 1)
	t := &seriesTable{shards: make([]tableShard, n), metricWidth: metricWidth,
		hash: func(key string) uint64 { return maphash.String(seed, key) }}
	for i := range t.shards {
		t.shards[i].maxBytes = int(limit / n)
		t.shards[i].startEmpty(0)
	}
	return t
}

// shard returns the shard of a hash, by bits that slots do not use.
func (t *seriesTable) shard(hash uint64) *tableShard {
	return &t.shards[hash>>32&uint64(len(t.shards)-1)]
}

// findInto sets k to the series under a key and returns true. It returns false if there is none that was
// resolved in the generation. It does not keep the key.
func (t *seriesTable) findInto(k *SeriesKey, key string, generation uint64) bool {
	hash := t.hash(key)
	st := t.shard(hash).state.Load()
	if st.generation != generation {
		return false
	}

	_, slot, e := st.probe(hash, key)
	if e == nil {
		return false
	}
	st.noteFound(slot)
	rest := e[entryHead:]
	text, rest := viewOf(rest[:len(key)]), rest[len(key):]
	width := int(e[widthAt])
	uids, places := rest[:width:width], rest[width:]

	// Field by field: as a whole it would be made elsewhere and copied, for every point.
	k.Metric, k.Tags = encoding.UID(uids[:t.metricWidth:t.metricWidth]), uids[t.metricWidth:]
	k.generation, k.hash = generation, hashOf(uids)
	k.names.text, k.names.places = text, places[:e[roomAt]]
	return true
}

// viewOf returns bytes that never change as a string.
func viewOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// probe looks for the slot of a key. It returns the slot's index and its value, and the bytes from its entry
// on. If the key has none these are the index of the slot that it would get, 0 and nil. Others may change
// the slot, so its value must not be read again.
func (st *tableState) probe(hash uint64, key string) (at, slot uint64, e []byte) {
	mask := uint64(len(st.index) - 1)
	for at = hash & mask; ; at = (at + 1) & mask {
		slot = st.index[at].Load()
		if slot == 0 {
			return at, 0, nil
		}
		if slot>>tagShift != hash>>tagShift {
			continue
		}
		if e = st.entryOf(slot); e != nil && viewOf(textOf(e)) == key {
			return at, slot, e
		}
	}
}

// chunkNumber and offsetOf are the two parts of a slot that say where its entry is.
func chunkNumber(slot uint64) uint64 { return slot >> offsetBits & (1<<numberBits - 1) }
func offsetOf(slot uint64) uint64    { return slot & (1<<offsetBits - 1) }

// entryOf returns the bytes from the entry of a slot on; nil if its chunk has been dropped.
func (st *tableState) entryOf(slot uint64) []byte {
	i := chunkNumber(slot) - st.firstNumber // far beyond all chunks if the number is smaller
	if i >= uint64(len(st.chunks)) {
		return nil
	}
	return st.chunks[i].bytes[offsetOf(slot):]
}

// noteFound sets the found bit of the entry of a slot, whose chunk is one of st.
func (st *tableState) noteFound(slot uint64) {
	c := st.chunks[chunkNumber(slot)-st.firstNumber]
	word, bit := c.foundBit(int(offsetOf(slot)))
	if word.Load()&bit == 0 { // else the processors would pass the word around
		word.Or(bit)
	}
}

// foundBit returns where found has the bit of the entry at an offset.
func (c *chunk) foundBit(offset int) (word *atomic.Uint32, bit uint32) {
	return &c.found[offset/16/32], 1 << (offset / 16 % 32)
}

// textOf returns the text of the entry at the beginning of e.
func textOf(e []byte) []byte {
	return e[entryHead:][:binary.LittleEndian.Uint16(e[sizeAt:])]
}

// entrySize returns the length of the entry at the beginning of e.
func entrySize(e []byte) int {
	return entryHead + int(binary.LittleEndian.Uint16(e[sizeAt:])) + int(e[widthAt]) + int(e[roomAt])
}

// put keeps a series of some names under a key that contains each of them verbatim. It
// returns false if it does not: the entry would be too long, the shard has no memory for it, a name is
// not in the key (JSON may escape it), or names have changed since the series was resolved.
func (t *seriesTable) put(key string, metric string, tags []Tag, k *SeriesKey) bool {
	var buf [512]byte // room for usual entries
	e, ok := appendEntry(buf[:0], key, metric, tags, k)
	if !ok || len(e) > chunkRoom/2 {
		return false
	}

	s := t.shard(t.hash(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state.Load()
	if k.generation < st.generation {
		return false
	}
	if k.generation > st.generation {
		s.startEmpty(k.generation)
	}
	return t.addEntry(s, e)
}

// appendEntry appends the entry of a series to e. It returns false if a name is not in the key, or a number
// does not fit its field.
func appendEntry(e []byte, key, metric string, tags []Tag, k *SeriesKey) (_ []byte, ok bool) {
	width := len(k.Metric) + len(k.Tags)
	if len(key) >= 1<<16 || width >= 1<<8 {
		return nil, false
	}
	first := len(e)
	e = binary.LittleEndian.AppendUint16(e, uint16(len(key)))
	e = append(e, byte(width), 0) // the room is known last
	e = append(e, key...)
	e = append(append(e, k.Metric...), k.Tags...)

	// A name may also be found inside another: only the bytes matter.
	places, end := len(e), 0
	ok = true
	appendPlaceOf := func(name string) {
		at := strings.Index(key, name)
		ok = ok && at >= 0
		e = binary.AppendVarint(e, int64(at-end))
		e = binary.AppendUvarint(e, uint64(len(name)))
		end = at + len(name)
	}
	appendPlaceOf(metric)
	for _, t := range tags {
		appendPlaceOf(t.K)
		appendPlaceOf(t.V)
	}
	room := len(e) - places
	e[first+roomAt] = byte(room)
	return e, ok && room < 1<<8
}

// addEntry adds an entry to the shard, in the place of an earlier one with the same key. It returns false
// if the shard has no memory for a chunk. s.mu is held, as for all calls below that get a shard.
func (t *seriesTable) addEntry(s *tableShard, e []byte) bool {
	st := s.state.Load()
	if n := len(st.chunks); n == 0 || st.chunks[n-1].size+len(e) > chunkRoom {
		if chunkBytes+len(st.index)*slotBytes > s.maxBytes {
			return false
		}
		t.openChunk(s)
	}
	t.addToNewest(s, e)
	return true
}

// addToNewest copies an entry to the newest chunk, which has room for it, and has the slot of its key point
// there.
func (t *seriesTable) addToNewest(s *tableShard, e []byte) {
	st := s.state.Load()
	if s.usedSlots+1 > len(st.index)*3/4 {
		st = t.reindex(s)
	}
	last := len(st.chunks) - 1
	c := st.chunks[last]
	place := (st.firstNumber+uint64(last))<<offsetBits | uint64(c.size)
	c.size += copy(c.bytes[c.size:], e)

	key := viewOf(textOf(e))
	hash := t.hash(key)
	at, slot, _ := st.probe(hash, key)
	if slot == 0 {
		s.usedSlots++
	}
	// From here on the entry can be found; its bytes are complete.
	st.index[at].Store(hash>>tagShift<<tagShift | place)
}

// reindex replaces the shard's state by one with an index without the slots of dropped chunks, and returns
// it.
func (t *seriesTable) reindex(s *tableShard) *tableState {
	old := s.state.Load()
	var live []uint64
	for i := range old.index {
		if slot := old.index[i].Load(); old.entryOf(slot) != nil { // 0 has no entry
			live = append(live, slot)
		}
	}

	st := *old
	st.index = make([]atomic.Uint64, 1<<bits.Len(uint(len(live)*3/2+smallIndex-1)))
	for _, slot := range live {
		key := viewOf(textOf(old.entryOf(slot)))
		at, _, _ := st.probe(t.hash(key), key)
		st.index[at].Store(slot)
	}
	s.usedSlots = len(live)
	s.state.Store(&st)
	return &st
}

// smallIndex is how many slots the smallest index has.
const smallIndex = 16

// openChunk begins a chunk. If the shard's memory is used up it drops the oldest chunks first, and begins
// with those of their entries that were found, if these fit in half of the chunk.
func (t *seriesTable) openChunk(s *tableShard) {
	st := *s.state.Load()
	var kept [][]byte
	room := chunkRoom / 2 // for kept; the entry that put adds then, of half a chunk at most, fits after them

	for (len(st.chunks)+1)*chunkBytes+len(st.index)*slotBytes > s.maxBytes { // addEntry knows that one has room
		oldest := st.chunks[0]
		for at := 0; at < oldest.size; {
			e := oldest.bytes[at:]
			e = e[:entrySize(e)]
			word, bit := oldest.foundBit(at)
			if word.Load()&bit != 0 && len(e) <= room && t.isIndexed(&st, e) {
				kept, room = append(kept, e), room-len(e)
			}
			at += len(e)
		}
		st.chunks, st.firstNumber = st.chunks[1:], st.firstNumber+1
	}

	if st.firstNumber+uint64(len(st.chunks)) >= 1<<numberBits { // no number is left, after a TiB
		s.startEmpty(st.generation)
		st = *s.state.Load()
	}
	st.chunks = append(st.chunks[:len(st.chunks):len(st.chunks)], new(chunk)) // others may read the old list
	s.state.Store(&st)
	for _, e := range kept {
		t.addToNewest(s, e)
	}
}

// isIndexed reports whether an entry is the one that is found by its key, and not an earlier one.
func (t *seriesTable) isIndexed(st *tableState, e []byte) bool {
	key := viewOf(textOf(e))
	_, _, found := st.probe(t.hash(key), key)
	return found != nil && &found[0] == &e[0]
}

// startEmpty drops all entries of the shard. Those added later are of names of a generation.
func (s *tableShard) startEmpty(generation uint64) {
	s.usedSlots = 0
	s.state.Store(&tableState{generation: generation, firstNumber: 1, index: make([]atomic.Uint64, smallIndex)})
}

// drop empties the table.
func (t *seriesTable) drop() {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		s.startEmpty(s.state.Load().generation)
		s.mu.Unlock()
	}
}

// namesOf are the names of a series. They are parsed only if a name changes.
type namesOf struct {
	text   string // canonical, or a spelling
	places []byte // of the names in the text, as in an entry; nil if the text is canonical
}

// parse returns the names, as separate strings: a kept name must not keep the chunk alive.
func (n namesOf) parse() (metric string, tags []Tag) {
	if n.places == nil {
		return parseCanonical(n.text)
	}
	end := 0
	next := func() string { // n is a copy: its places may shrink
		gap, gapSize := binary.Varint(n.places)
		size, sizeSize := binary.Uvarint(n.places[gapSize:])
		n.places = n.places[gapSize+sizeSize:]
		start := end + int(gap)
		end = start + int(size)
		return strings.Clone(n.text[start:end])
	}
	metric = next()
	for len(n.places) > 0 {
		tags = append(tags, Tag{K: next(), V: next()})
	}
	return metric, tags
}
