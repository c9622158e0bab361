package fsck

import (
	"encoding/binary"
	"fmt"

	"downpour/encoding"
)

// read looks at one cell, takes its points, and notes what is wrong with it.
// Source: Fsck.FsckWorker.fsckRow.
func (c *Checker) read(i int32) {
	q := c.row.Cells[i].Qualifier
	c.cells = append(c.cells, cell{first: int32(len(c.points)), end: int32(len(c.points))})

	odd := len(q)%2 == 1
	switch {
	case len(q) < 2 || odd && len(q) != 3 && len(q) != 5:
		c.unknown(i, "got a qualifier of %d bytes, want 2, 3, 5 or an even number", len(q))
	case odd:
		c.readObject(i, q[0])
	case len(q) == 2 && encoding.QualifierWidth(q[0]) == 4:
		// OpenTSDB's own tool ends at such a cell.
		c.unknown(i, "got a qualifier of 2 bytes, which begins one of %d", encoding.QualifierWidth(q[0]))
	case len(q) == encoding.QualifierWidth(q[0]):
		c.readSingle(i)
	default:
		c.readCompacted(i)
	}
	c.cells[i].end = int32(len(c.points))
}

// unknown notes a cell that nothing of OpenTSDB writes.
func (c *Checker) unknown(i int32, format string, args ...any) {
	c.cells[i].remove = c.Options.allows(byDeleteUnknownColumns)
	c.noteCell(i, Finding{
		Kind:   UnknownColumn,
		Count:  1,
		What:   fmt.Sprintf(format, args...),
		Remedy: "delete the cell",
		needs:  byDeleteUnknownColumns,
	})
}

// readObject looks at a cell whose first byte says what it holds.
func (c *Checker) readObject(i int32, prefix byte) {
	switch prefix {
	case encoding.PrefixAnnotation:
		c.result.Annotations++
	case encoding.PrefixHistogram:
		c.result.Histograms++
	case encoding.PrefixAppend:
		c.result.AppendColumns++
		c.readAppended(i)
	default:
		c.noteCell(i, Finding{
			Kind:  FutureColumn,
			Count: 1,
			What:  fmt.Sprintf("got the prefix %02X, want 01, 05 or 06", prefix),
		})
	}
}

// add adds a point that can be read.
func (c *Checker) add(i int32, q encoding.Qualifier, value []byte) *point {
	c.points = append(c.points, point{offset: q.OffsetMS, cell: i, q: q, value: value})
	return &c.points[len(c.points)-1]
}

// readSingle looks at a cell of one point. Source: Fsck.FsckWorker.fsckFloat, fsckInteger.
func (c *Checker) readSingle(i int32) {
	c.cells[i].form = single
	x := &c.row.Cells[i]
	q, _, err := encoding.ParseQualifier(x.Qualifier)
	p := c.add(i, q, x.Value)
	width := len(x.Value)

	switch {
	case err != nil:
		c.badPoint(i, p, fmt.Sprintf("%d ms is beyond the hour", q.OffsetMS))
	// Before the lengths are judged: 8 bytes of a float on 4 are an old form, or a bad value.
	case q.Float && q.Width == 4 && width == 8 && c.paddedFloat(i, p):
	case !widthOK(width, q.Float):
		c.badPoint(i, p, fmt.Sprintf("a value of %d bytes, want %s", width, widthsWanted(q.Float)))
	case q.Float && q.Width == 4 && width == 8:
		c.badPoint(i, p, fmt.Sprintf("a float on 4 bytes has 8, the first four % X, want 00 00 00 00 or FF FF FF FF",
			x.Value[:4]))
	case width != q.Width:
		// A query reads the value by its real length, so it is no reason to lose it.
		p.q.Width, p.alter = width, c.Options.allows(byFix)
		c.noteCell(i, Finding{
			Kind:   WrongWidth,
			Count:  1,
			What:   fmt.Sprintf("a value of %d bytes under a qualifier that says %d", width, q.Width),
			Remedy: "write the qualifier as the value is",
			needs:  byFix,
		})
	default:
		if saved := c.shorten(p); saved > 0 {
			c.longIntegers(i, 1, saved, 0)
		}
	}
}

