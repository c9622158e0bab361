package merge

import "downpour/encoding"

// Groups are the groups of Finish, described before their points are made: a caller
// that writes an answer knows all tags at its beginning, and sends a group while the
// next one is merged. It is for one goroutine.
type Groups struct {
	// Described are the groups in the order of the answer, without points and notes.
	Described []Group

	members []groupMembers
	a       *aggregation
}

// Groups describes the groups of everything added. Like Finish, it is the last use of
// the merger except for Free.
func (m *Merger) Groups() (*Groups, error) {
	a, groups, err := m.groupAll()
	if err != nil {
		return nil, err
	}

	gs := &Groups{members: groups, a: a}
	gs.Described = make([]Group, len(groups))
	for i, members := range groups {
		if err := m.Check(); err != nil {
			return nil, err
		}
		g := &gs.Described[i]
		g.Key = members.key
		if members.whole != nil {
			g.Spans = members.whole.spans
		}
		for _, sp := range members.spans {
			if sp.hasData {
				g.Spans = append(g.Spans, sp.id)
			}
		}
		m.describe(g)
	}
	return gs, nil
}

// Points makes the points of group i. They do not count against the plan's MaxBytes,
// so that an answer may be larger than that. Their memory passes to the caller, who
// releases PointBytes for each of them. The errors are those of Finish.
func (gs *Groups) Points(i int) (encoding.Points, error) {
	m := gs.a.m
	used := m.used
	g, err := gs.a.group(gs.members[i])
	m.used = used

	if n := int64(g.Points.Len()) * PointBytes; err == nil {
		// What passes to the caller is no longer the merger's to release.
		m.reserved -= min(n, m.reserved)
		m.outputBytes -= n
	}
	return g.Points, err
}
