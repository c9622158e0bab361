package live

import (
	"maps"
	"slices"
)

// Limits of a track's history. The oldest deltas are dropped beyond historyTicks, or
// when all together have more points than both historyPoints and the answer itself.
// Subscribers who still want them get a snapshot.
const (
	historyTicks  = 64
	historyPoints = 4096
)

// track is one numbering of the groups as clients see it: the results of its first
// snapshot are 0, 1, … and later groups get the next number. Subscribers share a
// track, and with it every encoded message. When a group is removed, its number
// becomes a hole, which a snapshot cannot show: later subscribers use a new track.
type track struct {
	epoch      string
	numbers    map[groupID]int // of the groups that exist
	nextNumber int
	users      int      // subscribers on this track
	history    []*delta // consecutive, oldest first
	points     int      // in history
	bytes      int64    // of history, without its messages

	// Messages of the present seq, each encoded once for all subscribers.
	snapshot       *Update // for those who join
	mergedSnapshot *Update // for slow subscribers
	// merged has, by an older seq, the message from there to the present one, for those who
	// were slow. An entry is nil if a snapshot is hardly longer.
	merged map[uint64]*Update
}

// dropMessages drops the messages of a seq that is no longer the present one.
func (t *track) dropMessages() { t.snapshot, t.mergedSnapshot, t.merged = nil, nil, nil }

// delta is one change in a track's numbers.
type delta struct {
	seq         uint64
	firstNew    int // groups with smaller numbers were known before the delta
	groups      []groupDescription
	removed     []int
	upserts     []upsert
	deletes     []deletion
	finalBefore int64
	damaged     int64 // rows that were left out of the answer, because they cannot be read

	update *Update // the message of this delta alone; nil until somebody gets it
}

// groupDescription describes a group that is new or has another description.
type groupDescription struct {
	group int
	*description
}

// upsert sets points of a group.
type upsert struct {
	group int
	*description
	points points
}

// deletion deletes points of a group.
type deletion struct {
	group int
	times []int64
}

// points returns the number of points that a delta sets or deletes.
func (d *delta) points() int {
	n := 0
	for _, u := range d.upserts {
		n += len(u.points.time)
	}
	for _, x := range d.deletes {
		n += len(x.times)
	}
	return n
}

// newTrack numbers the groups of a state from 0.
func newTrack(epoch string, s *state) *track {
	t := &track{epoch: epoch, numbers: make(map[groupID]int, len(s.groups))}
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		t.addNumber(id)
	}
	return t
}

// addNumber gives a new group the next number.
func (t *track) addNumber(id groupID) {
	t.numbers[id] = t.nextNumber
	t.nextNumber++
}

// dense reports whether the numbers have no hole. A snapshot needs that, because its
// groups are numbered by their place.
func (t *track) dense() bool { return len(t.numbers) == t.nextNumber }

// record adds a change to the history, and drops the oldest deltas beyond the limits. s is the state after
// the change.
func (t *track) record(seq uint64, ch *changes, s *state) {
	d := t.renumber(seq, ch, s)
	t.history = append(t.history, d)
	t.points += d.points()
	t.bytes += d.bytes()

	// A subscriber that lacks more points than the answer has is better served by a snapshot.
	budget := max(historyPoints, s.points)
	// The newest delta is kept, even if large: subscribers that keep up get it.
	for len(t.history) > historyTicks || t.points > budget && len(t.history) > 1 {
		t.points -= t.history[0].points()
		t.bytes -= t.history[0].bytes()
		t.history[0] = nil // the slice's array keeps it alive otherwise
		t.history = t.history[1:]
	}
}

// renumber returns a change as a delta in the track's numbers. It gives new groups a number, and takes
// away those of removed groups.
func (t *track) renumber(seq uint64, ch *changes, s *state) *delta {
	d := &delta{seq: seq, firstNew: t.nextNumber, finalBefore: s.finalBefore, damaged: s.damaged}
	for _, id := range ch.described {
		if _, known := t.numbers[id]; !known {
			t.addNumber(id)
		}
		d.groups = append(d.groups, groupDescription{t.numbers[id], s.groups[id].description})
	}

	// Sorted, so that equal changes make equal messages.
	for _, id := range slices.Sorted(maps.Keys(ch.upserts)) {
		d.upserts = append(d.upserts, upsert{t.numbers[id], s.groups[id].description, ch.upserts[id]})
	}
	for _, id := range slices.Sorted(maps.Keys(ch.deletes)) {
		d.deletes = append(d.deletes, deletion{t.numbers[id], ch.deletes[id]})
	}

	for _, id := range ch.removed {
		d.removed = append(d.removed, t.numbers[id])
		delete(t.numbers, id)
	}
	return d
}

// reaches reports whether the history holds everything after seq, up to now, the
// present seq.
func (t *track) reaches(seq, now uint64) bool {
	return seq <= now && now-seq <= uint64(len(t.history))
}

// since returns one delta for everything that came after seq. It has the values that the points that
// changed have in s, the present state. REQUIRES: seq is before the present one, and the
// history reaches back to it.
func (t *track) since(seq uint64, s *state) *delta {
	last := t.history[len(t.history)-1]
	tail := t.history[len(t.history)-int(last.seq-seq):]
	if len(tail) == 1 {
		return last
	}

	m := deltaMerger{present: t.present(s), described: map[int]bool{}, touched: map[int]map[int64]bool{}}
	m.out = &delta{seq: last.seq, firstNew: tail[0].firstNew, finalBefore: s.finalBefore, damaged: s.damaged}
	for _, d := range tail {
		m.collect(d)
	}
	m.finish()
	return m.out
}

// present returns the groups of a state by their numbers.
func (t *track) present(s *state) map[int]*group {
	out := make(map[int]*group, len(s.groups))
	for id, g := range s.groups {
		out[t.numbers[id]] = g
	}
	return out
}

// list returns the groups of a state in the order of their numbers, as a snapshot
// has them. REQUIRES: dense.
func (t *track) list(s *state) []*group {
	out := make([]*group, t.nextNumber)
	for id, g := range s.groups {
		out[t.numbers[id]] = g
	}
	return out
}
