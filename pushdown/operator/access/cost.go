package access

// There are two ways to read the rows that have a wanted tag: to seek from key range to key range,
// of which each hour has some, or to look at every row. Which one costs less depends on how many
// rows an hour has, and nobody knows that. A part of few hours seeks: that costs at worst a few
// milliseconds too much. A part of many hours has a look at its first rows, and goes on for a
// stretch of hours in the way that would have cost less for these.

// Prices and sizes, in rows that are looked at.
const (
	// rowsPerRange is how many rows may be looked at for what a key range costs where there are rows.
	// On HBase, one host by two ranges an hour, over 600 hours of compacted rows, with 3, 10, 30 and
	// 200 rows an hour: 26, 16, 27, 27 ms by seeking, 14, 28, 54, 208 ms by looking. A range of an
	// hour without rows costs half a row.
	rowsPerRange = 4
	// hoursOfLook is the number of hours to which one can seek for what a look costs, and leastLook
	// the number of rows that cost little beside the call itself.
	hoursOfLook = 4
	leastLook   = 128
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

// SeekFrom is the number of rows in an hour beyond which seeking to its ranges costs less than
// looking at them all.
func SeekFrom(ranges int) int64 { return int64(ranges) * rowsPerRange }

// Look is what a look has seen.
type Look struct {
	Rows  int64 // at most LookRows
	Hours int64 // from the first row's to the last one's, both counted
	// All says that no row follows.
	All bool
}

// LookRows is how many rows a look reads, if an hour has so many ranges.
func LookRows(ranges int) int { return max(leastLook, hoursOfLook*int(SeekFrom(ranges))) }

// Seeks reports whether seeking would have cost less where the look was.
func (l Look) Seeks(ranges int) bool { return l.Rows > l.Hours*SeekFrom(ranges) }

// Stretch returns for how many hours a look is believed, given those of the stretch before, which
// was read in the same way; 0 if there is none.
func (l Look) Stretch(before int64) int64 {
	return max(ShortStretch, growth*l.Hours, growth*before)
}

// Shorter returns a shorter stretch, for one at whose end the other way costs less; false if it is
// short enough.
func Shorter(stretch int64) (int64, bool) {
	return max(stretch/2, ShortStretch), stretch > ShortStretch
}
