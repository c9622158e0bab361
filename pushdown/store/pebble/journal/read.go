package journal

import (
	"bytes"
	"encoding/binary"
)

// Reading is what stands in a journal.
type Reading struct {
	// Records are the whole ones in their order, those behind holes included.
	Records []Record
	// Holes lie before records that are whole.
	Holes []Hole
	// End is where the last whole record ends.
	End int64
	// Closed tells that a log's mark follows there: it has got all it was to get.
	Closed bool
	// Torn is how many bytes stand behind End that are no record, zeros at their
	// end left out.
	Torn int64
	// Reach is the end of the last chunk, as its header tells if it is broken:
	// the file has been that long.
	Reach int64
}

// Record is one record. Data is a view of the file's bytes where it is one
// chunk.
type Record struct {
	Start, End int64
	Data       []byte
}

// Hole is a part of the file without a whole record.
type Hole struct {
	Start, End int64
	// Damage tells that the hole's bytes have been on disk. It is false for what
	// may be torn: writes that a crash has lost, while later ones arrived.
	Damage bool
}

// Log reads a write-ahead log of the given number. Chunks of other numbers are
// what an earlier log left behind in the file, and none of its own.
func Log(data []byte, number uint64) Reading {
	r := reader{data: data, log: true, number: uint32(number)}
	return r.read()
}

// Manifest reads a MANIFEST. A record of it is synced before the next one is
// written, so each of its holes is damage.
func Manifest(data []byte) Reading {
	r := reader{data: data}
	return r.read()
}

// Damage is the first hole that is damage, nil if there is none.
func (r *Reading) Damage() *Hole {
	for i := range r.Holes {
		if r.Holes[i].Damage {
			return &r.Holes[i]
		}
	}
	return nil
}

// reader walks from chunk to chunk.
type reader struct {
	data   []byte
	log    bool
	number uint32
	used   int64 // behind the last byte that is not zero
	out    Reading

	parts []chunk // of a record that has not ended
	holes []gap   // open and closed ones
	open  bool    // the last of holes has no record behind it yet
}

// gap is a hole, and why.
type gap struct {
	Hole
	from int64     // where the first chunk is missing
	bad  []stretch // without a whole chunk
	seen int64     // the greatest synced offset that a chunk behind it tells
}

// stretch is a range of the file.
type stretch struct{ start, end int64 }

func (r *reader) read() Reading {
	r.used = int64(len(bytes.TrimRight(r.data, "\x00")))
	at := int64(0)
	for at < r.used {
		at = r.pass(at)
		if c, ok := r.chunkAt(at); ok {
			r.addChunk(c)
			at = c.end
			continue
		}
		if r.markAt(at) && len(r.parts) == 0 && !r.open {
			r.out.Closed = true
		}
		next, ok := r.next(at)
		if !ok {
			r.out.Reach = max(r.out.Reach, r.claim(at))
			break
		}
		r.out.Closed = false
		r.miss(at, stretch{at, next})
		at = next
	}
	return r.finish()
}

// pass returns where the next chunk can begin: behind the zeros that fill a
// block.
func (r *reader) pass(at int64) int64 {
	rest := blockSize - at%blockSize
	least := int64(headerManifest)
	if r.log {
		least = headerSynced
	}
	if rest >= least || at+rest > int64(len(r.data)) {
		return at
	}
	if len(bytes.Trim(r.data[at:at+rest], "\x00")) > 0 {
		return at
	}
	return at + rest
}

// markAt tells whether the mark of a closed log stands at an offset.
func (r *reader) markAt(at int64) bool {
	if !r.log || at+headerLog > int64(len(r.data)) || at%blockSize+headerLog > blockSize {
		return false
	}
	m := r.data[at : at+headerLog]
	return binary.LittleEndian.Uint32(m) == 0 && binary.LittleEndian.Uint16(m[4:]) == 0 && m[6] == 5 &&
		binary.LittleEndian.Uint32(m[7:]) == r.number+1
}

