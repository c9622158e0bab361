package live

import (
	"maps"
	"slices"
)

// Limits of a track's history. Deltas older than historyTicks, or together
// larger than the larger of historyPoints and the answer itself, are forgotten:
// a snapshot serves whoever still wants them.
const (
	historyTicks  = 64
	historyPoints = 4096
)

// track is one numbering of the groups as clients see it: the results of its
// first snapshot are 0, 1, … and later groups get the next number. Subscribers
// share a track, and with it every encoded message, until a group has gone: who
// comes after that needs numbers without a hole and starts another track.
type track struct {
	epoch   string
	local   map[groupID]int
	next    int
	users   int
	history []*delta // consecutive, oldest first
	points  int      // in history
	bytes   int64    // that it takes, without its messages

	// The snapshots of the last seq asked for, so that each is encoded once: for
	// those who join, and for those who were too slow.
	snapshot, late *Update
	// What came after an older seq, for those who were slow: the same for all who
	// have come as far. An entry is nil where a snapshot says it in less.
	merged map[uint64]*Update
}

// forgetMessages drops the messages of the seq before.
func (t *track) forgetMessages() { t.snapshot, t.late, t.merged = nil, nil, nil }

// delta is one change in a track's numbers.
type delta struct {
	seq         uint64
	firstNew    int // smaller numbers were known before
	groups      []described
	removed     []int
	upserts     []upsert
	deletes     []deletion
	finalBefore int64

	update *Update // what subscribers get of this delta alone
}

type described struct {
	group int
	*describe
}

type upsert struct {
	group int
	*describe
	cells cells
}

type deletion struct {
	group int
	times []int64
}

// share returns the one update of a delta in the history, which is u the first
// time, so that each format is encoded once for all subscribers.
func (d *delta) share(u *Update) *Update {
	if d.update == nil {
		u.delta, d.update = d, u
	}
	return d.update
}

func (d *delta) points() int {
	n := 0
	for _, u := range d.upserts {
		n += len(u.cells.time)
	}
	for _, x := range d.deletes {
		n += len(x.times)
	}
	return n
}

// newTrack numbers the groups of a state from 0.
func newTrack(epoch string, s *state) *track {
	t := &track{epoch: epoch, local: make(map[groupID]int, len(s.groups))}
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		t.local[id] = t.next
		t.next++
	}
	return t
}

// dense tells whether the numbers have no hole, so that a snapshot can be sent.
func (t *track) dense() bool { return len(t.local) == t.next }

// record adds a change to the history.
func (t *track) record(seq uint64, ch *changes, s *state) {
	d := t.localise(seq, ch, s)
	t.history = append(t.history, d)
	t.points += d.points()
	t.bytes += d.bytes()
	budget := max(historyPoints, s.points)
	for len(t.history) > historyTicks || t.points > budget && len(t.history) > 1 {
		t.points -= t.history[0].points()
		t.bytes -= t.history[0].bytes()
		t.history[0] = nil
		t.history = t.history[1:]
	}
}

func (t *track) localise(seq uint64, ch *changes, s *state) *delta {
	d := &delta{seq: seq, firstNew: t.next, finalBefore: s.finalBefore}
	for _, id := range ch.described {
		if _, known := t.local[id]; !known {
			t.local[id] = t.next
			t.next++
		}
		d.groups = append(d.groups, described{t.local[id], s.groups[id].describe})
	}
	for _, id := range slices.Sorted(maps.Keys(ch.upserts)) {
		d.upserts = append(d.upserts, upsert{t.local[id], s.groups[id].describe, ch.upserts[id]})
	}
	for _, id := range slices.Sorted(maps.Keys(ch.deletes)) {
		d.deletes = append(d.deletes, deletion{t.local[id], ch.deletes[id]})
	}
	for _, id := range ch.removed {
		d.removed = append(d.removed, t.local[id])
		delete(t.local, id)
	}
	return d
}

// reaches tells whether the history holds everything after seq.
func (t *track) reaches(seq, now uint64) bool {
	return seq <= now && now-seq <= uint64(len(t.history))
}

// since merges what came after seq into one delta that holds the present values.
// REQUIRES: reaches(seq, now) and seq < now.
func (t *track) since(seq uint64, s *state) *delta {
	last := t.history[len(t.history)-1]
	tail := t.history[len(t.history)-int(last.seq-seq):]
	if len(tail) == 1 {
		return last
	}
	m := merger{present: t.present(s), described: map[int]bool{}, touched: map[int]map[int64]bool{}}
	m.out = &delta{seq: last.seq, firstNew: tail[0].firstNew, finalBefore: s.finalBefore}
	for _, d := range tail {
		m.add(d)
	}
	m.finish()
	return m.out
}

// mergedSince returns what came after seq as one message, which is u if nobody
// has asked for it yet; nil if the whole answer is hardly longer. REQUIRES: as since.
func (t *track) mergedSince(seq uint64, u *Update, s *state) *Update {
	if shared, ok := t.merged[seq]; ok {
		return shared
	}
	u.merged, u.delta = true, t.since(seq, s)
	if n := u.delta.points(); n > historyPoints && n > s.points/2 {
		u = nil
	}
	if t.merged == nil {
		t.merged = map[uint64]*Update{}
	}
	t.merged[seq] = u
	return u
}

// present is the state by local number.
func (t *track) present(s *state) map[int]*group {
	out := make(map[int]*group, len(s.groups))
	for id, g := range s.groups {
		out[t.local[id]] = g
	}
	return out
}

// list is the state's groups in the order of their local numbers, for a
// snapshot. REQUIRES: dense.
func (t *track) list(s *state) []*group {
	out := make([]*group, t.next)
	for id, g := range s.groups {
		out[t.local[id]] = g
	}
	return out
}
