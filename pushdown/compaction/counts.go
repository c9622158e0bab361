package compaction

import (
	"fmt"
	"strings"
)

// Counts are the work that a job has done, or in a dry run would do.
type Counts struct {
	Rows      int64 // of points, that were read
	Compacted int64
	Left      [reasonCount]int64 // by reason; [None] is 0
	Cells     int64              // of points in the compacted rows before; they have one each after
	Bytes     int64              // of qualifiers and values of these cells
	BytesNow  int64              // of the merged cells
	Versions  int64              // deleted cells: those merged, and older versions
}

// Add adds other counts.
func (c *Counts) Add(o *Counts) {
	c.Rows += o.Rows
	c.Compacted += o.Compacted
	for i := range c.Left {
		c.Left[i] += o.Left[i]
	}
	c.Cells += o.Cells
	c.Bytes += o.Bytes
	c.BytesNow += o.BytesNow
	c.Versions += o.Versions
}

// count adds a row.
func (c *Counts) count(p *Plan) {
	c.Rows++
	if p.Reason != None {
		c.Left[p.Reason]++
		return
	}
	c.Compacted++
	c.Cells += int64(p.PointCells)
	c.Bytes += int64(p.PointBytes)
	c.BytesNow += int64(len(p.Merged.Qualifier) + len(p.Merged.Value))
	c.Versions += int64(len(p.Delete))
}

// String is what was done, in one line.
func (c *Counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows: %d compacted, %d cells of %d bytes became %d of %d", c.Rows, c.Compacted, c.Cells,
		c.Bytes, c.Compacted, c.BytesNow)
	for i, n := range c.Left {
		if n > 0 {
			fmt.Fprintf(&b, "; %d left: %s", n, Reason(i))
		}
	}
	return b.String()
}
