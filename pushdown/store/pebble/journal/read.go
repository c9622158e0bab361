package journal

import (
	"bytes"
	"encoding/binary"
)

// Reading is what was read of a journal.
type Reading struct {
	// Records are the intact records in their order, those after holes included.
	Records []Record
	// Holes are the parts before the last intact record that are no record.
	Holes []Hole
	// End is the offset where the last intact record ends.
	End int64
	// Closed says that a log has its end chunk there: the log is complete.
	Closed bool
	// Torn is the number of bytes after End that are no record, without zeros at
	// their end.
	Torn int64
	// Reach is the offset where the last chunk ends; if that chunk is broken, as its
	// header says. The file was at least that long.
	Reach int64
}

// Record is one record. Data is a view of the file's bytes if the record is a single
// chunk.
type Record struct {
	Start, End int64 // offsets in the file, headers included
	Data       []byte
}

// Hole is a part of the file without an intact record.
type Hole struct {
	Start, End int64
	// Damage says that the hole's bytes have been on disk. It is false for a hole
	// that may be torn: a write that a crash has lost, while later ones arrived.
	Damage bool
}

// Log reads a write-ahead log with a number. Chunks with other numbers are ignored:
// an earlier log has left them in the file.
func Log(data []byte, number uint64) Reading {
	return newReader(data, true, uint32(number)).read()
}

// Manifest reads a MANIFEST. Pebble syncs each record of it before it writes the next
// one, so every hole is damage.
func Manifest(data []byte) Reading {
	return newReader(data, false, 0).read()
}

// Damage returns the first hole that is damage, nil if there is none.
func (r *Reading) Damage() *Hole {
	for i := range r.Holes {
		if r.Holes[i].Damage {
			return &r.Holes[i]
		}
	}
	return nil
}

// reader reads a journal from chunk to chunk.
type reader struct {
	data    []byte
	log     bool
	number  uint32 // of the log
	dataEnd int64  // offset after the last byte that is not zero: zeros at the end of a file are no data
	out     Reading

	parts  []chunk // of the record that has begun and not ended
	holes  []gap   // the last is still open while inHole is set
	inHole bool    // no whole record has been read since the last hole began
}

func newReader(data []byte, log bool, number uint32) *reader {
	return &reader{data: data, log: log, number: number, dataEnd: int64(len(bytes.TrimRight(data, "\x00")))}
}

// gap is a hole, and what decides whether it is damage.
type gap struct {
	Hole
	missing int64     // offset of the first chunk that is missing
	bad     []stretch // bytes without an intact chunk
	synced  int64     // the greatest synced offset that a chunk after it has
}

// stretch is a range of offsets in the file.
type stretch struct{ start, end int64 }

// read reads the file from chunk to chunk. Bytes without an intact chunk become a hole if an intact one
// follows, else they are the end of the journal.
func (r *reader) read() Reading {
	for at := int64(0); at < r.dataEnd; {
		at = r.skipPadding(at)
		if c, ok := r.chunkAt(at); ok {
			r.addChunk(c)
			at = c.end
			continue
		}

		next, ok := r.findChunk(at)
		if !ok {
			// What follows an end chunk is left from an earlier log. An end chunk in the middle of a
			// record, or after a hole, is not what it seems.
			r.out.Closed = r.isEndChunk(at) && len(r.parts) == 0 && !r.inHole
			r.out.Reach = max(r.out.Reach, r.claimedEnd(at))
			break
		}
		r.addMissing(at, stretch{at, next})
		at = next
	}
	return r.finish()
}

// skipPadding returns the offset where the next chunk can begin: behind the zeros at
// the end of a block that has no room for a header.
func (r *reader) skipPadding(at int64) int64 {
	rest := blockSize - at%blockSize
	least := int64(headerManifest)
	if r.log {
		least = headerSynced
	}
	if rest >= least || at+rest > int64(len(r.data)) {
		return at
	}
	if len(bytes.Trim(r.data[at:at+rest], "\x00")) > 0 {
		return at // damaged, or a shorter header
	}
	return at + rest
}

// isEndChunk reports whether the end chunk of the log is at an offset.
func (r *reader) isEndChunk(at int64) bool {
	if !r.log || at+headerLog > int64(len(r.data)) || at%blockSize+headerLog > blockSize {
		return false
	}
	m := r.data[at : at+headerLog]
	return binary.LittleEndian.Uint32(m) == 0 && binary.LittleEndian.Uint16(m[4:]) == 0 && m[6] == 5 &&
		binary.LittleEndian.Uint32(m[7:]) == r.number+1
}

