package live

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// groupID names a group within an evaluator. IDs are never used again.
type groupID int

// describe is what a group is, without its points.
type describe struct {
	queryIndex    int
	metric        string
	tags          map[string]string
	aggregateTags []string
	nanIsNull     bool
}

func (d *describe) equal(e *describe) bool {
	return d.queryIndex == e.queryIndex && d.metric == e.metric && d.nanIsNull == e.nanIsNull &&
		maps.Equal(d.tags, e.tags) && slices.Equal(d.aggregateTags, e.aggregateTags)
}

// group is one group at one moment; it never changes. The description stands by
// itself because the history refers to it, and must not keep old columns alive.
type group struct {
	*describe
	cells cells
}

// state is an evaluator's last answer. It never changes; the next answer makes
// another, so the comparison needs no lock.
type state struct {
	next        groupID
	byKey       map[string]groupID
	groups      map[groupID]*group
	finalBefore int64 // in the client's unit
	rows        int64 // read for the answer
	points      int
	missing     [][2]string
}

// changes is the difference between two answers, by evaluator-wide group.
type changes struct {
	described []groupID // new ones too, in ascending order
	removed   []groupID
	upserts   map[groupID]cells
	deletes   map[groupID][]int64
}

func (c *changes) empty() bool {
	return len(c.described)+len(c.removed)+len(c.upserts)+len(c.deletes) == 0
}

// advance returns the state after an answer, and the difference.
func (s *state) advance(a Answer, seconds bool) (*state, *changes) {
	ch := &changes{upserts: map[groupID]cells{}, deletes: map[groupID][]int64{}}
	now := &state{next: s.next, finalBefore: a.FinalBefore, rows: a.Rows, missing: a.Missing}
	if seconds {
		now.finalBefore = floorDiv(a.FinalBefore, 1000)
	}
	s.carry(now, &a)
	for i := range a.Results {
		r := &a.Results[i]
		now.set(s, ch, uniqueKey(r, now.byKey), newGroup(r, seconds))
	}
	for i := range a.Changes {
		now.change(s, ch, &a.Changes[i], seconds)
	}
	for id := range s.groups {
		if now.groups[id] == nil {
			ch.removed = append(ch.removed, id)
		}
	}
	slices.Sort(ch.removed)
	slices.Sort(ch.described)
	return now, ch
}

// carry takes the groups over that the answer says nothing of. Where nothing
// else comes or goes the maps are shared.
func (s *state) carry(now *state, a *Answer) {
	if a.Kept == nil {
		now.byKey = make(map[string]groupID, len(a.Results))
		now.groups = make(map[groupID]*group, len(a.Results))
		return
	}
	now.points, now.byKey, now.groups = s.points, s.byKey, s.groups
	var gone []string
	for key, id := range s.byKey {
		if !a.Kept[s.groups[id].queryIndex] {
			gone = append(gone, key)
		}
	}
	if len(gone)+len(a.Results)+len(a.Changes) == 0 {
		return
	}
	now.byKey, now.groups = maps.Clone(s.byKey), maps.Clone(s.groups)
	if now.byKey == nil { // nothing was there
		now.byKey, now.groups = map[string]groupID{}, map[groupID]*group{}
	}
	for _, key := range gone {
		id := s.byKey[key]
		now.points -= len(s.groups[id].cells.time)
		delete(now.byKey, key)
		delete(now.groups, id)
	}
}

// set gives a group its place and notes what is new of it.
func (s *state) set(before *state, ch *changes, key string, g *group) {
	id, known := before.byKey[key]
	if !known {
		id = s.next
		s.next++
	}
	if old := s.groups[id]; old != nil {
		s.points -= len(old.cells.time)
	}
	s.byKey[key], s.groups[id] = id, g
	s.points += len(g.cells.time)
	ch.compare(id, before.groups[id], g)
}

// change takes in what became of a group. A window of a group that is not known
// cannot be placed and is a fault of the source.
func (s *state) change(before *state, ch *changes, c *Change, seconds bool) {
	key := keyOf(c.QueryIndex, c.Key)
	if c.Full != nil {
		s.set(before, ch, key, newGroup(c.Full, seconds))
		return
	}
	id, known := before.byKey[key]
	if !known {
		panic("live: a change of a group that is not there")
	}
	was := before.groups[id]
	now := &group{describe: was.describe}
	now.cells = was.cells.with(c.Windows, seconds, func(old, part cells) { ch.differ(id, old, part) })
	s.groups[id] = now
	s.points += len(now.cells.time) - len(was.cells.time)
}

// differ notes what differs in a part of a group's points.
func (ch *changes) differ(id groupID, old, now cells) {
	upserts, deletes := diff(old, now)
	if len(upserts.time) > 0 {
		all := ch.upserts[id]
		for i := range upserts.time {
			all.push(upserts, i)
		}
		ch.upserts[id] = all
	}
	if len(deletes) > 0 {
		ch.deletes[id] = append(ch.deletes[id], deletes...)
	}
}

func newGroup(r *Result, seconds bool) *group {
	return &group{
		describe: &describe{r.QueryIndex, r.Metric, r.Tags, r.AggregateTags, r.NaNIsNull},
		cells:    toCells(r.Points, seconds),
	}
}

// compare notes what changes about a group; was is nil for a new one. A group
// that is described anew gets all its points sent again, so that a client may
// take the description for a fresh start or not, as it likes.
func (ch *changes) compare(id groupID, was, now *group) {
	again := was == nil || !was.describe.equal(now.describe)
	if was == nil {
		was = &group{}
	}
	upserts, deletes := diff(was.cells, now.cells)
	if again {
		ch.described = append(ch.described, id)
		upserts = now.cells
	}
	if len(upserts.time) > 0 {
		ch.upserts[id] = upserts
	}
	if len(deletes) > 0 {
		ch.deletes[id] = deletes
	}
}

// diff walks both columns and returns what must be set and what must go.
func diff(old, now cells) (upserts cells, deletes []int64) {
	i, j := 0, 0
	for i < len(old.time) || j < len(now.time) {
		switch {
		case j == len(now.time) || i < len(old.time) && old.time[i] < now.time[j]:
			deletes = append(deletes, old.time[i])
			i++
		case i == len(old.time) || now.time[j] < old.time[i]:
			upserts.push(now, j)
			j++
		default:
			if !old.same(i, now, j) {
				upserts.push(now, j)
			}
			i++
			j++
		}
	}
	return upserts, deletes
}

// uniqueKey is the group's identity; groups that nothing tells apart are
// numbered.
func uniqueKey(r *Result, taken map[string]groupID) string {
	key := keyOf(r.QueryIndex, r.Key)
	if r.Key == "" {
		key += identity(r)
	}
	unique := key
	for n := 1; ; n++ {
		if _, used := taken[unique]; !used {
			return unique
		}
		unique = key + "\x01" + strconv.Itoa(n)
	}
}

func keyOf(queryIndex int, key string) string { return strconv.Itoa(queryIndex) + "\x00" + key }

func identity(r *Result) string {
	var b strings.Builder
	b.WriteString(r.Metric)
	for _, k := range slices.Sorted(maps.Keys(r.Tags)) {
		b.WriteString("\x00" + k + "\x00" + r.Tags[k])
	}
	b.WriteString("\x00\x00" + strings.Join(r.AggregateTags, "\x00"))
	return b.String()
}