// next finds the first whole chunk behind one that is none. Where that one's
// header says is tried first: its payload may hold anything, chunks included.
func (r *reader) next(at int64) (int64, bool) {
	if rest := r.data[at:min(int64(len(r.data)), at-at%blockSize+blockSize)]; len(rest) >= headerManifest {
		if header, ok := r.header(rest[6]); ok {
			behind := r.pass(at + int64(header) + int64(binary.LittleEndian.Uint16(rest[4:])))
			if _, ok := r.chunkAt(behind); ok {
				return behind, true
			}
		}
	}
	for at++; at < r.used; at++ {
		if _, ok := r.chunkAt(at); ok {
			return at, true
		}
	}
	return 0, false
}

// claim is where the header of a broken chunk says that it ends.
func (r *reader) claim(at int64) int64 {
	rest := r.data[at:]
	if len(rest) < headerLog || r.log && binary.LittleEndian.Uint32(rest[7:]) != r.number {
		return at
	}
	header, ok := r.header(rest[6])
	end := at + int64(header) + int64(binary.LittleEndian.Uint16(rest[4:]))
	if !ok || end > at-at%blockSize+blockSize {
		return at
	}
	return end
}

// addChunk adds a whole chunk.
func (r *reader) addChunk(c chunk) {
	r.out.Reach = c.end
	for i := range r.holes {
		r.holes[i].seen = max(r.holes[i].seen, c.synced)
	}
	switch {
	case c.place == full || c.place == first:
		if len(r.parts) > 0 {
			r.miss(c.start) // the record before was left off
		}
		r.parts = append(r.parts[:0], c)
	case len(r.parts) == 0:
		r.miss(c.start) // its record's beginning is missing
		return
	default:
		r.parts = append(r.parts, c)
	}
	if c.place == full || c.place == last {
		r.record()
	}
}

// record ends the record of the parts, and the hole before it.
func (r *reader) record() {
	rec := Record{Start: r.parts[0].start, End: r.parts[len(r.parts)-1].end, Data: r.parts[0].payload}
	if len(r.parts) > 1 {
		rec.Data = nil
		for _, c := range r.parts {
			rec.Data = append(rec.Data, c.payload...)
		}
	}
	if r.open {
		r.holes[len(r.holes)-1].End = rec.Start
		r.open = false
	}
	r.parts = r.parts[:0]
	r.out.Records = append(r.out.Records, rec)
	r.out.End = rec.End
}

// miss notes that a chunk is missing at an offset, with the stretch of bytes
// that are none, if there is one. The record that it is a part of is lost.
func (r *reader) miss(at int64, bad ...stretch) {
	if !r.open {
		r.holes = append(r.holes, gap{Hole: Hole{Start: at}, from: at})
		r.open = true
	}
	h := &r.holes[len(r.holes)-1]
	if len(r.parts) > 0 {
		h.Start = min(h.Start, r.parts[0].start)
		r.parts = r.parts[:0]
	}
	h.bad = append(h.bad, bad...)
}

func (r *reader) finish() Reading {
	if r.open {
		r.holes = r.holes[:len(r.holes)-1]
	}
	for _, h := range r.holes {
		h.Damage = !r.log || h.seen > h.from || !r.mayBeTorn(h)
		r.out.Holes = append(r.out.Holes, h.Hole)
	}
	if !r.out.Closed {
		r.out.Torn = max(0, r.used-r.out.End)
	}
	return r.out
}

// mayBeTorn tells whether each stretch without a chunk holds a sector that never
// reached the disk.
func (r *reader) mayBeTorn(h gap) bool {
	for _, s := range h.bad {
		if !r.hasBlankSector(s) {
			return false
		}
	}
	return len(h.bad) > 0
}

// hasBlankSector looks for a sector that is zeros from where it begins, or from
// where the stretch does.
func (r *reader) hasBlankSector(s stretch) bool {
	for at := s.start; at < s.end; {
		end := at - at%sector + sector
		if end > s.end {
			return false
		}
		if len(bytes.Trim(r.data[at:end], "\x00")) == 0 {
			return true
		}
		at = end
	}
	return false
}
