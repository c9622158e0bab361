package journal

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	blockSize = 32 << 10
	// sector is the unit that a disk writes completely or not at all.
	sector = 512

	// Lengths of headers, by the types of chunks.
	headerManifest = 7                  // 1 to 4
	headerLog      = headerManifest + 4 // 5 to 8, and the end chunk
	headerSynced   = headerLog + 8      // 9 to 12
)

// place is the place of a chunk in its record.
type place uint8

const (
	full place = iota
	first
	middle
	last
)

// chunk is an intact chunk: its checksum is right, and its number is the log's.
type chunk struct {
	place
	start, end int64 // offsets in the file, header included
	payload    []byte
	synced     int64 // the file was on disk up to this offset; 0 if that is not known
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns pebble's checksum of b. It is rotated and shifted, so that data
// that contains checksums is no more likely to have the right one.
func Checksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// chunkAt returns the intact chunk at an offset; ok is false if there is none.
func (r *reader) chunkAt(at int64) (c chunk, ok bool) {
	if at > r.dataEnd {
		return c, false
	}
	rest := r.data[at:min(int64(len(r.data)), at-at%blockSize+blockSize)]
	if len(rest) < headerManifest {
		return c, false
	}
	// Bytes 0 to 3 are the CRC, 4 and 5 the payload's size, 6 is the type.
	header, ok := r.header(rest[6])
	if !ok || len(rest) < header {
		return c, false
	}

	// Chunks of another number are left from an earlier log in the same file.
	if r.log && binary.LittleEndian.Uint32(rest[7:]) != r.number {
		return c, false
	}
	end := header + int(binary.LittleEndian.Uint16(rest[4:]))
	if end > len(rest) || binary.LittleEndian.Uint32(rest) != Checksum(rest[6:end]) {
		return c, false
	}

	// Each kind of header has four types, one for each place.
	c = chunk{place: place((rest[6] - 1) % 4), start: at, end: at + int64(end), payload: rest[header:end]}
	if header == headerSynced {
		c.synced = int64(binary.LittleEndian.Uint64(rest[11:]))
	}
	return c, true
}

// header returns the length of the header of a type of chunk; ok is false if this
// kind of journal has no such type. Each kind of header has four types, see chunkAt.
func (r *reader) header(kind byte) (length int, ok bool) {
	switch {
	case !r.log && kind >= 1 && kind <= 4:
		return headerManifest, true
	case r.log && kind >= 5 && kind <= 8:
		return headerLog, true
	case r.log && kind >= 9 && kind <= 12:
		return headerSynced, true
	}
	return 0, false
}

// BrokenPayload returns what follows the header of the chunk with which a broken part of a log begins. The
// header is as long as its type says, or as in most logs if that is none.
func BrokenPayload(b []byte) []byte {
	if len(b) < headerLog {
		return nil
	}
	header, ok := (&reader{log: true}).header(b[6])
	if !ok {
		header = headerSynced
	}
	return b[min(header, len(b)):]
}
