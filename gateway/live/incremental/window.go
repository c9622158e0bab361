package incremental

import (
	"cmp"
	"math"
	"slices"
)

// Window is an interval of time in ms, both ends inclusive.
type Window struct{ From, To int64 }

// always is all of time. Adding or subtracting one at either end does not overflow.
var always = Window{math.MinInt64 / 2, math.MaxInt64 / 2}

// mergeWindows sorts windows and merges those that overlap or touch. It works in
// place and returns the shortened slice.
func mergeWindows(windows []Window) []Window {
	if len(windows) < 2 {
		return windows
	}

	slices.SortFunc(windows, func(a, b Window) int { return cmp.Compare(a.From, b.From) })

	last := 0
	for _, w := range windows[1:] {
		if w.From <= windows[last].To+1 {
			windows[last].To = max(windows[last].To, w.To)
			continue
		}
		last++
		windows[last] = w
	}
	return windows[:last+1]
}

// wholeSeconds widens windows to whole seconds and merges them. A client whose
// times are in seconds sees only the last point of each second, so it needs all
// points of a second in which anything has changed.
func wholeSeconds(windows []Window) []Window {
	for i, w := range windows {
		// The ends of always are no times: they are not changed. The added 1000 makes
		// the remainder of a negative time positive.
		if w.From > always.From {
			w.From -= (w.From%1000 + 1000) % 1000
		}
		if w.To < always.To {
			w.To += 999 - (w.To%1000+1000)%1000
		}
		windows[i] = w
	}
	return mergeWindows(windows)
}
