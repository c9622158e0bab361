package batch

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// The names of a group's spans are alike: salt, metric and tag keys are the same in
// all of them, and only tag values differ. They travel as
//
//	count                          uvarint
//	length of each                 uvarints
//	first bytes of all, second bytes of all, …
//
// where each byte is written as its difference to the same byte of the last name
// before it that is long enough. Equal bytes become a run of zeros and values that
// count up a run of ones, and LZ4 compresses runs to almost nothing. 00 00 01 07 and
// 00 00 01 09 are
//
//	02 | 04 04 | 00 00 | 00 00 | 01 00 | 07 02

// appendNames appends the packed names to dst: their number, their lengths, the first bytes of
// all, the second bytes of all, and so on. Each byte is the difference to the same byte of the
// last name that has one, because LZ4 compresses the runs of equal bytes that this makes.
func appendNames(dst []byte, names [][]byte) []byte {
	// Names may be a great many: dst grows once.
	longest, total := 0, 0
	for _, n := range names {
		longest, total = max(longest, len(n)), total+len(n)
	}
	dst = slices.Grow(dst, total+len(names)+binary.MaxVarintLen64)

	dst = binary.AppendUvarint(dst, uint64(len(names)))
	for _, n := range names {
		dst = binary.AppendUvarint(dst, uint64(len(n)))
	}

	for i := range longest {
		last := byte(0)
		for _, n := range names {
			if i < len(n) {
				dst = append(dst, n[i]-last)
				last = n[i]
			}
		}
	}
	return dst
}

// parseNames is the inverse of appendNames. It uses dst's memory for the slice of
// names. It fails unless every byte of b is used. The memory that it allocates is
// bounded by the length of b, not by the numbers in it.
func parseNames(dst [][]byte, b []byte) ([][]byte, error) {
	if len(b) == 0 {
		return dst[:0], nil
	}

	// Each name has at least the byte of its length, so b has no more names than bytes.
	count, rest, err := uvarint(b, len(b))
	if err != nil {
		return nil, fmt.Errorf("batch: cannot read count of names: %w", err)
	}

	lengths, total, longest := rest, 0, 0
	for i := range count {
		var n int
		if n, rest, err = uvarint(rest, len(b)-total); err != nil {
			return nil, fmt.Errorf("batch: cannot read length of name %d of %d: %w", i, count, err)
		}
		total += n
		longest = max(longest, n)
	}
	if total != len(rest) {
		return nil, fmt.Errorf("batch: %d names of %d bytes in %d bytes", count, total, len(rest))
	}

	// The names share one allocation; a name's capacity ends where the next begins.
	all := make([]byte, total)
	dst = slices.Grow(dst[:0], count)
	for range count {
		n, after := binary.Uvarint(lengths) // it was read above
		lengths = lengths[after:]
		dst = append(dst, all[:n:n])
		all = all[n:]
	}

	// The first bytes of all names, then the second ones, and so on: see appendNames.
	for i := range longest {
		last := byte(0)
		for _, n := range dst {
			if i < len(n) {
				last += rest[0]
				n[i], rest = last, rest[1:]
			}
		}
	}
	return dst, nil
}

// uvarint reads a number and returns the bytes that follow it. It fails for a number
// larger than most.
func uvarint(b []byte, most int) (v int, rest []byte, err error) {
	u, n := binary.Uvarint(b)
	if n <= 0 || u > uint64(most) {
		return 0, nil, fmt.Errorf("%d in %d bytes, want a number up to %d", u, len(b), most)
	}
	return int(u), b[n:], nil
}
