package queryroutes

import (
	"errors"
	"testing"
	"testing/synctest"

	"downpour/encoding"
)

// Filled groups come in order, each once. One handover is made ahead of the reader, and no more
// when the reader stops.
func TestFillAhead(t *testing.T) {
	const groups, each = 9, pointsPerHandover / 2
	points := encoding.Points{Time: make([]int64, each), Bits: make([]uint64, each), Float: make([]bool, each)}
	fault := errors.New("a fault")
	run := func(take, failing int) (firsts []int, made int, err error) {
		synctest.Test(t, func(t *testing.T) {
			working := false
			filled, stop := fillAhead(groups, func(i int) (encoding.Points, error) {
				working = true
				if i != made {
					t.Errorf("group %d is made after %d others", i, made)
				}
				if made++; i == failing {
					return encoding.Points{}, fault
				}
				return points, nil
			}, func() { working = false })
			for range take {
				synctest.Wait()
				if working {
					t.Error("the time in which the reader is waited for counts as work")
				}
				l, more := <-filled
				if !more || l.err != nil {
					err = l.err
					break
				}
				for i := range l.points {
					firsts = append(firsts, l.first+i)
				}
			}
			synctest.Wait()
			stop()
		})
		return firsts, made, err
	}
	f := func(take, failing, wantGroups, wantMade int, wantErr error) {
		t.Helper()
		got, made, err := run(take, failing)
		if len(got) != wantGroups || made != wantMade || err != wantErr {
			t.Errorf("%d filled taken, group %d fails: groups %v of %d made, error %v; want %d of %d, %v", take,
				failing, got, made, err, wantGroups, wantMade, wantErr)
		}
		for i, g := range got {
			if g != i {
				t.Errorf("got the groups %v, want 0, 1, 2, …", got)
			}
		}
	}
	f(100, -1, groups, groups, nil)
	f(1, -1, 2, 4, nil)
	f(0, -1, 0, 2, nil)
	f(100, 4, 4, 5, fault)
	f(1, 4, 2, 4, nil)
}
