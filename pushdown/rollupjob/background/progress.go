package background

import (
	"encoding/json"
	"fmt"

	"downpour/encoding"
)

const (
	day = 24 * encoding.RowSeconds
	// grain is the time whose hours are rolled up together.
	grain = 6 * encoding.RowSeconds
	// recent is the time before the last sealed hour that is checked each time.
	recent = 2 * day
	// window is the time of one step of the walk.
	window = 32 * day
	// walkEvery is the time from the begin of one walk to that of the next.
	walkEvery = day
)

// progress is how far the work is, the state of the lease. Times are in s since 1970.
type progress struct {
	Newest newest `json:"newest"`
	Walk   walk   `json:"walk"`
}

// newest is the pass over all metrics for the hours that were sealed last.
type newest struct {
	To   int64        `json:"to"`             // the hours before it
	Next encoding.UID `json:"next,omitempty"` // metrics up to this one are done
	Done bool         `json:"done"`
}

// walk is the walk over all metrics and all hours.
type walk struct {
	Began  int64        `json:"began"`
	Top    int64        `json:"top"`              // end of its first window
	To     int64        `json:"to"`               // end of the window that it is in
	Next   encoding.UID `json:"next,omitempty"`   // in the window, metrics up to this one are done
	Oldest int64        `json:"oldest,omitempty"` // time of the first raw row seen of any metric; 0 if none was
	Done   bool         `json:"done"`
}

// parseProgress reads the state of a lease, nil if there is none yet.
func parseProgress(state []byte) (p progress, err error) {
	if len(state) == 0 {
		return progress{}, nil
	}
	if err := json.Unmarshal(state, &p); err != nil {
		return p, fmt.Errorf("cannot read how far rollups are made: got %.200q: %w", state, err)
	}
	return p, nil
}

// pass is work on all metrics between two times.
type pass struct {
	from, to int64
	next     *encoding.UID
	walk     bool
	first    bool // the walk's first window, in which the first row of each metric is looked up
}

// next returns the pass to work on if the hours before sealed are, nil if there is none now.
func (p *progress) next(sealed, now int64) *pass {
	// Work for a time in the future is repeated: a clock was wrong.
	if n := &p.Newest; n.To == 0 || n.Done && n.To != sealed {
		*n = newest{To: sealed}
	}
	if n := &p.Newest; !n.Done {
		return &pass{from: max(0, n.To-recent), to: n.To, next: &n.Next}
	}

	if w := &p.Walk; w.Top == 0 || w.Began > now || w.Done && now-w.Began >= walkEvery {
		top := (sealed + window - 1) / window * window
		*w = walk{Began: now, Top: top, To: top}
	}
	if w := &p.Walk; !w.Done {
		return &pass{from: max(0, w.To-window), to: w.To, next: &w.Next, walk: true, first: w.To == w.Top}
	}
	return nil
}

// saw notes the time of a metric's first raw row.
func (p *progress) saw(base int64) {
	if w := &p.Walk; w.Oldest == 0 || base < w.Oldest {
		w.Oldest = max(base, 1)
	}
}

// finish notes that all metrics of a pass are done.
func (p *progress) finish(of *pass) {
	if !of.walk {
		p.Newest.Done, p.Newest.Next = true, nil
		return
	}
	w := &p.Walk
	w.To, w.Next = w.To-window, nil
	w.Done = w.Oldest == 0 || w.To <= w.Oldest
}

// after is the time until something is to be done, if nothing is now.
func (p *progress) after(sealed, now int64, margin int64) int64 {
	return max(1, min(sealed+grain+margin, p.Walk.Began+walkEvery)-now)
}
