package live

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// groupID names a group within an evaluator. An ID is never used again.
type groupID int

// description is what a group is, without its points.
type description struct {
	queryIndex    int
	metric        string
	tags          map[string]string
	aggregateTags []string
	nanIsNull     bool
}

func (d *description) equal(e *description) bool {
	return d.queryIndex == e.queryIndex && d.metric == e.metric && d.nanIsNull == e.nanIsNull &&
		maps.Equal(d.tags, e.tags) && slices.Equal(d.aggregateTags, e.aggregateTags)
}

// group is one group at one moment. It never changes. The description is a separate object because
// the history refers to it and must not keep old columns alive.
type group struct {
	*description
	points points
}

// state is an evaluator's last answer. It never changes, so it can be compared with
// the next answer without a lock; that makes another state.
type state struct {
	nextID      groupID
	byKey       map[string]groupID
	groups      map[groupID]*group
	finalBefore int64 // in the client's unit of time
	rows        int64 // read for the answer
	points      int   // of all groups
	missing     [][2]string
	damaged     int64
}

// changes is the difference between two answers.
type changes struct {
	described []groupID // groups that are new or have another description, ascending
	removed   []groupID // ascending
	upserts   map[groupID]points
	deletes   map[groupID][]int64
}

func (c *changes) empty() bool {
	return len(c.described)+len(c.removed)+len(c.upserts)+len(c.deletes) == 0
}

// advance returns the state after an answer, and the difference from s, which stays as it is. seconds is set
// if the client's unit of time is the second. It takes over the columns of the answer. It panics if the
// answer changes points of a group that s does not have.
func (s *state) advance(a Answer, seconds bool) (*state, *changes) {
	ch := &changes{upserts: map[groupID]points{}, deletes: map[groupID][]int64{}}
	next := &state{nextID: s.nextID, finalBefore: a.FinalBefore, rows: a.Rows, missing: a.Missing, damaged: a.Damaged}
	if seconds {
		next.finalBefore = floorDiv(a.FinalBefore, 1000)
	}

	s.copyKept(next, &a)
	for i := range a.Results {
		r := &a.Results[i]
		next.setGroup(s, ch, uniqueKey(r, next.byKey), newGroup(r, seconds))
	}
	for i := range a.Changes {
		next.applyChange(s, ch, &a.Changes[i], seconds)
	}

	for id := range s.groups {
		if next.groups[id] == nil {
			ch.removed = append(ch.removed, id)
		}
	}
	slices.Sort(ch.removed)
	slices.Sort(ch.described)
	return next, ch
}

// copyKept sets the maps and the number of points of the next state to those groups of s that the answer
// keeps, by a.Kept; to none if the answer has all groups. If the
// answer changes nothing at all, both states share the maps. Otherwise next gets copies,
// because s stays the present state until the next one is accepted.
func (s *state) copyKept(next *state, a *Answer) {
	if a.Kept == nil { // the answer has all groups
		next.byKey = make(map[string]groupID, len(a.Results))
		next.groups = make(map[groupID]*group, len(a.Results))
		return
	}

	next.points, next.byKey, next.groups = s.points, s.byKey, s.groups
	var dropped []string
	for key, id := range s.byKey {
		if !a.Kept[s.groups[id].queryIndex] {
			dropped = append(dropped, key)
		}
	}
	if len(dropped)+len(a.Results)+len(a.Changes) == 0 {
		return
	}

	next.byKey, next.groups = maps.Clone(s.byKey), maps.Clone(s.groups)
	if next.byKey == nil { // maps.Clone of a nil map
		next.byKey, next.groups = map[string]groupID{}, map[groupID]*group{}
	}
	for _, key := range dropped {
		id := s.byKey[key]
		next.points -= len(s.groups[id].points.time)
		delete(next.byKey, key)
		delete(next.groups, id)
	}
}

