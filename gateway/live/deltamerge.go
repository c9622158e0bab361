package live

import (
	"maps"
	"slices"
)

// deltaMerger makes one delta of several: collect is called for each, and then finish. It collects the
// groups and times that they touched, and then writes the present values of these. A group that was added
// and removed in between only leaves its number unused.
type deltaMerger struct {
	out     *delta
	present map[int]*group // the groups that exist now, by number

	described map[int]bool           // numbers of groups with a new description
	touched   map[int]map[int64]bool // times by the number of the group
}

// collect notes what one delta touched, and adds to out which groups it removed.
func (m *deltaMerger) collect(d *delta) {
	for _, g := range d.groups {
		m.described[g.group] = true
	}
	for _, u := range d.upserts {
		m.touch(u.group, u.points.time)
	}
	for _, x := range d.deletes {
		m.touch(x.group, x.times)
	}
	// A group that was also added in between is left out: the client has never known it.
	for _, n := range d.removed {
		if n < m.out.firstNew {
			m.out.removed = append(m.out.removed, n)
		}
	}
}

// touch notes that points of a group were set or deleted.
func (m *deltaMerger) touch(group int, times []int64) {
	set := m.touched[group]
	if set == nil {
		set = make(map[int64]bool, len(times))
		m.touched[group] = set
	}
	for _, t := range times {
		set[t] = true
	}
}

// finish writes to out what the collected groups and times are now. It writes nothing of a removed group:
// either the client never knew it, or out.removed has it.
func (m *deltaMerger) finish() {
	for _, n := range slices.Sorted(maps.Keys(m.described)) {
		if g := m.present[n]; g != nil {
			m.out.groups = append(m.out.groups, groupDescription{n, g.description})
		}
	}
	for _, n := range slices.Sorted(maps.Keys(m.touched)) {
		if g := m.present[n]; g != nil {
			m.writePoints(n, g)
		}
	}
}

// writePoints writes the present value of each touched time of group number n, or that it has none.
// For a group with a new description that is every point, because its deltas touched
// them all.
func (m *deltaMerger) writePoints(n int, g *group) {
	var set points
	var deleted []int64
	for _, t := range slices.Sorted(maps.Keys(m.touched[n])) {
		if i, ok := g.points.search(t); ok {
			set.push(g.points, i)
		} else {
			deleted = append(deleted, t)
		}
	}
	if len(set.time) > 0 {
		m.out.upserts = append(m.out.upserts, upsert{n, g.description, set})
	}
	if len(deleted) > 0 {
		m.out.deletes = append(m.out.deletes, deletion{n, deleted})
	}
}