// paddedFloat takes a float on 4 bytes that an old OpenTSDB has stored on 8: after four
// zeros, or after the sign. It reports whether the value is one of these.
func (c *Checker) paddedFloat(i int32, p *point) bool {
	head := binary.BigEndian.Uint32(p.value)
	// As OpenTSDB's Fsck does, FF is only looked for under qualifiers of seconds.
	if head != 0 && (head != 0xFFFFFFFF || p.q.Milli) {
		return false
	}

	what := "a float on 4 bytes after four zeros"
	if head != 0 {
		what = "a float on 4 bytes after four bytes FF"
	}
	// Without leave to repair it a value after FF stays one that no query reads.
	p.alter = c.Options.allows(byFix)
	p.bad = head != 0 && !p.alter
	p.value = p.value[4:]
	c.noteCell(i, Finding{Kind: FloatEncoding, Count: 1, What: what, Remedy: "write the last four bytes", needs: byFix})
	return true
}

// shorten makes an integer on 8 bytes as short as it can be and returns how many bytes
// that saves.
func (c *Checker) shorten(p *point) (saved int) {
	if p.q.Float || p.q.Width != 8 {
		return 0
	}
	v := int64(binary.BigEndian.Uint64(p.value))
	width := encoding.IntWidth(v)
	if width == 8 {
		return 0
	}
	// Without leave it is only counted.
	if c.Options.allows(byFix) {
		p.q.Width, p.value, p.alter = width, p.value[8-width:], true
	}
	return 8 - width
}

// longIntegers notes integers that could be shorter.
func (c *Checker) longIntegers(i int32, n, saved int, w way) {
	c.result.SavedBytes += saved
	c.noteCell(i, Finding{
		Kind:   LongInteger,
		Count:  n,
		What:   fmt.Sprintf("%d integers on 8 bytes fit %d bytes fewer", n, saved),
		Remedy: "write them shorter",
		needs:  byFix,
		way:    w,
	})
}

// badPoint notes the point of a single cell, which cannot be read.
func (c *Checker) badPoint(i int32, p *point, what string) {
	p.bad = true
	c.cells[i].remove = c.Options.allows(byDeleteBadValues)
	c.cells[i].stuck = !c.cells[i].remove
	c.noteCell(i, Finding{Kind: BadValue, Count: 1, What: what, Remedy: "delete the cell", needs: byDeleteBadValues})
}

// entry is a point as it stands in a compacted cell or an append column.
type entry struct {
	q     encoding.Qualifier
	width int    // bytes of the qualifier
	fault string // why it cannot be read, "" if it can
}

// readEntry parses the qualifier at the start of b. ok is false if b is too short for
// one. A qualifier that makes no sense still says how long it and its value are.
func readEntry(b []byte) (e entry, ok bool) {
	e.width = encoding.QualifierWidth(b[0])
	if len(b) < e.width {
		return e, false
	}
	q, _, err := encoding.ParseQualifier(b)
	e.q = q
	switch {
	case err != nil:
		e.fault = fmt.Sprintf("%d ms is beyond the hour", q.OffsetMS)
	case !widthOK(q.Width, q.Float):
		e.fault = fmt.Sprintf("a value of %d bytes, want %s", q.Width, widthsWanted(q.Float))
	}
	return e, true
}

// readCompacted looks at a cell of several points.
// Source: Internal.extractDataPoints.
func (c *Checker) readCompacted(i int32) {
	c.cells[i].form = compacted
	x := &c.row.Cells[i]
	trailer, faults, first, broken := c.cut(i, x)
	if broken != "" {
		c.unreadCell(i, broken)
		return
	}

	if trailer > 1 {
		c.cells[i].change = c.Options.allows(byDeleteBadCompacts)
		c.cells[i].stuck = !c.cells[i].change
		c.noteCell(i, Finding{
			Kind:   BadCompact,
			Count:  1,
			What:   fmt.Sprintf("the last byte is %02X, want 00 or 01", trailer),
			Remedy: "write the cell's points anew",
			needs:  byDeleteBadCompacts,
			way:    folding,
		})
	}
	if faults > 0 {
		c.badEntries(i, faults, first, folding)
	}
	c.checkOrder(i)
	c.shortenAll(i)
}

