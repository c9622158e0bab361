package fsck

import (
	"bytes"
	"fmt"
	"slices"

	"downpour/encoding"
)

// MaxCell bounds the cell that a row's points are made: HBase's clients refuse cells of
// 10 MiB unless configured otherwise.
const MaxCell = 8 << 20

// Why a repair that is allowed is not made.
const (
	leftErrors  = "one or more errors found in row that were not marked for repair"
	leftLarge   = "the row's points would be a cell of more than %d bytes"
	leftOverlap = "the row's points would take the place of a cell that cannot be cut"
	leftTaken   = "its new qualifier is that of another value of its time"
)

// plan decides which cells are written and deleted. Source: Fsck.FsckWorker.fsckDataPoints.
func (c *Checker) plan() {
	// Without Fix nothing is written; Compact alone only reports rows that could be one cell.
	if !c.Options.Fix {
		if c.Options.Compact && !c.needsFolding() && c.foldable() {
			targets, _ := c.fold()
			c.noteUncompacted(targets)
		}
		return
	}

	why := c.planFolded()
	// If the row's points do not become one cell, single cells can still be repaired in their places.
	if why != "" {
		c.leave(folding, why)
		c.planSingles()
	}
	c.planAppended(why != "")
	for i := range c.cells {
		// A cell that is written over is not deleted as well.
		if x := &c.cells[i]; x.remove && !x.written {
			c.result.Delete = append(c.result.Delete, c.row.Cells[i])
		}
	}
}

// planAppended rewrites the append column if something in it has to go, from all
// columns that look like one. compactedStay says that compacted cells stay as they are.
func (c *Checker) planAppended(compactedStay bool) {
	wanted, stuck, columns, stamp := false, false, 0, int64(0)
	for i := range c.cells {
		x := &c.cells[i]
		if x.form != appended {
			continue
		}
		columns++
		stamp = max(stamp, c.row.Cells[i].Timestamp)
		// Every reader puts entries into order by itself, so only Compact asks for that.
		wanted = wanted || x.change || x.loose && c.Options.Compact
		// The new column would drop or move what the options do not allow to repair.
		stuck = stuck || x.stuck
	}
	for i := range c.points {
		p := &c.points[i]
		if c.cells[p.cell].form == appended {
			wanted = wanted || p.drop
			// Duplicates that are not resolved have to stay, all of them; but in the one column
			// that several become, only the last value of a time counts.
			stuck = stuck || p.unresolved && columns > 1
		}
		// A value that is to be dropped stays if its compacted cell stays. Entries that move
		// get the newest time of their columns, perhaps newer than its: the next run would
		// choose otherwise.
		stuck = stuck || p.drop && columns > 1 && compactedStay && c.cells[p.cell].form == compacted
	}
	if !wanted || stuck {
		c.leave(appending, leftErrors)
		return
	}

	// order has no entries that cannot be read, nor those that were written over: so these go.
	var value []byte
	for _, i := range c.order {
		if p := &c.points[i]; !p.drop && c.cells[p.cell].form == appended {
			value = encoding.AppendEntry(value, p.q, p.value)
		}
	}
	// The one that put writes over is not deleted, see plan.
	for i := range c.cells {
		c.cells[i].remove = c.cells[i].remove || c.cells[i].form == appended
	}
	// Without entries the column goes as a whole.
	if len(value) > 0 {
		c.put(Cell{Qualifier: bytes.Clone(encoding.AppendColumn), Value: value, Timestamp: stamp})
	}
}

// leave withdraws the repairs that need one of these ways, because the row is not written so.
func (c *Checker) leave(w way, why string) {
	for i := range c.result.Findings {
		if f := &c.result.Findings[i]; f.Planned && f.way&w != 0 {
			f.Planned, f.Left = false, why
		}
	}
}

// needsFolding says that a cell of several points cannot stay as it is.
func (c *Checker) needsFolding() bool {
	for i := range c.cells {
		if c.cells[i].form == compacted && c.cells[i].change {
			return true
		}
	}
	for i := range c.points {
		if p := &c.points[i]; (p.drop || p.alter) && c.cells[p.cell].form == compacted {
			return true
		}
	}
	return false
}

// foldable says that all points of the row, append columns apart, can go into one cell.
func (c *Checker) foldable() bool {
	for i := range c.cells {
		if f := c.cells[i].form; c.cells[i].stuck && (f == single || f == compacted) {
			return false
		}
	}
	for i := range c.points {
		if p := &c.points[i]; p.unresolved && c.cells[p.cell].form != appended {
			return false
		}
	}
	return true
}

// planFolded makes one cell of the row's points, append columns apart, if a compacted
// cell needs it or Options.Compact wants it. It returns why the row's single cells are
// to be looked at one by one instead. That is leftErrors also if nothing was to be done:
// then no finding waits for the row to become one cell, and nobody learns of it.
func (c *Checker) planFolded() (why string) {
	needed := c.needsFolding()
	if !needed && !c.Options.Compact || !c.foldable() {
		return leftErrors
	}

	targets, size := c.fold()
	// Where a cell needs it anyway its own finding reports it.
	if !needed {
		c.noteUncompacted(targets)
	}
	if size > MaxCell {
		return fmt.Sprintf(leftLarge, MaxCell)
	}
	for _, t := range targets {
		if i := c.index(t.Qualifier); i >= 0 && c.cells[i].unread && !c.cells[i].remove {
			return leftOverlap
		}
	}

	// The new cell is no older than any that it replaces.
	var stamp int64
	for i := range c.cells {
		if x := &c.cells[i]; x.end > x.first && x.form != appended {
			stamp = max(stamp, c.row.Cells[i].Timestamp)
		}
	}
	c.replace(targets, stamp)
	return ""
}