// setGroup sets the group of a key in s, a state that is being made, to g, and adds to ch what differs from
// the state before. The group keeps the ID that its key had there.
func (s *state) setGroup(before *state, ch *changes, key string, g *group) {
	id, known := before.byKey[key]
	if !known {
		id = s.nextID
		s.nextID++
	}
	if old := s.groups[id]; old != nil { // one that copyKept has counted
		s.points -= len(old.points.time)
	}
	s.byKey[key], s.groups[id] = id, g
	s.points += len(g.points.time)
	ch.addGroup(id, before.groups[id], g)
}

// applyChange makes the change of one group in s, a state that is being made, and adds to ch what differs
// from the state before. It panics if the group is not known and the change has windows only: that is a bug
// of the source.
func (s *state) applyChange(before *state, ch *changes, c *Change, seconds bool) {
	key := groupKey(c.QueryIndex, c.Key)
	if c.Full != nil {
		s.setGroup(before, ch, key, newGroup(c.Full, seconds))
		return
	}

	id, known := before.byKey[key]
	if !known {
		panic("live: a change of a group that is not there")
	}
	old := before.groups[id]
	changed := &group{description: old.description}
	changed.points = old.points.replaceWindows(c.Windows, seconds, func(old, new points) { ch.addWindow(id, old, new) })
	s.groups[id] = changed
	s.points += len(changed.points.time) - len(old.points.time)
}

// addWindow adds what differs in one window of a group's points.
func (ch *changes) addWindow(id groupID, old, new points) {
	upserts, deletes := diff(old, new)
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

// newGroup makes a group of a result, whose columns it takes over.
func newGroup(r *Result, seconds bool) *group {
	return &group{
		description: &description{r.QueryIndex, r.Metric, r.Tags, r.AggregateTags, r.NaNIsNull},
		points:      takePoints(r.Points, seconds),
	}
}

// addGroup adds the differences of a whole group; old is nil for a new one. All points of a group
// with another description are sent again, so that a client may drop its old points or keep them.
func (ch *changes) addGroup(id groupID, old, new *group) {
	describe := old == nil || !old.description.equal(new.description)
	if old == nil {
		old = &group{}
	}

	upserts, deletes := diff(old.points, new.points)
	if describe {
		ch.described = append(ch.described, id)
		upserts = new.points
	}
	if len(upserts.time) > 0 {
		ch.upserts[id] = upserts
	}
	if len(deletes) > 0 {
		ch.deletes[id] = deletes
	}
}

// diff returns the points that must be set, and the times whose points must be deleted, to make new of old.
func diff(old, new points) (upserts points, deletes []int64) {
	i, j := 0, 0
	for i < len(old.time) || j < len(new.time) {
		switch {
		case j == len(new.time) || i < len(old.time) && old.time[i] < new.time[j]:
			deletes = append(deletes, old.time[i])
			i++
		case i == len(old.time) || new.time[j] < old.time[i]:
			upserts.push(new, j)
			j++
		default: // both have a point of this time
			if !old.equalAt(i, new, j) {
				upserts.push(new, j)
			}
			i++
			j++
		}
	}
	return upserts, deletes
}

// uniqueKey returns the key of a group, made unique within an answer: groups that cannot be
// distinguished are numbered. used has the keys that are taken.
func uniqueKey(r *Result, used map[string]groupID) string {
	key := groupKey(r.QueryIndex, r.Key)
	if r.Key == "" { // its source knows no key that outlives a change of tags
		key += describeKey(r)
	}

	unique := key
	for n := 1; ; n++ {
		if _, taken := used[unique]; !taken {
			return unique
		}
		unique = key + "\x01" + strconv.Itoa(n)
	}
}

// groupKey returns the key of a group that has a Result.Key.
func groupKey(queryIndex int, key string) string { return strconv.Itoa(queryIndex) + "\x00" + key }

// describeKey returns a key made of a group's description.
func describeKey(r *Result) string {
	var b strings.Builder
	b.WriteString(r.Metric)
	for _, k := range slices.Sorted(maps.Keys(r.Tags)) {
		b.WriteString("\x00" + k + "\x00" + r.Tags[k])
	}
	b.WriteString("\x00\x00" + strings.Join(r.AggregateTags, "\x00"))
	return b.String()
}
