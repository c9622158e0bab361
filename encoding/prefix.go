package encoding

import "bytes"

// PrefixEnd is the first key after all keys that begin with prefix, the exclusive
// end of their range: 00 00 02 for 00 00 01, and 01 for 00 FF. It is nil, the
// table's end, if prefix has no bytes but FF.
func PrefixEnd(prefix []byte) []byte {
	next := bytes.Clone(prefix)
	for i := len(next) - 1; i >= 0; i-- {
		// A byte that was FF becomes 00 and is dropped: the carry continues.
		if next[i]++; next[i] != 0 {
			return next[:i+1]
		}
	}
	return nil
}
