package live

import (
	"maps"
	"slices"
)

// deltaMerger makes one delta of several. It collects the groups and times that they touched, and
// then writes the present values of these. A group that was added and removed in between only
// leaves its number unused.
type deltaMerger struct {
	out     *delta
	present map[int]*group // the groups that exist now

	described map[int]bool           // groups with a new description
	touched   map[int]map[int64]bool // times by group
}

// add collects what one delta touched.
func (m *deltaMerger) add(d *delta) {
	for _, g := range d.groups {
		m.described[g.group] = true
	}
	for _, u := range d.upserts {
		m.touch(u.group, u.points.time)
	}
	for _, x := range d.deletes {
		m.touch(x.group, x.times)
	}
	// The client does not know a group that also came in between.
	for _, n := range d.removed {
		if n < m.out.firstNew {
			m.out.removed = append(m.out.removed, n)
		}
	}
}

// touch collects times of a group.
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

// finish writes the delta. It writes nothing of a removed group: the client never knew it, or
// learns it from removed.
func (m *deltaMerger) finish() {
	for _, n := range slices.Sorted(maps.Keys(m.described)) {
		if g := m.present[n]; g != nil {
			m.out.groups = append(m.out.groups, groupDescription{n, g.description})
		}
	}
	for _, n := range slices.Sorted(maps.Keys(m.touched)) {
		if g := m.present[n]; g != nil {
			m.emit(n, g)
		}
	}
}

// emit writes the present value of each touched time of a group, or that it has none.
// For a group with a new description that is every point, because its deltas touched
// them all.
func (m *deltaMerger) emit(n int, g *group) {
	var up points
	var gone []int64
	for _, t := range slices.Sorted(maps.Keys(m.touched[n])) {
		if i, ok := g.points.search(t); ok {
			up.push(g.points, i)
		} else {
			gone = append(gone, t)
		}
	}
	if len(up.time) > 0 {
		m.out.upserts = append(m.out.upserts, upsert{n, g.description, up})
	}
	if len(gone) > 0 {
		m.out.deletes = append(m.out.deletes, deletion{n, gone})
	}
}
