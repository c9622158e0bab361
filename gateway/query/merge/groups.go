package merge

import "downpour/encoding"

// Groups are the groups of Finish, described before their points are made: who
// writes an answer knows all tags at its beginning, and sends a group while the
// next one is merged. It is for one goroutine.
type Groups struct {
	// Described are the groups in the order in which they are answered, without
	// points and notes.
	Described []Group

	members []members
	a       *aggregation
}

// Groups describes the groups of everything added and uses the merger up, as
// Finish does.
func (m *Merger) Groups() (*Groups, error) {
	a, err := m.newAggregation()
	if err != nil {
		return nil, err
	}
	members, err := m.group(m.ordered())
	if err != nil {
		return nil, err
	}
	gs := &Groups{members: members, a: a}
	gs.Described = make([]Group, len(gs.members))
	for i, ms := range gs.members {
		if err := m.Check(); err != nil {
			return nil, err
		}
		g := &gs.Described[i]
		g.Key = ms.key
		for _, sp := range ms.spans {
			if sp.hasData {
				g.Spans = append(g.Spans, sp.id)
			}
		}
		m.describe(g)
	}
	return gs, nil
}

// Points makes the points of group i. They are the caller's and do not count
// against the plan's bound, so that an answer may be larger than it; what was
// reserved for them is handed over with them, PointBytes each, to be released by
// the caller. The errors are those of Finish.
func (gs *Groups) Points(i int) (encoding.Points, error) {
	m := gs.a.m
	used := m.used
	g, err := gs.a.group(gs.members[i])
	m.used = used

	// What the points take is not the merger's any more.
	if n := int64(g.Points.Len()) * PointBytes; err == nil {
		m.leased -= min(n, m.leased)
		m.made -= n
	}
	return g.Points, err
}
