package fsck

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// resolve puts the points that can be read into the order of their times and decides
// which of several of one time is kept. Points that cannot be read take no part: a
// broken value never drives out a good one. Nor do entries of an append column that a
// later one has replaced.
func (c *Checker) resolve() {
	ascending := true
	for i := range c.points {
		p := &c.points[i]
		if p.bad || p.over {
			continue
		}
		if n := len(c.order); n > 0 && c.points[c.order[n-1]].offset >= p.offset {
			ascending = false
		}
		c.order = append(c.order, int32(i))
	}

	c.result.Points = len(c.order)
	// Most rows have each time once, and their cells in order: nothing is to be chosen.
	if ascending {
		return
	}
	// Before choose drops any point, it must know whether an error in some cell has to stay.
	c.stuck = slices.ContainsFunc(c.cells, func(x cell) bool { return x.stuck })
	slices.SortFunc(c.order, c.compare)
	c.result.Points = 0
	for i := 0; i < len(c.order); {
		end := i + 1
		for end < len(c.order) && c.points[c.order[end]].offset == c.points[c.order[i]].offset {
			end++
		}
		if end-i > 1 {
			c.choose(c.order[i:end])
		}
		c.result.Points++
		i = end
	}
}

// compare orders points by time, and those of one time as they are preferred. Where the
// store's times are equal, the first cell of the row counts, as it does for a query that
// resolves duplicates.
func (c *Checker) compare(a, b int32) int {
	p, o := &c.points[a], &c.points[b]
	if p.offset != o.offset {
		return cmp.Compare(p.offset, o.offset)
	}
	age := cmp.Compare(c.row.Cells[p.cell].Timestamp, c.row.Cells[o.cell].Timestamp)
	if c.Options.LastWriteWins {
		age = -age
	}
	return cmp.Or(age, cmp.Compare(a, b))
}

// choose keeps the first of several points of one time, or all of them if the others may not go.
func (c *Checker) choose(group []int32) {
	// Of single cells w stays 0: they are deleted, and nothing is rewritten.
	var w way
	for _, i := range group[1:] {
		w |= c.wayOf(c.points[i].cell)
	}

	// If only some of the others can go, what is rewritten gets a newer time than one
	// that stays, and the next run would choose otherwise.
	left := ""
	if w != 0 && c.stuck {
		left = leftErrors
	}
	// Of equal integers of several lengths nothing is lost: a repair that was ended in the middle leaves the
	// long one next to the short one, which readers refuse as they do other values.
	needs, what := byResolveDuplicates, ""
	if c.equalIntegers(group) {
		needs, what = byFix, ", the same integer"
	}
	may := left == "" && c.Options.allows(needs)

	var values strings.Builder
	for k, i := range group {
		p := &c.points[i]
		p.drop, p.unresolved = may && k > 0, !may
		if k > 0 {
			values.WriteString(", ")
		}
		fmt.Fprintf(&values, "% X of % X", p.value,
			c.row.Cells[p.cell].Qualifier[:min(len(c.row.Cells[p.cell].Qualifier), 4)])
		if t := c.row.Cells[p.cell].Timestamp; t != 0 {
			fmt.Fprintf(&values, " written at %d", t)
		}
	}

	first := &c.points[group[0]]
	keep := "oldest"
	if c.Options.LastWriteWins {
		keep = "newest"
	}
	c.noteCell(first.cell, Finding{Kind: Duplicate, Count: len(group) - 1,
		What:   fmt.Sprintf("%d values at %d ms%s: %s", len(group), first.offset, what, values.String()),
		Remedy: "keep the " + keep + ", which is the first", needs: needs, way: w})
	// noteCell has looked at the options alone.
	if f := &c.result.Findings[len(c.result.Findings)-1]; f.Planned && !may {
		f.Planned, f.Left = false, left
	}
}

// equalIntegers reports whether points are integers of one value, at least one of them stored longer
// than it has to be.
func (c *Checker) equalIntegers(group []int32) (long bool) {
	for _, i := range group {
		// Values as they are written again are as short as can be.
		p := &c.points[i]
		if p.q.Float || !bytes.Equal(p.value, c.points[group[0]].value) {
			return false
		}
		long = long || p.alter
	}
	return long
}

// wayOf says how a point of a cell is taken out of it.
func (c *Checker) wayOf(i int32) way {
	switch c.cells[i].form {
	case compacted:
		return folding
	case appended:
		return appending
	}
	return 0
}