// findChunk returns the offset of the first intact chunk after a broken one at an
// offset; ok is false if there is none.
func (r *reader) findChunk(at int64) (offset int64, ok bool) {
	// The broken chunk's header, its size at 4 and its type at 6, is believed first, if a
	// chunk follows where it says: the payload may contain anything, such as the bytes of
	// chunks.
	if rest := r.data[at:min(int64(len(r.data)), at-at%blockSize+blockSize)]; len(rest) >= headerManifest {
		if header, ok := r.header(rest[6]); ok {
			next := r.skipPadding(at + int64(header) + int64(binary.LittleEndian.Uint16(rest[4:])))
			if _, ok := r.chunkAt(next); ok {
				return next, true
			}
		}
	}

	for at++; at < r.dataEnd; at++ {
		if _, ok := r.chunkAt(at); ok {
			return at, true
		}
	}
	return 0, false
}

// claimedEnd returns the offset where a broken chunk ends by its own header; at if the
// header makes no sense.
func (r *reader) claimedEnd(at int64) int64 {
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

// addChunk adds an intact chunk.
func (r *reader) addChunk(c chunk) {
	r.out.Reach = c.end
	// What a later chunk calls synced was on disk, holes included.
	for i := range r.holes {
		r.holes[i].synced = max(r.holes[i].synced, c.synced)
	}

	switch {
	case c.place == full || c.place == first:
		if len(r.parts) > 0 {
			r.addMissing(c.start) // the record before has no end
		}
		r.parts = append(r.parts[:0], c)
	case len(r.parts) == 0:
		r.addMissing(c.start) // this chunk's record has no beginning
		return
	default:
		r.parts = append(r.parts, c)
	}
	if c.place == full || c.place == last {
		r.endRecord()
	}
}

// endRecord adds the record that parts make up, and ends the hole before it.
func (r *reader) endRecord() {
	rec := Record{Start: r.parts[0].start, End: r.parts[len(r.parts)-1].end, Data: r.parts[0].payload}
	if len(r.parts) > 1 {
		rec.Data = nil
		for _, c := range r.parts {
			rec.Data = append(rec.Data, c.payload...)
		}
	}

	if r.inHole {
		r.holes[len(r.holes)-1].End = rec.Start
		r.inHole = false
	}
	r.parts = r.parts[:0]
	r.out.Records = append(r.out.Records, rec)
	r.out.End = rec.End
}

// addMissing notes that a chunk is missing at an offset. bad is the stretch of bytes
// there that are no chunk, if there is one. The record that has begun is lost.
func (r *reader) addMissing(at int64, bad ...stretch) {
	if !r.inHole {
		r.holes = append(r.holes, gap{Hole: Hole{Start: at}, missing: at})
		r.inHole = true
	}

	h := &r.holes[len(r.holes)-1]
	if len(r.parts) > 0 {
		h.Start = min(h.Start, r.parts[0].start)
		r.parts = r.parts[:0]
	}
	h.bad = append(h.bad, bad...)
}

// finish judges the holes and returns the result.
func (r *reader) finish() Reading {
	if r.inHole { // no record follows the last hole: it is the torn end
		r.holes = r.holes[:len(r.holes)-1]
	}
	for _, h := range r.holes {
		// A MANIFEST is synced record by record, and what was synced has been on disk. In a
		// log, a hole after that may be torn.
		h.Damage = !r.log || h.synced > h.missing || !r.mayBeTorn(h)
		r.out.Holes = append(r.out.Holes, h.Hole)
	}
	if !r.out.Closed {
		r.out.Torn = max(0, r.dataEnd-r.out.End)
	}
	return r.out
}

// mayBeTorn reports whether each stretch of a hole contains a sector that never reached
// the disk.
func (r *reader) mayBeTorn(h gap) bool {
	for _, s := range h.bad {
		if !r.hasBlankSector(s) {
			return false
		}
	}
	return len(h.bad) > 0
}

// hasBlankSector reports whether a stretch contains a sector of zeros. The first sector
// counts from where the stretch begins, because what is before that was synced.
func (r *reader) hasBlankSector(s stretch) bool {
	for at := s.start; at < s.end; {
		end := at - at%sector + sector
		// The rest of this sector is an intact chunk, so it has reached the disk.
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
