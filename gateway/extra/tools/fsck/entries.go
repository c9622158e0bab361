package fsck

import (
	"cmp"
	"errors"
	"slices"

	"downpour/encoding"
)

// Entry is one point of a cell. Its qualifier says how long its value is.
type Entry struct {
	Qualifier encoding.Qualifier
	Value     []byte
}

// Entries returns the points of one cell in the order of time, as a query reads them, and
// of an append column the last of each time. A cell that holds no points has none. The
// error says why a cell of points cannot be read. The result is a view of the cell.
func (c *Checker) Entries(x Cell) ([]Entry, error) {
	c.row = Row{Cells: []Cell{x}}
	c.result = Result{Findings: c.result.Findings[:0]}
	c.cells, c.points, c.order = c.cells[:0], c.points[:0], c.order[:0]
	c.read(0)
	for _, f := range c.result.Findings {
		// Whatever else is found in a cell, its points can be read.
		if f.Kind == BadCompact || f.Kind == BadValue {
			return nil, errors.New(f.What)
		}
	}

	var all []Entry
	for _, p := range c.points {
		// A float after four bytes FF is bad where no repair is allowed, see paddedFloat.
		if p.bad {
			return nil, errors.New(c.result.Findings[0].What)
		}
		if !p.over {
			all = append(all, Entry{p.q, p.value})
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Compare(a.Qualifier.OffsetMS, b.Qualifier.OffsetMS) })
	return all, nil
}
