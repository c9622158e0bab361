package downsample

import "math"

// fixed are buckets of an interval in ms, aligned to the epoch, whatever the
// query's start.
type fixed int64

func (f fixed) floor(t int64) int64 { return t - t%int64(f) }

func (f fixed) bounds(t, prev int64) (start, end int64) {
	if start = prev; prev == math.MinInt64 || t >= prev+int64(f) {
		start = f.floor(t)
	}
	return start, start + int64(f)
}

// grid begins with the bucket that holds the start of the scan range, although a
// series never has a value there when it begins before, and stops before the
// bucket that holds the end.
func (f fixed) grid(from, to int64) (stamps, starts []int64) {
	for t := f.floor(from); t < f.floor(to); t += int64(f) {
		stamps = append(stamps, t)
	}
	return stamps, stamps
}

// whole is the one bucket of a whole query, stamped with the query's start. The
// end is exclusive here, unlike everywhere else.
type whole struct{ start, end int64 }

func (w whole) bounds(int64, int64) (start, end int64) { return w.start, w.end }

func (w whole) grid(int64, int64) (stamps, starts []int64) { return nil, nil }
