package queryroutes

import (
	"sync"
	"time"

	"downpour/encoding"
	"downpour/pushdown/operator"
)

// filledGroups are consecutive groups with their points made, or the error of the
// group after them.
type filledGroups struct {
	first  int // index of the first group
	points []encoding.Points
	err    error
}

// pointsPerHandover is about how many points are passed on in one message: enough that the channel
// costs nothing in comparison.
const pointsPerHandover = 64 << 10

// fillAhead makes the points of all groups, in order, in a goroutine. It is ahead of
// its reader by one element of the channel, or by one group if that is larger. pause is
// called before each handover, which may have to wait for the reader. The caller must
// call stop, which returns when fill has ended.
func fillAhead(groups int, fill func(i int) (encoding.Points, error),
	pause func()) (filled <-chan filledGroups, stop func()) {
	made, stopped := make(chan filledGroups), make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		defer close(made)
		for next := 0; next < groups; {
			f := fillNext(next, groups, fill)
			next += len(f.points)
			pause()
			select {
			case made <- f:
			case <-stopped:
				return
			}
			if f.err != nil {
				return
			}
		}
	})
	return made, func() { close(stopped); work.Wait() }
}

// fillNext makes points until there are enough for a handover, or until it has taken so long that
// the reader should send them.
func fillNext(first, groups int, fill func(i int) (encoding.Points, error)) (f filledGroups) {
	f.first = first
	began := time.Now()
	defer func() {
		// On this goroutine it would end the process.
		if v := recover(); v != nil {
			f.err = operator.Recovered(v)
		}
	}()
	for i, n := first, 0; i < groups && n < pointsPerHandover && time.Since(began) < flushPause; i++ {
		points, err := fill(i)
		if err != nil {
			f.err = err
			return f
		}
		f.points = append(f.points, points)
		n += points.Len()
	}
	return f
}
