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

	guard Guard // is asked before memory is allocated
}

// run is an ascending column; owned ones are memory of the timeline, the others
// views of a member.
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

// add puts times into the union and keeps the slice until reset. Its errors are
// the guard's.
func (u *timeline) add(times []int64) error {
	if len(times) == 0 || len(u.runs) > 0 && covers(u.runs[0].times, times) {
		return nil
	}
	u.runs = append(u.runs, run{times: times})
	for n := len(u.runs); n > 1 && len(u.runs[n-2].times) <= 2*len(u.runs[n-1].times); n-- {
		if err := u.fold(); err != nil {
			return err
		}
	}
	return nil
}

// union returns all times added since reset, ascending, each once.
func (u *timeline) union() ([]int64, error) {
	for len(u.runs) > 1 {
		if err := u.fold(); err != nil {
			return nil, err
		}
	}
	if len(u.runs) == 0 {
		return nil, nil
	}
	return u.runs[0].times, nil
}

// fold merges the last two runs.
func (u *timeline) fold() error {
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
