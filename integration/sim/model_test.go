package sim

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// point names a point: a series, and a time in seconds.
type point struct {
	metric, host string
	at           int64
}

func (p point) String() string { return fmt.Sprintf("%s{host=%s} at %d", p.metric, p.host, p.at) }

// hour names the row of a point.
func (p point) hour() point { return point{p.metric, p.host, p.at - p.at%3600} }

// absent is the value of a point that nobody has put, or that was deleted. Others are positive.
const absent = 0

// course is what a point was: its values one after another. The first is absent.
type course struct {
	values       []int64
	acknowledged int // index of the value that was acknowledged last
	refused      bool
	torn         bool // put or deleted while the table was replaced: nobody says whether before or after
}

// follows reports whether a reader who has seen one value may see another one later.
func (c course) follows(before, after int64) bool {
	i := slices.Index(c.values, before)
	return i >= 0 && slices.Contains(c.values[i:], after)
}

// model knows what each point was, and what was acknowledged. A point has one writer, who gives it
// another value only once its last one is acknowledged, and was never refused: of two puts that
// overlap nobody says which is newer, and a gateway may still be writing what it refused.
type model struct {
	mu     sync.Mutex
	points map[point]course
	lost   map[point]bool // hours of series that may be deleted at any time: a deletion was refused
	last   int64          // value
	keep   time.Duration  // age beyond which rows may be deleted, 0 for never
	calm   bool           // they have been, since nothing fails
	tears  bool           // the table is being replaced
}

func newModel() *model { return &model{points: map[point]course{}, lost: map[point]bool{}} }

// begin gives a point its next value, which is on the way from now on. It returns false if the last one may be, too.
func (m *model) begin(p point) (value int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, known := m.points[p]
	if !known {
		c.values = []int64{absent}
	}
	if m.lost[p.hour()] || c.refused || c.torn || c.acknowledged < len(c.values)-1 {
		return 0, false
	}
	m.last++
	c.torn = m.tears
	c.values = append(c.values[:len(c.values):len(c.values)], m.last) // a snapshot keeps the old ones
	m.points[p] = c
	return m.last, true
}

// known reports whether a point was ever put.
func (m *model) known(p point) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.points[p]
	return ok
}

// beginDeletion says that an hour of a series is being deleted. It returns the points that are gone
// once the deletion is acknowledged. A point whose put was refused is not among them, because a
// gateway may still write it.
func (m *model) beginDeletion(hour point) (deleted map[point]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	deleted = map[point]int64{}
	for p, c := range m.points {
		if p.hour() != hour {
			continue
		}
		if !c.refused {
			deleted[p] = absent
		}
		c.torn = c.torn || m.tears
		c.values = append(c.values[:len(c.values):len(c.values)], absent)
		m.points[p] = c
	}
	return deleted
}

// acknowledge says that the last values of points were acknowledged.
func (m *model) acknowledge(values map[point]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range values {
		c := m.points[p]
		if !c.torn {
			c.acknowledged = len(c.values) - 1
		}
		m.points[p] = c
	}
}

// beginReplacing says that the table is about to be replaced by one of its snapshots. What is on
// the way until endReplacing may come before or after that.
func (m *model) beginReplacing() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tears = true
	for p, c := range m.points {
		c.torn = c.torn || c.acknowledged < len(c.values)-1
		m.points[p] = c
	}
}

// endReplacing says that the table is as it was when each point had one of these values, and absent
// if it had none. What was refused or torn may have come since.
func (m *model) endReplacing(was map[point][]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tears = false
	for p, c := range m.points {
		now := was[p]
		if len(now) == 0 {
			now = []int64{absent}
		}
		if c.torn || c.refused || m.lost[p.hour()] {
			now = slices.Concat(now, c.values)
		}
		c.acknowledged = len(c.values)
		c.values = slices.Concat(c.values, now)
		c.torn = c.torn || len(now) > 1
		m.points[p] = c
	}
}

// all returns what each point may be for a reader from one snapshot to another.
func (m *model) all(before, after map[point]course) map[point][]int64 {
	may := map[point][]int64{}
	for p := range after {
		may[p] = m.allowed(p, before, after)
	}
	return may
}

// refuse says that a put of points was refused, or had no answer.
func (m *model) refuse(values map[point]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range values {
		c := m.points[p]
		c.refused = true
		m.points[p] = c
	}
}

// refuseDeletion says that the deletion of an hour was refused, or had no answer.
func (m *model) refuseDeletion(hour point) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost[hour] = true
}

// snapshot is what is known at one time.
func (m *model) snapshot() map[point]course {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.points)
}

// allowed is what a point may be for a reader who began at one snapshot and ended at another, just
// now: the value that was acknowledged before, or a later one. One that is older than is kept may
// be gone.
func (m *model) allowed(p point, before, after map[point]course) []int64 {
	c, ok := after[p]
	if !ok {
		return []int64{absent}
	}
	values := c.values[before[p].acknowledged:]
	switch past := time.Now().Add(-m.keep).Sub(time.Unix(p.hour().at+3600, 0)); {
	case m.keep == 0 || past < 0:
		return values
	case m.calm && past > 2*time.Hour:
		return []int64{absent}
	default:
		return append(values[:len(values):len(values)], absent)
	}
}
