package incremental

import (
	"math"
	"slices"
)

// Window is an interval of time in ms, both ends inclusive.
type Window struct{ From, To int64 }

// always is all of time. Its ends leave room for one more.
var always = Window{math.MinInt64 / 2, math.MaxInt64 / 2}

// join sorts windows and makes one of those that meet, in place.
func join(windows []Window) []Window {
	if len(windows) < 2 {
		return windows
	}
	slices.SortFunc(windows, func(a, b Window) int {
		if a.From < b.From {
			return -1
		}
		return 1
	})
	n := 0
	for _, w := range windows[1:] {
		if w.From <= windows[n].To+1 {
			windows[n].To = max(windows[n].To, w.To)
			continue
		}
		n++
		windows[n] = w
	}
	return windows[:n+1]
}

// wholeSeconds widens windows to the borders of seconds: of the points of one
// second a client may see only the last.
func wholeSeconds(windows []Window) []Window {
	for i, w := range windows {
		if w.From > always.From {
			w.From -= (w.From%1000 + 1000) % 1000
		}
		if w.To < always.To {
			w.To += 999 - (w.To%1000+1000)%1000
		}
		windows[i] = w
	}
	return join(windows)
}
