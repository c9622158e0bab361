package journal

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	blockSize = 32 << 10
	// sector is what a disk writes whole or not at all.
	sector = 512

	headerManifest = 7
	headerLog      = headerManifest + 4
	headerSynced   = headerLog + 8
)

// place is where in its record a chunk stands.
type place uint8

const (
	full place = iota
	first
	middle
	last
)

// chunk is one that is whole: its checksum is right and its number the log's.
type chunk struct {
	place
	start, end int64 // in the file, header included
	payload    []byte
	synced     int64 // up to there the file was on disk; 0 where unknown
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is pebble's: rotated and shifted, so that data which holds checksums
// of its own is no more likely to look right.
func Checksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// chunkAt returns the chunk that begins at offset at, false if none is there.
func (r *reader) chunkAt(at int64) (c chunk, ok bool) {
	if at > r.used {
		return c, false
	}
	rest := r.data[at:min(int64(len(r.data)), at-at%blockSize+blockSize)]
	if len(rest) < headerManifest {
		return c, false
	}
	header, ok := r.header(rest[6])
	if !ok || len(rest) < header {
		return c, false
	}
	if r.log && binary.LittleEndian.Uint32(rest[7:]) != r.number {
		return c, false
	}
	end := header + int(binary.LittleEndian.Uint16(rest[4:]))
	if end > len(rest) || binary.LittleEndian.Uint32(rest) != Checksum(rest[6:end]) {
		return c, false
	}
	c = chunk{place: place((rest[6] - 1) % 4), start: at, end: at + int64(end), payload: rest[header:end]}
	if header == headerSynced {
		c.synced = int64(binary.LittleEndian.Uint64(rest[11:]))
	}
	return c, true
}

// header is the length of the header of a type that may stand in this journal.
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
