package plan

import (
	"math"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// maxBaseTime is the last hour that four bytes can name.
const maxBaseTime = math.MaxUint32 - math.MaxUint32%encoding.RowSeconds

// ScanRange is the half-open range of base times, in seconds, that a query from
// start to end (ms, inclusive) reads: more than the query asks for, because
// points around it decide values inside it. All intervals count from 1970, also
// those of calendar buckets, by their nominal width; a bucket over all time
// counts for nothing. The end is first moved by a second, an edge case of the
// reference whose condition always holds.
//
// Unlike the reference, times below 2^32 ms are not taken for seconds, and times
// that no row key can hold are cut off.
// Source: TsdbQuery.getScanStartTimeSeconds, getScanEndTimeSeconds.
func ScanRange(start, end int64, d *scanplan.Downsample) (from, to int64) {
	var interval int64
	if d != nil && !d.All {
		interval = d.Interval
	}
	from, to = start/1000, end/1000+1
	if interval > 0 {
		from -= 1000 * from % interval / 1000
		to += (interval - 1000*to%interval) / 1000
		to += (encoding.RowSeconds - to%encoding.RowSeconds) % encoding.RowSeconds
	} else {
		to += encoding.RowSeconds - to%encoding.RowSeconds
	}
	from = max(0, min(from-from%encoding.RowSeconds, maxBaseTime))
	return from, max(from+encoding.RowSeconds, min(to, maxBaseTime+encoding.RowSeconds))
}
