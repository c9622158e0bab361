package httpapi

import (
	"sync"
	"time"

	"downpour/encoding"
)

// lump is the points of some groups that follow each other, or why there are
// none.
type lump struct {
	first  int // index of the first group
	points []encoding.Points
	err    error
}

// lumpPoints is how many points, about, are handed over at once: enough that the
// handing over costs nothing beside them.
const lumpPoints = 64 << 10

// fillAhead makes the points of all groups, in order, while the lump before is
// still written: no more than one lump or one group ahead. stop ends it and must
// be called; it returns when nothing is made any more.
func fillAhead(groups int, fill func(i int) (encoding.Points, error)) (lumps <-chan lump, stop func()) {
	made, stopped := make(chan lump), make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		defer close(made)
		for next := 0; next < groups; {
			l := nextLump(next, groups, fill)
			next += len(l.points)
			select {
			case made <- l:
			case <-stopped:
				return
			}
			if l.err != nil {
				return
			}
		}
	})
	return made, func() { close(stopped); work.Wait() }
}

// nextLump makes points until there are enough of them, or it has taken so long
// that those there are should go.
func nextLump(first, groups int, fill func(i int) (encoding.Points, error)) lump {
	l, began := lump{first: first}, time.Now()
	for i, n := first, 0; i < groups && n < lumpPoints && time.Since(began) < flushPause; i++ {
		points, err := fill(i)
		if err != nil {
			l.err = err
			return l
		}
		l.points = append(l.points, points)
		n += points.Len()
	}
	return l
}
