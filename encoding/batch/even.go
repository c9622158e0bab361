package batch

// Times that stand at one distance from each other, as buckets without a hole and
// points of a timer do, travel as the first two of them: the list of values beside
// them tells how many there are. [t, t+10s] beside five values are
//
//	t, t+10s, t+20s, t+30s, t+40s

// sparse is what travels of times.
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

// spread returns the n times that a list stands for, in dst's memory if it does not
// hold them itself.
func spread(dst *[]int64, times []int64, n int) []int64 {
	if len(times) != 2 || n < 3 {
		return times
	}
	out := (*dst)[:0]
	for i, t := 0, times[0]; i < n; i, t = i+1, t+times[1]-times[0] {
		out = append(out, t)
	}
	*dst = out
	return out
}
