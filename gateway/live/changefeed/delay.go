package changefeed

import (
	"time"

	"downpour/pushdown/store"
)

// delay measures how long after their timestamps cells can first be read: by how much a
// region server's clock is behind ours, how long its log takes, how late a replicated
// cell comes. It is measured on cells that the scan before is known not to have seen.
type delay struct {
	scanned        time.Time     // when the scan before began; zero for none
	recent, before time.Duration // the longest of this period and of the last one
	began          time.Time     // when this period began
}

const (
	// delayPeriod is how long a measured delay counts at least.
	delayPeriod = time.Hour
	// longestDelay bounds the delay that is acted on: each scan for late points
	// reads the rows of that time again.
	longestDelay = 10 * time.Minute
)

// scanEnded is called when a scan has ended that began at now.
func (d *delay) scanEnded(now time.Time) {
	d.scanned = now
	if now.Sub(d.began) >= delayPeriod {
		d.recent, d.before, d.began = 0, d.recent, now
	}
}

// observeRow measures the new cells of a row: those after the last offset (ms) that
// the scan before saw. last is -1 for a row that it did not see; then it is unknown
// which cells are new.
func (d *delay) observeRow(r *store.Row, last int32) {
	if last < 0 {
		return
	}
	for i := range r.Cells {
		if o := offsetOf(r.Cells[i].Qualifier); o != everywhere && o > last {
			d.observe(r.Cells[i].Timestamp)
		}
	}
}

// observe measures a cell that the scan before has not seen, by its timestamp in
// ms.
func (d *delay) observe(timestamp int64) {
	if !d.scanned.IsZero() { // to the first scan all cells are new
		d.recent = max(d.recent, d.scanned.Sub(time.UnixMilli(timestamp)))
	}
}

// longest returns the longest delay that counts, at most longestDelay.
func (d *delay) longest() time.Duration { return min(max(d.recent, d.before), longestDelay) }
