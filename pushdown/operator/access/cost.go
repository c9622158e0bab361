package access

// There are two ways to read the rows that have a wanted tag: to seek from key range to key range, a
// few in each hour, or to read every row. Which one costs less depends on the number of rows in an
// hour, which is unknown. A part of few hours seeks: that costs at worst a few milliseconds too
// much. A part of many hours probes its first rows, and reads a section of hours in the way that
// would have cost less for these.

// Prices are in bytes of rows: reading a row that is not wanted costs rowPrice, and bytePrice for
// each of its bytes; a key range of an hour with rows costs rangePrice, because it is made, sent
// and sought. The range of an hour without rows is not sought and costs a twentieth.
//
// On HBase, one host by two ranges an hour, over 600 hours of compacted rows of 60 points, 3, 10, 30
// and 200 in an hour: 26, 16, 27 and 27 ms by seeking, 14, 28, 54 and 208 ms by reading every row.
// For rows of one point, 10 in an hour, 650 ms of processor time for 20,000 hours either way.
const (
	rowPrice   = 450
	bytePrice  = 1
	rangePrice = 2500
)

// Sizes of probes and sections.
const (
	// hoursOfProbe is the number of hours to which one can seek for the cost of a probe, and
	// leastRows and leastBytes are sizes that cost little compared with the call itself.
	hoursOfProbe = 4
	leastRows    = 128
	leastBytes   = 64 << 10
	// ShortSection is the number of hours of the shortest section: probes cost a fraction of
	// seeking.
	ShortSection = 16 * hoursOfProbe
	// fewRanges are made in a millisecond or two: a part may have as many without a probe.
	fewRanges = 2048
	// growth limits the hours of a section: so many times those of its probe, or of the section
	// before.
	growth = 4
)

// NeedsProbe reports whether a part probes its rows before it seeks, given its hours and the ranges in
// each.
func NeedsProbe(hours int64, ranges int) bool {
	return hours >= ShortSection && hours*int64(ranges) > fewRanges
}

// Probe is what a probe has seen.
type Probe struct {
	Rows  int64
	Bytes int64 // of these rows
	Hours int64 // from the first row's to the last one's, both counted
	// All is set if no row follows.
	All bool
}

// ProbeSize is how many rows and bytes a probe reads at most, if an hour has so many ranges.
func ProbeSize(ranges int) (rows int, bytes int64) {
	price := hoursOfProbe * rangePrice * ranges
	return max(leastRows, price/(2*rowPrice)), max(leastBytes, int64(price/bytePrice))
}

// Seeks reports whether seeking would have cost less for the rows of the probe.
func (l Probe) Seeks(ranges int) bool {
	return rowPrice*l.Rows+bytePrice*l.Bytes > rangePrice*l.Hours*int64(ranges)
}

// Section returns for how many hours a probe is trusted, given those of the section before, if that
// was read in the same way, else 0.
func (l Probe) Section(before int64) int64 {
	return max(ShortSection, growth*l.Hours, growth*before)
}

// Shorter halves a section at whose end the other way costs less. It reports whether the end of
// that half needs a probe, too.
func Shorter(section int64) (int64, bool) {
	return max(section/2, ShortSection), section > ShortSection
}
