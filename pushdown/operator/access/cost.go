package access

// There are two ways to read the rows that have a wanted tag: to seek from key range to key range, a
// few in each hour, or to look at every row. Which one costs less depends on how many
// rows an hour has, and nobody knows that. A part of few hours seeks: that costs at worst a few
// milliseconds too much. A part of many hours has a look at its first rows, and goes on for a
// stretch of hours in the way that would have cost less for these.

// Prices are in bytes of rows: looking at a row that is not wanted costs rowPrice, and bytePrice for
// each of its bytes; a key range of an hour with rows costs rangePrice, for it is made, sent and
// sought. That of an hour without rows is not sought and costs a twentieth.
//
// On HBase, one host by two ranges an hour, over 600 hours of compacted rows of 60 points, 3, 10, 30
// and 200 in an hour: 26, 16, 27 and 27 ms by seeking, 14, 28, 54 and 208 ms by looking. Of rows of
// one point, 10 in an hour, 650 ms of processor time for 20,000 hours either way.
const (
	rowPrice   = 450
	bytePrice  = 1
	rangePrice = 2500
)

// Sizes of looks and stretches.
const (
	// hoursOfLook is the number of hours to which one can seek for what a look costs, and leastRows
	// and leastBytes are how much costs little compared with the call itself.
	hoursOfLook = 4
	leastRows   = 128
	leastBytes  = 64 << 10
	// ShortStretch is how many hours the shortest stretch has: looks cost a fraction of seeking.
	ShortStretch = 16 * hoursOfLook
	// fewRanges are made in a millisecond or two: as many a part may have for nothing.
	fewRanges = 2048
	// growth is how many times the hours behind a look its stretch may have, and how many times
	// those of the stretch before.
	growth = 4
)

// Long reports whether a part of so many hours has a look at its rows before it seeks, if each hour
// has so many ranges.
func Long(hours int64, ranges int) bool {
	return hours >= ShortStretch && hours*int64(ranges) > fewRanges
}

// Look is what a look has seen.
type Look struct {
	Rows  int64
	Bytes int64 // of these rows
	Hours int64 // from the first row's to the last one's, both counted
	// All says that no row follows.
	All bool
}

// LookAt is how many rows, and how many of their bytes, a look reads, if an hour has so many ranges:
// it ends with whichever comes first.
func LookAt(ranges int) (rows int, bytes int64) {
	price := hoursOfLook * rangePrice * ranges
	return max(leastRows, price/(2*rowPrice)), max(leastBytes, int64(price/bytePrice))
}

// Seeks reports whether seeking would have cost less where the look was.
func (l Look) Seeks(ranges int) bool {
	return rowPrice*l.Rows+bytePrice*l.Bytes > rangePrice*l.Hours*int64(ranges)
}

// Stretch returns for how many hours a look is believed, given those of the stretch before, which
// was read in the same way; 0 if there is none.
func (l Look) Stretch(before int64) int64 {
	return max(ShortStretch, growth*l.Hours, growth*before)
}

// Shorter returns half of a stretch at whose end the other way costs less, and whether the end of
// that half needs a look, too.
func Shorter(stretch int64) (int64, bool) {
	return max(stretch/2, ShortStretch), stretch > ShortStretch
}
