package aggregate

import (
	"slices"
	"sort"
)

// timeline makes the union of ascending columns of times. Its memory is used
// again from union to union; a union is valid until the next one.
type timeline struct {
	// runs are unions of what was added so far, each at least twice as long as
	// the next, so that every time is merged a logarithmic number of times.
	runs []run
	free [][]int64
}

// run is an ascending column; owned ones are memory of the timeline, the others
// views of a member.
type run struct {
	times []int64
	owned bool
}

// reset empties the union.
func (u *timeline) reset() {
	for _, r := range u.runs {
		u.release(r)
	}
	u.runs = u.runs[:0]
}

// add puts times into the union and keeps the slice until reset.
func (u *timeline) add(times []int64) {
	if len(times) == 0 || len(u.runs) > 0 && covers(u.runs[0].times, times) {
		return
	}
	u.runs = append(u.runs, run{times: times})
	for n := len(u.runs); n > 1 && len(u.runs[n-2].times) <= 2*len(u.runs[n-1].times); n-- {
		u.fold()
	}
}

// union returns all times added since reset, ascending, each once.
func (u *timeline) union() []int64 {
	for len(u.runs) > 1 {
		u.fold()
	}
	if len(u.runs) == 0 {
		return nil
	}
	return u.runs[0].times
}

// fold merges the last two runs.
func (u *timeline) fold() {
	n := len(u.runs)
	a, b := u.runs[n-2], u.runs[n-1]
	merged := merge(u.take(len(a.times)+len(b.times)), a.times, b.times)
	u.release(a)
	u.release(b)
	u.runs = append(u.runs[:n-2], run{merged, true})
}

// take returns memory for n times.
func (u *timeline) take(n int) []int64 {
	for i, s := range u.free {
		if cap(s) >= n {
			u.free = slices.Delete(u.free, i, i+1)
			return s[:n]
		}
	}
	return make([]int64, n)
}

func (u *timeline) release(r run) {
	if r.owned {
		u.free = append(u.free, r.times)
	}
}

// covers tells whether every time of s is in u.
func covers(u, s []int64) bool {
	if len(u) == len(s) && (&u[0] == &s[0] || slices.Equal(u, s)) {
		return true
	}
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

// merge writes the union of a and b to dst, which has room for both, and returns
// what it filled.
func merge(dst, a, b []int64) []int64 {
	n := 0
	for len(a) > 0 && len(b) > 0 {
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

// from is the index of the first of the ascending times that is not before t.
// Short columns are the ends of series that go on, where it is one of the first.
func from(times []int64, t int64) int {
	for i := range 3 {
		if i == len(times) || times[i] >= t {
			return i
		}
	}
	return sort.Search(len(times), func(i int) bool { return times[i] >= t })
}

// after is the index of the first of the ascending times that is later than t.
func after(times []int64, t int64) int {
	for n := len(times); n > len(times)-3; n-- {
		if n == 0 || times[n-1] <= t {
			return n
		}
	}
	return sort.Search(len(times), func(i int) bool { return times[i] > t })
}
