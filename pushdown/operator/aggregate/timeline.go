package aggregate

import (
	"slices"
	"sort"
)

// timeline computes the union of ascending columns of times. Its memory is used
// again from union to union; a union is valid until the next one.
type timeline struct {
	// runs are unions of the columns added so far. Each is more than twice as long
	// as the next one, so that a time is merged a logarithmic number of times.
	runs []run
	free [][]int64

	guard Guard // checked before memory is allocated
}

// run is an ascending column. It is memory of the timeline if owned is set, else a
// view of a member's times.
type run struct {
	times []int64
	owned bool
}

// reset empties the union.
func (u *timeline) reset(guard Guard) {
	u.guard = guard
	for _, r := range u.runs {
		u.release(r)
	}
	u.runs = u.runs[:0]
}

// add adds times to the union; it keeps the slice until reset. Its errors are the
// guard's.
func (u *timeline) add(times []int64) error {
	// Most series of a group have the same times, which the first run then has.
	if len(times) == 0 || len(u.runs) > 0 && covers(u.runs[0].times, times) {
		return nil
	}

	u.runs = append(u.runs, run{times: times})

	// Each run stays more than twice as long as the next one, so that a time is merged only a
	// logarithmic number of times.
	for n := len(u.runs); n > 1 && len(u.runs[n-2].times) <= 2*len(u.runs[n-1].times); n-- {
		if err := u.mergeLast(); err != nil {
			return err
		}
	}
	return nil
}

// union returns all times added since reset, ascending, each once.
func (u *timeline) union() ([]int64, error) {
	for len(u.runs) > 1 {
		if err := u.mergeLast(); err != nil {
			return nil, err
		}
	}

	if len(u.runs) == 0 {
		return nil, nil
	}
	return u.runs[0].times, nil
}

// mergeLast merges the last two runs.
func (u *timeline) mergeLast() error {
	n := len(u.runs)
	a, b := u.runs[n-2], u.runs[n-1]

	if err := u.guard.Check(); err != nil {
		return err
	}
	room, err := u.alloc(len(a.times) + len(b.times))
	if err != nil {
		return err
	}

	merged := merge(room, a.times, b.times)
	u.release(a)
	u.release(b)
	u.runs = append(u.runs[:n-2], run{merged, true})
	return nil
}

// alloc returns memory for n times.
func (u *timeline) alloc(n int) ([]int64, error) {
	for i, s := range u.free {
		if cap(s) >= n {
			u.free = slices.Delete(u.free, i, i+1)
			return s[:n], nil
		}
	}
	if err := u.guard.Reserve(8 * int64(n)); err != nil {
		return nil, err
	}
	return make([]int64, n), nil
}

// release keeps the memory of a run that is not needed any more.
func (u *timeline) release(r run) {
	if r.owned {
		u.free = append(u.free, r.times)
	}
}

// covers reports whether every time of s is in u; both ascend and are not empty.
func covers(u, s []int64) bool {
	// Members often share one slice, which then needs no comparison.
	if len(u) == len(s) && (&u[0] == &s[0] || slices.Equal(u, s)) {
		return true
	}
	// As many times that are not all equal, more times, or a later one are not covered.
	if len(s) >= len(u) || s[len(s)-1] > u[len(u)-1] {
		return false
	}

	u = u[from(u, s[0]):]
	for _, t := range s {
		for len(u) > 0 && u[0] < t {
			u = u[1:]
		}
		if len(u) == 0 || u[0] != t {
			return false
		}
	}
	return true
}

// merge writes the union of a and b to dst, which has room for both, and returns the
// part of dst that it has filled.
func merge(dst, a, b []int64) []int64 {
	n := 0
	for len(a) > 0 && len(b) > 0 {
		// A time that is in both is written once and removed from both.
		x, y := a[0], b[0]
		dst[n] = min(x, y)
		n++
		if x <= y {
			a = a[1:]
		}
		if y <= x {
			b = b[1:]
		}
	}
	n += copy(dst[n:], a)
	n += copy(dst[n:], b)
	return dst[:n]
}

// from returns the index of the first of ascending times that is not before t. It
// looks at the first three before it searches: mostly it is one of them.
func from(times []int64, t int64) int {
	for i := range 3 {
		if i == len(times) || times[i] >= t {
			return i
		}
	}
	return sort.Search(len(times), func(i int) bool { return times[i] >= t })
}

// after returns the index of the first of ascending times that is later than t. It
// looks at the last three before it searches.
func after(times []int64, t int64) int {
	for n := len(times); n > len(times)-3; n-- {
		if n == 0 || times[n-1] <= t {
			return n
		}
	}
	return sort.Search(len(times), func(i int) bool { return times[i] > t })
}
