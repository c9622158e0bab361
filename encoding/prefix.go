package encoding

import "bytes"

// Behind is the first key behind all that begin with prefix: 00 00 02 for
// 00 00 01, 01 for 00 FF. It is nil, the table's end, if there is none.
func Behind(prefix []byte) []byte {
	next := bytes.Clone(prefix)
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			return next[:i+1]
		}
	}
	return nil
}
