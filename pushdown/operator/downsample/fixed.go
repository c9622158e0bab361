package downsample

// fixed is buckets of one width, in ms, aligned to 1970 and not to the query's start.
type fixed int64

// floor returns the start of the bucket of t.
func (f fixed) floor(t int64) int64 { return t - t%int64(f) }

// bounds returns the bucket of t. Mostly it is the one after prev, which is math.MinInt64 at first.
func (f fixed) bounds(t, prev int64) (start, end int64) {
	if start = prev; t >= prev+int64(f) {
		start = f.floor(t)
	}
	return start, start + int64(f)
}

// grid begins with the bucket that has the start of the scan range, although no series
// has a value in it if the bucket begins earlier, and ends before the bucket that has
// the end. about is the expected number of buckets.
func (f fixed) grid(from, to int64, about int, check func() error) (stamps, starts []int64, err error) {
	stamps = make([]int64, 0, about)
	for t, end := f.floor(from), f.floor(to); t < end; t += int64(f) {
		if len(stamps)%checkBuckets == 0 {
			if err := check(); err != nil {
				return nil, nil, err
			}
		}
		stamps = append(stamps, t)
	}
	return stamps, stamps, nil
}

// whole is one bucket for the whole query, stamped with the query's start. Unlike
// elsewhere the query's end is exclusive.
type whole struct{ start, end int64 }

func (w whole) bounds(int64, int64) (start, end int64) { return w.start, w.end }

func (w whole) grid(int64, int64, int, func() error) (stamps, starts []int64, err error) {
	return nil, nil, nil
}