// cut takes the points of a compacted cell. It returns the cell's last byte, how many of
// the points cannot be read and why the first of them cannot, or why the cell cannot be
// cut.
func (c *Checker) cut(i int32, x *Cell) (trailer byte, faults int, first, broken string) {
	left, rest := x.Qualifier, x.Value
	for len(left) > 0 {
		e, ok := readEntry(left)
		if !ok {
			return 0, 0, "", "its last qualifier is cut short"
		}
		if len(rest) < e.q.Width {
			return 0, 0, "", fmt.Sprintf("the value of %d bytes ends in point %d", len(x.Value),
				int32(len(c.points))-c.cells[i].first+1)
		}

		p := c.add(i, e.q, rest[:e.q.Width])
		if p.bad = e.fault != ""; p.bad {
			faults++
			if faults == 1 {
				first = e.fault
			}
		}
		left, rest = left[e.width:], rest[e.q.Width:]
	}

	// One byte behind the points says whether seconds and milliseconds are mixed.
	if len(rest) != 1 {
		return 0, 0, "", fmt.Sprintf("%d bytes follow its points, want 1", len(rest))
	}
	return rest[0], faults, first, ""
}

// unreadCell notes a compacted cell that cannot be cut. Its points are not looked at.
func (c *Checker) unreadCell(i int32, why string) {
	x := &c.cells[i]
	// Those that were taken in front of the fault may be misread, too.
	c.points = c.points[:x.first]
	x.unread, x.remove = true, c.Options.allows(byDeleteBadCompacts)
	c.noteCell(i, Finding{
		Kind:   BadCompact,
		Count:  1,
		What:   "it cannot be cut into points: " + why,
		Remedy: "delete the cell",
		needs:  byDeleteBadCompacts,
	})
}

// badEntries notes points of a cell that cannot be read while those around them can.
func (c *Checker) badEntries(i int32, n int, first string, w way) {
	may := c.Options.allows(byDeleteBadValues)
	c.cells[i].change = c.cells[i].change || may
	c.cells[i].stuck = c.cells[i].stuck || !may
	c.noteCell(i, Finding{
		Kind:   BadValue,
		Count:  n,
		What:   fmt.Sprintf("%d points of the cell cannot be read, the first: %s", n, first),
		Remedy: "write the cell's other points anew",
		needs:  byDeleteBadValues,
		way:    w,
	})
}

// checkOrder notes a compacted cell whose points do not ascend.
func (c *Checker) checkOrder(i int32) {
	points := c.points[c.cells[i].first:] // no cell behind this one is read yet
	for k := 1; k < len(points); k++ {
		// Equal times are in order here: resolve finds them as duplicates.
		if points[k].offset >= points[k-1].offset {
			continue
		}
		// One such point is enough for the cell to be rewritten.
		c.cells[i].change = c.cells[i].change || c.Options.allows(byFix)
		c.noteCell(i, Finding{
			Kind:   FixableCompact,
			Count:  1,
			What:   fmt.Sprintf("point %d comes before the one in front of it", k+1),
			Remedy: "write the cell's points in order",
			needs:  byFix,
			way:    folding,
		})
		return
	}
}

// shortenAll shortens the integers of a compacted cell.
func (c *Checker) shortenAll(i int32) {
	n, saved := 0, 0
	for k := c.cells[i].first; k < int32(len(c.points)); k++ {
		if p := &c.points[k]; !p.bad {
			if s := c.shorten(p); s > 0 {
				n, saved = n+1, saved+s
			}
		}
	}
	if n > 0 {
		c.longIntegers(i, n, saved, folding)
	}
}

// widthOK reports whether a value of a type can have so many bytes.
func widthOK(width int, float bool) bool {
	return width == 4 || width == 8 || !float && (width == 1 || width == 2)
}

func widthsWanted(float bool) string {
	if float {
		return "4 or 8 for a float"
	}
	return "1, 2, 4 or 8 for an integer"
}
