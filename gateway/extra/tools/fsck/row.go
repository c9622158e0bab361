package fsck

import (
	"bytes"
	"fmt"
	"slices"

	"downpour/encoding"
)

// Row is a row of the data table with all cells of its family, in the order of their
// qualifiers.
type Row struct {
	Key   []byte
	Cells []Cell
}

// Cell is one cell of a row.
type Cell struct {
	Qualifier, Value []byte
	Timestamp        int64 // ms, 0 if the store keeps none
}

// Facts are what a row does not say of itself.
type Facts struct {
	// Orphan names the UID of the key that has no name, "" if all have one.
	Orphan string
	// Keep is why nothing of the row may be changed, "" if it may.
	Keep string
}

// Result is what is known of a row. It is valid until the next call of Check.
type Result struct {
	Findings []Finding
	// Points are times with a value that can be read.
	Points, Annotations, Histograms, AppendColumns int
	// SavedBytes is what shorter integers would save.
	SavedBytes int
	// Put are the cells to write, each with the time that its newest source had.
	// Delete are cells of the row; none has a qualifier of Put. Both are empty if
	// nothing is to be repaired. What Put holds shares no memory with the row.
	Put, Delete []Cell
	// Move are rows that get these cells, if no others are in their places; all of them before
	// Delete. It shares no memory with the row.
	Move []Row
}

// Checker checks rows, one after another. It is for one goroutine.
type Checker struct {
	Schema  encoding.Schema
	Options Options

	row    Row
	result Result
	cells  []cell
	points []point
	order  []int32 // the points that can be read, by time, then as Options choose among duplicates
	stuck  bool    // something in a cell of the row may not be repaired
	seen   map[int32]int32
}

// form is what a cell holds.
type form uint8

const (
	other form = iota
	single
	compacted
	appended
)

// cell is what is known of a cell of the row.
type cell struct {
	form       form
	first, end int32 // its points
	// unread is set for a compacted cell that cannot be cut: it has no points here.
	unread bool
	// remove is set for a cell that goes as a whole.
	remove bool
	// written is set for a cell in whose place another is written.
	written bool
	// change is set if the cell cannot stay as it is, apart from what its points say:
	// wrong order, wrong trailer, wrong place.
	change bool
	// stuck is set if something in the cell may not be repaired.
	stuck bool
	// loose is set for an append column out of order or with values written over.
	loose bool
}

// point is one value of a cell.
type point struct {
	offset     int32 // ms from the base time
	cell       int32
	q          encoding.Qualifier // as it is written again
	value      []byte             // as it is written again
	bad        bool               // it cannot be read
	over       bool               // a later entry of its append column has its time
	drop       bool               // another value of its time is kept
	unresolved bool               // other values of its time are kept, too
	alter      bool               // q or value differ from what is stored
}

// Check checks a row. The result shares memory with it.
func (c *Checker) Check(row Row, facts Facts) *Result {
	c.row = row
	c.result = Result{Findings: c.result.Findings[:0], Put: c.result.Put[:0], Delete: c.result.Delete[:0]}
	c.cells, c.points, c.order = c.cells[:0], c.points[:0], c.order[:0]

	key, err := c.Schema.ParseRowKey(row.Key)
	switch {
	case err != nil:
		c.wholeRow(Finding{
			Kind: BadKey,
			What: fmt.Sprintf("the key has %d bytes, want %d and a multiple of %d for tags", len(row.Key),
				c.Schema.HeadWidth(), c.Schema.TagWidth()),
			needs: byDeleteBadRows,
		})
	case facts.Orphan != "":
		c.wholeRow(Finding{Kind: Orphan, What: facts.Orphan + " has no name", needs: byDeleteOrphans})
	default:
		for i := range row.Cells {
			c.read(int32(i))
		}
		c.resolve()
		if encoding.OffHour(key.BaseTime) {
			c.planOffHour(key)
		} else {
			c.plan()
		}
	}

	c.settle(facts.Keep)
	return &c.result
}

// wholeRow notes a finding whose repair deletes all cells of the row.
func (c *Checker) wholeRow(f Finding) {
	f.Count, f.Remedy = 1, fmt.Sprintf("delete the row, %d cells", len(c.row.Cells))
	c.note(f)
	if c.Options.allows(f.needs) {
		c.result.Delete = append(c.result.Delete, c.row.Cells...)
	}
}

// note adds a finding.
func (c *Checker) note(f Finding) {
	f.Flags = f.needs.flags()
	f.Planned = c.Options.allows(f.needs)
	if f.needs == never {
		f.Remedy = ""
	}
	c.result.Findings = append(c.result.Findings, f)
}

// noteCell adds a finding about one cell.
func (c *Checker) noteCell(i int32, f Finding) {
	f.Qualifier = c.row.Cells[i].Qualifier
	c.note(f)
}

// settle withdraws the repair of a row that may not be changed.
func (c *Checker) settle(keep string) {
	if keep == "" {
		return
	}
	for i := range c.result.Findings {
		f := &c.result.Findings[i]
		if f.Planned {
			f.Planned, f.Left = false, keep
		}
	}
	c.result.Put, c.result.Delete, c.result.Move = c.result.Put[:0], c.result.Delete[:0], nil
}

// index returns the index of the row's cell with a qualifier, -1 if there is none.
func (c *Checker) index(qualifier []byte) int {
	i, ok := slices.BinarySearchFunc(c.row.Cells, qualifier,
		func(x Cell, q []byte) int { return bytes.Compare(x.Qualifier, q) })
	if !ok {
		return -1
	}
	return i
}
