package plan

import (
	"math"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// maxBaseTime is the last base time that four bytes hold.
const maxBaseTime = math.MaxUint32 - math.MaxUint32%encoding.RowSeconds

// ScanRange returns the half-open range of base times, in seconds, that a query from
// start to end (ms, inclusive) reads. That is more than the query asks for, because
// points around it decide values inside it. The range is widened to whole downsample
// intervals, counted from 1970; a calendar interval counts with its nominal width, and a
// single bucket over all time does not widen it. The end is first moved by a second:
// OpenTSDB does so in an edge case whose condition always holds.
//
// Unlike OpenTSDB, it does not take times below 2^32 ms for seconds, and it cuts off
// times that no row key can hold.
// Source: TsdbQuery.getScanStartTimeSeconds, getScanEndTimeSeconds.
func ScanRange(start, end int64, d *scanplan.Downsample) (from, to int64) {
	var interval int64
	if d != nil && !d.All {
		interval = d.Interval
	}

	from, to = start/1000, end/1000+1
	if interval > 0 {
		// As in OpenTSDB, an end where an interval begins reads all of that interval. Then,
		// unlike below, an end on the hour stays.
		from -= 1000 * from % interval / 1000
		to += (interval - 1000*to%interval) / 1000
		to += (encoding.RowSeconds - to%encoding.RowSeconds) % encoding.RowSeconds
	} else {
		// As in OpenTSDB, an end on the hour reads another hour.
		to += encoding.RowSeconds - to%encoding.RowSeconds
	}

	// Base times that row keys can hold, and at least one hour.
	from = max(0, min(from-from%encoding.RowSeconds, maxBaseTime))
	return from, max(from+encoding.RowSeconds, min(to, maxBaseTime+encoding.RowSeconds))
}
