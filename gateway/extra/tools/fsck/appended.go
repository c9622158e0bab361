package fsck

import (
	"bytes"
	"fmt"

	"downpour/encoding"
)

// readAppended looks at an append column: qualifier and value of each point, in the
// order in which they were put. The last value of a time counts; the others are no
// duplicates, because every reader knows which one holds.
//
//	00 00 | 05 | 00 A0 | 06 | 01 41 | 07        +0 s, then +10 s, then one beyond its end
//
// A broken entry is left out if the others can still be separated. Otherwise what
// follows it may be anything, and the column ends before it.
func (c *Checker) readAppended(i int32) {
	c.cells[i].form = appended
	x := &c.row.Cells[i]
	if !bytes.Equal(x.Qualifier, encoding.AppendColumn) {
		c.cells[i].change = c.Options.allows(byFix)
		c.cells[i].stuck = !c.cells[i].change
		c.noteCell(i, Finding{
			Kind:   FixableCompact,
			Count:  1,
			What:   fmt.Sprintf("an append column is named % X, want % X", x.Qualifier, encoding.AppendColumn),
			Remedy: "write its points to the right column",
			needs:  byFix,
			way:    appending,
		})
	}

	faults, first, at := c.walk(i, x.Value)
	if at < len(x.Value) {
		c.cutColumn(i, at)
	} else if faults > 0 {
		c.badEntries(i, faults, first, appending)
	}
	c.overwrite(i)
}

// walk takes the entries of an append column. It returns how many of them cannot be read
// and why the first cannot, and where reading ends: at the end of the value, or, if it
// does not come out there, at the first entry that makes no sense.
func (c *Checker) walk(i int32, value []byte) (faults int, first string, at int) {
	firstFault := -1 // where the first entry begins that cannot be read
	for rest := value; len(rest) > 0; {
		at = len(value) - len(rest)
		e, ok := readEntry(rest)
		if !ok || len(rest) < e.width+e.q.Width {
			// Either this is where the value ends too early, or an entry before it that makes no
			// sense had another length than it says, and all behind it was misread.
			if firstFault >= 0 {
				at = firstFault
			}
			return faults, first, at
		}

		p := c.add(i, e.q, rest[e.width:e.width+e.q.Width])
		if p.bad = e.fault != ""; p.bad {
			if faults++; faults == 1 {
				first, firstFault = e.fault, at
			}
		}
		rest = rest[e.width+e.q.Width:]
	}
	return faults, first, len(value)
}

// cutColumn drops what follows byte at of an append column, which cannot be read.
func (c *Checker) cutColumn(i int32, at int) {
	x := &c.cells[i]
	kept, size := x.first, 0
	for size < at {
		p := &c.points[kept]
		size += qualifierWidth(p.q) + len(p.value)
		kept++
	}
	c.points = c.points[:kept]

	may := c.Options.allows(byDeleteBadCompacts)
	x.change, x.stuck = x.change || may, x.stuck || !may
	c.noteCell(i, Finding{Kind: BadCompact, Count: 1,
		What: fmt.Sprintf("it cannot be read from byte %d of %d on, after %d points", at, len(c.row.Cells[i].Value),
			kept-x.first),
		Remedy: "end it there", needs: byDeleteBadCompacts, way: appending})
}

// overwrite marks the values that a later one of their time has replaced.
func (c *Checker) overwrite(i int32) {
	points := c.points[c.cells[i].first:] // no cell behind this one is read yet
	ordered := true
	for k := 1; k < len(points) && ordered; k++ {
		ordered = points[k-1].offset < points[k].offset
	}
	// Then no time comes twice.
	if ordered {
		return
	}

	if c.seen == nil {
		c.seen = map[int32]int32{}
	}
	clear(c.seen)
	over := 0
	for k := range points {
		if points[k].bad { // it replaces nothing, and nothing replaces it
			continue
		}
		if before, ok := c.seen[points[k].offset]; ok {
			points[before].over = true
			over++
		}
		c.seen[points[k].offset] = int32(k)
	}

	c.cells[i].loose = true
	// Every reader puts the entries into order by itself, so only --compact asks for it.
	if c.Options.Compact {
		c.noteCell(i, Finding{
			Kind:   LooseAppends,
			Count:  1,
			What:   fmt.Sprintf("%d entries are not in the order of time, %d of them written over", len(points), over),
			Remedy: "write it in order",
			needs:  byCompact,
			way:    appending,
		})
	}
}

// qualifierWidth is the number of bytes of a qualifier.
func qualifierWidth(q encoding.Qualifier) int {
	if q.Milli {
		return 4
	}
	return 2
}