// noteUncompacted reports a row whose points are not in the cells that they could become.
func (c *Checker) noteUncompacted(targets []Cell) {
	if !c.has(targets) {
		c.note(Finding{
			Kind:   Uncompacted,
			Count:  1,
			What:   "its points are not in one cell",
			Remedy: "make them one",
			needs:  byCompact,
			way:    folding,
		})
	}
}

// fold returns the cells that the row's points become, and the size of the largest. A
// compacted cell that begins with a point of the seconds 80 to 95, 05 07 say, looks like
// an append column to OpenTSDB's Fsck: such points get cells of their own, unless another
// comes before them.
func (c *Checker) fold() (targets []Cell, size int) {
	var rest []int32
	for _, i := range c.order {
		if p := &c.points[i]; !p.drop && c.cells[p.cell].form != appended {
			rest = append(rest, i)
		}
	}

	// One point alone is a single cell, which nobody takes for an append column.
	for len(rest) > 1 {
		p := &c.points[rest[0]]
		q := encoding.AppendQualifier(nil, p.q)
		if q[0] != encoding.PrefixAppend {
			break
		}
		targets = append(targets, Cell{Qualifier: q, Value: bytes.Clone(p.value)})
		rest = rest[1:]
	}
	// Empty only if the row had no such points: the loop never takes the last one.
	if len(rest) == 0 {
		return targets, 0
	}

	var b encoding.CellBuilder
	for _, i := range rest {
		b.Add(c.points[i].q, c.points[i].value)
	}
	q, v := b.Cell()
	return append(targets, Cell{Qualifier: q, Value: v}), len(q) + len(v)
}

// has says that the row has the targets already, and no other single or compacted cell. Append
// columns do not count, nor do cells that cannot be cut: fold takes no points of theirs.
func (c *Checker) has(targets []Cell) bool {
	n := 0 // cells of points; if there are as many targets, and each is there, no other cell is
	for i := range c.cells {
		if f := c.cells[i].form; (f == single || f == compacted) && !c.cells[i].unread {
			n++
		}
	}
	for _, t := range targets {
		if i := c.index(t.Qualifier); i < 0 || !bytes.Equal(c.row.Cells[i].Value, t.Value) {
			return false
		}
	}
	return n == len(targets)
}

// replace writes the targets in place of all cells of points, append columns apart. A
// cell that is there already stays.
func (c *Checker) replace(targets []Cell, stamp int64) {
	// Whether a cell that cannot be cut goes, unreadCell has said: its points are in no target.
	for i := range c.cells {
		if f := c.cells[i].form; f == single || f == compacted && !c.cells[i].unread {
			c.cells[i].remove = true
		}
	}

	for _, t := range targets {
		if i := c.index(t.Qualifier); i >= 0 && bytes.Equal(c.row.Cells[i].Value, t.Value) {
			c.cells[i].remove = false
			continue
		}
		t.Timestamp = stamp
		c.put(t)
	}
}

// put writes a cell, no earlier than the one whose place it takes: the store would hide
// it behind that.
func (c *Checker) put(x Cell) {
	if i := c.index(x.Qualifier); i >= 0 {
		x.Timestamp = max(x.Timestamp, c.row.Cells[i].Timestamp)
		c.cells[i].written = true
	}
	c.result.Put = append(c.result.Put, x)
}

// planSingles repairs single cells one by one.
func (c *Checker) planSingles() {
	for i := range c.cells {
		x := &c.cells[i]
		if x.form != single {
			continue
		}

		p := &c.points[x.first]
		switch {
		case p.drop:
			x.remove = true
		case p.alter && !p.bad: // a bad value goes as a whole, or stays
			c.planAltered(i, p)
		}
	}
}

// planAltered rewrites a single point, under the qualifier that its type and length ask
// for. Where another value of its time has that qualifier and stays, the point stays as it is.
func (c *Checker) planAltered(i int, p *point) {
	old := c.row.Cells[i].Qualifier
	flags := encoding.AppendQualifier(nil, p.q)
	// Only the type and the length change: the time stays in seconds or ms, as it was written.
	q := bytes.Clone(old)
	q[len(q)-1] = q[len(q)-1]&0xF0 | flags[len(flags)-1]&0x0F

	// This repair may have written another value of the time there.
	taken := slices.ContainsFunc(c.result.Put, func(x Cell) bool { return bytes.Equal(x.Qualifier, q) })
	if k := c.index(q); k >= 0 && k != i {
		// planSingles may not have come to the other cell yet: then drop alone says that it goes.
		taken = taken || !c.cells[k].remove && !c.points[c.cells[k].first].drop
	}
	if taken {
		// A finding of duplicates is about other values of the time, which still go.
		for k := range c.result.Findings {
			if f := &c.result.Findings[k]; f.Planned && f.Kind != Duplicate && bytes.Equal(f.Qualifier, old) {
				f.Planned, f.Left = false, leftTaken
			}
		}
		return
	}

	c.cells[i].remove = true // unless it is written over
	c.put(Cell{Qualifier: q, Value: bytes.Clone(p.value), Timestamp: c.row.Cells[i].Timestamp})
}
