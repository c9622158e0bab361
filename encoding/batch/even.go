package batch

// Times at equal distances, as those of buckets without a gap or of points put by a
// timer, travel as the first two of them. The list of values in the same row gives
// their number: [t, t+10s] with five values are
//
//	t, t+10s, t+20s, t+30s, t+40s

// sparse returns the times that travel: the first two, or all if their distances
// differ.
func sparse(times []int64) []int64 {
	if len(times) < 3 {
		return times
	}

	step := times[1] - times[0]
	for i, t := range times[2:] {
		if t-times[i+1] != step {
			return times
		}
	}

	return times[:2]
}

// spread returns the n times that a list stands for. If only two of them travelled
// the result is in dst's memory, else it is the list.
func spread(dst *[]int64, times []int64, n int) []int64 {
	if len(times) != 2 || n < 3 {
		return times // none was left out
	}

	out := (*dst)[:0]
	for i, t := 0, times[0]; i < n; i, t = i+1, t+times[1]-times[0] {
		out = append(out, t)
	}

	*dst = out
	return out
}
