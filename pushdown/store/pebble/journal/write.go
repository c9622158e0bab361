package journal

import "encoding/binary"

// AppendLog appends a closed log of records to dst, which is empty or ends with
// a block.
func AppendLog(dst []byte, number uint64, records []Record) []byte {
	for _, rec := range records {
		dst = appendRecord(dst, uint32(number), rec.Data)
	}
	dst = fill(dst)
	mark := [headerLog]byte{6: 5}
	binary.LittleEndian.PutUint32(mark[7:], uint32(number)+1)
	return append(dst, mark[:]...)
}

// appendRecord appends a record as chunks of types 5 to 8.
func appendRecord(dst []byte, number uint32, data []byte) []byte {
	for begun := false; ; begun = true {
		dst = fill(dst)
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

// fill ends a block that has no room for any header.
func fill(dst []byte) []byte {
	if rest := blockSize - len(dst)%blockSize; rest < headerSynced {
		dst = append(dst, make([]byte, rest)...)
	}
	return dst
}
