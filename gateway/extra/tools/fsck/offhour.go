package fsck

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"downpour/encoding"
)

// Why the points of a row of no full hour stay there.
const (
	leftFirst = "what else is wrong with the row is repaired first; run it again"
	leftFar   = "some of its points are of times that no row of a full hour holds"
	leftTwice = "two of its values would take one place"
)

// planOffHour plans a row whose base time is no full hour: its cells go to the rows of the full
// hours, where their points have the times that they have here. Other repairs come before that, in
// a run of their own.
func (c *Checker) planOffHour(key encoding.RowKey) {
	options := c.Options
	c.Options.Compact = false
	c.plan()
	c.Options = options

	c.note(Finding{Kind: OffHourRow, Count: 1, What: fmt.Sprintf("its base time %d is no full hour", key.BaseTime),
		Remedy: "move what it holds to rows of full hours, at the same times", needs: byFix})
	f := &c.result.Findings[len(c.result.Findings)-1]
	if !f.Planned {
		return
	}
	f.Planned = false
	if len(c.result.Put)+len(c.result.Delete) > 0 {
		f.Left = leftFirst
		return
	}
	moved, why := c.moved(key)
	if f.Left = why; why != "" {
		return
	}
	f.Planned, c.result.Move = true, moved
	c.result.Delete = append(c.result.Delete, c.row.Cells...)
}

// moved returns what the row's cells become, as rows of full hours, or why they stay. Points are
// single cells there, which leave those of others alone.
func (c *Checker) moved(key encoding.RowKey) (rows []Row, why string) {
	hour := encoding.Hour(int64(key.BaseTime))
	for _, cell := range c.row.Cells {
		first, second, err := encoding.SplitCell(cell.Qualifier, cell.Value, int32(int64(key.BaseTime)-hour))
		if err != nil {
			return nil, err.Error()
		}
		for i, part := range []encoding.SplitPart{first, second} {
			if len(part.Qualifier) == 0 {
				continue
			}
			base, err := encoding.BaseTime(hour + int64(i)*encoding.RowSeconds)
			if err != nil {
				return nil, leftFar
			}
			singles, err := c.singles(part)
			if err != nil {
				return nil, err.Error()
			}
			row := c.rowAt(&rows, base, key)
			for _, s := range singles {
				s.Timestamp = cell.Timestamp
				k, there := slices.BinarySearchFunc(row.Cells, s.Qualifier,
					func(x Cell, q []byte) int { return bytes.Compare(x.Qualifier, q) })
				switch {
				case !there:
					row.Cells = slices.Insert(row.Cells, k, s)
				case !bytes.Equal(row.Cells[k].Value, s.Value):
					return nil, leftTwice
				}
			}
		}
	}
	return rows, ""
}

// rowAt returns the row of a base time among rows, which it adds if it is not there.
func (c *Checker) rowAt(rows *[]Row, base uint32, key encoding.RowKey) *Row {
	at := c.Schema.BaseTimeAt()
	head := binary.BigEndian.AppendUint32(bytes.Clone(c.row.Key[:at]), base)
	name := append(head, key.Tags...)
	for i := range *rows {
		if bytes.Equal((*rows)[i].Key, name) {
			return &(*rows)[i]
		}
	}
	*rows = append(*rows, Row{Key: name})
	return &(*rows)[len(*rows)-1]
}

// singles returns the points of a part as single cells, and what has no points as it is.
func (c *Checker) singles(part encoding.SplitPart) (out []Cell, err error) {
	whole := Cell{Qualifier: bytes.Clone(part.Qualifier), Value: bytes.Clone(part.Value)}
	odd := len(part.Qualifier)%2 == 1
	if odd && part.Qualifier[0] != encoding.PrefixAppend ||
		!odd && len(part.Qualifier) == encoding.QualifierWidth(part.Qualifier[0]) {
		return []Cell{whole}, nil
	}
	entries, err := (&Checker{Schema: c.Schema}).Entries(whole) // of its own: it forgets the row
	for _, e := range entries {
		out = append(out, Cell{Qualifier: encoding.AppendQualifier(nil, e.Qualifier), Value: bytes.Clone(e.Value)})
	}
	return out, err
}
