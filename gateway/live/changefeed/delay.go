package changefeed

import (
	"time"

	"downpour/pushdown/store"
)

// delay is how far the times that cells carry lie behind the moments from which
// on they can be read: by how much a region server's clock is behind ours, how long
// its log takes, how late a replicated cell comes. It is measured by cells of which
// is known that the look before has not seen them.
type delay struct {
	looked         time.Time     // when that look began, zero for none
	recent, before time.Duration // the longest of this period and of the last one
	began          time.Time     // of this period
}

// delayPeriod is how long a delay is remembered at least; longestDelay bounds
// what is made of it, for each second of it has rows read again by each look for
// late points.
const (
	delayPeriod  = time.Hour
	longestDelay = 10 * time.Minute
)

// begin is called when a look has ended that began at now.
func (d *delay) begin(now time.Time) {
	d.looked = now
	if now.Sub(d.began) >= delayPeriod {
		d.recent, d.before, d.began = 0, d.recent, now
	}
}

// grown takes in a row that the look before has seen up to an offset, -1 for
// not at all: what lies behind it is new.
func (d *delay) grown(r *store.Row, last int32) {
	if last < 0 {
		return
	}
	for i := range r.Cells {
		if o := offsetOf(r.Cells[i].Qualifier); o != everywhere && o > last {
			d.see(r.Cells[i].Timestamp)
		}
	}
}

// see takes in the time of a cell that the look before has not seen.
func (d *delay) see(stamp int64) {
	if !d.looked.IsZero() {
		d.recent = max(d.recent, d.looked.Sub(time.UnixMilli(stamp)))
	}
}

// known is the delay that is known of.
func (d *delay) known() time.Duration { return min(max(d.recent, d.before), longestDelay) }
