package journal

import "encoding/binary"

// AppendLog appends a closed log with records to dst, whose length is a multiple of
// 32 KiB.
func AppendLog(dst []byte, number uint64, records []Record) []byte {
	for _, rec := range records {
		dst = appendRecord(dst, uint32(number), rec.Data)
	}

	dst = padBlock(dst)
	// As pebble's LogWriter does: a chunk of type 5 without checksum, size and payload. Its
	// number is another log's, so readers end there.
	end := [headerLog]byte{6: 5}
	binary.LittleEndian.PutUint32(end[7:], uint32(number)+1)
	return append(dst, end[:]...)
}

// appendRecord appends a record as chunks of types 5 to 8.
func appendRecord(dst []byte, number uint32, data []byte) []byte {
	for begun := false; ; begun = true {
		dst = padBlock(dst)
		n := min(len(data), blockSize-len(dst)%blockSize-headerLog)
		kind := first
		switch all := n == len(data); {
		case all && !begun:
			kind = full
		case all:
			kind = last
		case begun:
			kind = middle
		}

		at := len(dst)
		dst = append(dst, 0, 0, 0, 0, byte(n), byte(n>>8), 5+byte(kind))
		dst = binary.LittleEndian.AppendUint32(dst, number)
		dst = append(dst, data[:n]...)
		binary.LittleEndian.PutUint32(dst[at:], Checksum(dst[at+6:]))

		if data = data[n:]; len(data) == 0 {
			return dst
		}
	}
}

// padBlock ends a block with zeros if it has no room for the longest header.
func padBlock(dst []byte) []byte {
	if rest := blockSize - len(dst)%blockSize; rest < headerSynced {
		dst = append(dst, make([]byte, rest)...)
	}
	return dst
}
