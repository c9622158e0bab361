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
	gs := &Groups{members: m.group(m.ordered()), a: a}
	gs.Described = make([]Group, len(gs.members))
	for i, ms := range gs.members {
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

// Points makes the points of group i. They are the caller's and not counted as
// held, so that an answer may be larger than the plan's bound; the errors are
// those of Finish.
func (gs *Groups) Points(i int) (encoding.Points, error) {
	used := gs.a.m.used
	g, err := gs.a.group(gs.members[i])
	gs.a.m.used = used
	return g.Points, err
}
