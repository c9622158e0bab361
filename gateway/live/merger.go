package live

import (
	"maps"
	"slices"
)

// merger collects which groups and times several deltas touched and writes one
// delta with the values of now. A group that came and went in between leaves no
// trace but its number, which stays unused.
type merger struct {
	out     *delta
	present map[int]*group

	described map[int]bool
	touched   map[int]map[int64]bool
}

func (m *merger) add(d *delta) {
	for _, g := range d.groups {
		m.described[g.group] = true
	}
	for _, u := range d.upserts {
		m.touch(u.group, u.cells.time)
	}
	for _, x := range d.deletes {
		m.touch(x.group, x.times)
	}
	for _, n := range d.removed {
		if n < m.out.firstNew {
			m.out.removed = append(m.out.removed, n)
		}
	}
}

func (m *merger) touch(group int, times []int64) {
	set := m.touched[group]
	if set == nil {
		set = make(map[int64]bool, len(times))
		m.touched[group] = set
	}
	for _, t := range times {
		set[t] = true
	}
}

func (m *merger) finish() {
	for _, n := range slices.Sorted(maps.Keys(m.described)) {
		if g := m.present[n]; g != nil {
			m.out.groups = append(m.out.groups, described{n, g.describe})
		}
	}
	for _, n := range slices.Sorted(maps.Keys(m.touched)) {
		if g := m.present[n]; g != nil {
			m.emit(n, g)
		}
	}
}

// emit sends the present value of each touched time, or that it has none. That
// is all of a group that was described: its deltas touched every point.
func (m *merger) emit(n int, g *group) {
	var up cells
	var gone []int64
	for _, t := range slices.Sorted(maps.Keys(m.touched[n])) {
		if i, ok := g.cells.find(t); ok {
			up.push(g.cells, i)
		} else {
			gone = append(gone, t)
		}
	}
	if len(up.time) > 0 {
		m.out.upserts = append(m.out.upserts, upsert{n, g.describe, up})
	}
	if len(gone) > 0 {
		m.out.deletes = append(m.out.deletes, deletion{n, gone})
	}
}
