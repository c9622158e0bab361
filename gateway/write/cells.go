package write

import (
	"bytes"
	"cmp"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Form is how the points of one row become cells.
type Form uint8

const (
	// Single writes one cell per point, as OpenTSDB does: a corrected value
	// overwrites its cell.
	Single Form = iota
	// MultiPoint writes the points of one row and commit window as one compacted cell.
	// It is several times cheaper, but a later correction becomes a duplicate.
	MultiPoint
	// Appended adds the points to the row's append column. The later of two writes of one time
	// wins.
	Appended
	// rollupCells writes one cell for each value of a rollup.
	rollupCells
)

const dataFamily = "t"

// cells makes the cells of a batch. Its memory is reused from batch to batch.
type cells struct {
	out     []store.Mutation
	entries []entry // of the current row
	memory  []byte  // of multi cells
	unused  []byte  // the end of memory that no cell has taken yet
}

// entry is one point of a row. Its slices are views of the row's entries.
type entry struct {
	q         encoding.Qualifier
	qualifier []byte
	value     []byte
}

func (c *cells) reset() {
	clear(c.out)
	clear(c.entries)
	c.out, c.entries = c.out[:0], c.entries[:0]
}

// build turns the points of r, which groupByRow has grouped, into mutations of the form, in the order of
// their row keys, and appends those of the histograms. All are valid until reset.
func (c *cells) build(r *rows, form Form) ([]store.Mutation, error) {
	if form == MultiPoint {
		// MultiPoint cells hold the bytes of all entries, and one trailing byte a row.
		c.memory = slices.Grow(c.memory[:0], len(r.values)+len(r.list))
		c.unused = c.memory[:cap(c.memory)]
	}

	for _, s := range r.sorted {
		key, entries := r.list[s.row].key, r.entries(s.row)
		if len(entries) == 0 {
			continue // the row has histograms only
		}
		if form == Appended {
			// The append column holds entries as they are.
			c.out = append(c.out, store.Mutation{Kind: store.Append, Row: key, Family: dataFamily,
				Qualifier: encoding.AppendColumn, Value: entries})
			continue
		}
		if form == rollupCells {
			c.addRollups(key, entries)
			continue
		}

		if err := c.parseEntries(entries); err != nil {
			return nil, err
		}
		if form == MultiPoint {
			c.addMulti(key)
		} else {
			c.addSingle(key)
		}
	}
	c.addHistograms(r)
	return c.out, nil
}

// parseEntries sets c.entries to the entries of a row, given one after the other.
func (c *cells) parseEntries(b []byte) error {
	c.entries = c.entries[:0]
	for len(b) > 0 {
		q, rest, err := encoding.ParseQualifier(b)
		if err != nil {
			return err
		}
		n := len(b) - len(rest)
		c.entries = append(c.entries, entry{q: q, qualifier: b[:n:n], value: rest[:q.Width:q.Width]})
		b = rest[q.Width:]
	}
	return nil
}

// addSingle adds one mutation per qualifier. The last of several entries with one qualifier
// counts, as if each had overwritten the cell of the one before. The mutations have the order of
// the entries that count: two cells of one time but different types have two qualifiers, and the
// later one must not go first.
func (c *cells) addSingle(key []byte) {
	// Collectors send the points of a row in order: then no qualifier occurs twice.
	if c.ascending() {
		for i := range c.entries {
			c.addCell(key, &c.entries[i])
		}
		return
	}

	last := make(map[string]int, len(c.entries)) // by qualifier, the index of its last entry
	for i := range c.entries {
		last[string(c.entries[i].qualifier)] = i
	}
	for i := range c.entries {
		if e := &c.entries[i]; last[string(e.qualifier)] == i {
			c.addCell(key, e)
		}
	}
}

func (c *cells) addCell(key []byte, e *entry) {
	c.out = append(c.out, store.Mutation{Row: key, Family: dataFamily, Qualifier: e.qualifier, Value: e.value})
}

// ascending reports whether the qualifiers ascend, so that none occurs twice.
func (c *cells) ascending() bool {
	for i := 1; i < len(c.entries); i++ {
		if bytes.Compare(c.entries[i-1].qualifier, c.entries[i].qualifier) >= 0 {
			return false
		}
	}
	return true
}

// addMulti adds one cell with all points of a row, in the order of their times. The last of several
// entries of one time counts.
func (c *cells) addMulti(key []byte) {
	byTime := func(a, b entry) int { return cmp.Compare(a.q.OffsetMS, b.q.OffsetMS) }
	if !slices.IsSortedFunc(c.entries, byTime) {
		slices.SortStableFunc(c.entries, byTime)
	}
	c.dropOverwritten()

	// A point of the seconds 80 to 95 has a qualifier such as 05 07. A cell that begins
	// with it looks like an append column to OpenTSDB's Fsck, so such a point gets a
	// separate cell, as a put of OpenTSDB writes it, unless another comes before it.
	rest := c.entries
	// A single point that is left becomes the same cell below.
	for len(rest) > 1 && //fault:multi-cell-like-an-append-column TestWriter_multiCellNotLikeAppendColumn
		rest[0].qualifier[0] == encoding.AppendColumn[0] {
		c.addCell(key, &rest[0])
		rest = rest[1:]
	}

	cell := c.takeBuilder(rest)
	for _, e := range rest {
		cell.AddEncoded(e.q, e.qualifier, e.value)
	}
	qualifier, value := cell.Cell()
	c.out = append(c.out, store.Mutation{Row: key, Family: dataFamily, Qualifier: qualifier, Value: value})
}

// dropOverwritten removes from sorted entries all but the last of each time.
func (c *cells) dropOverwritten() {
	kept := c.entries[:0]
	for i, e := range c.entries {
		if i+1 == len(c.entries) || c.entries[i+1].q.OffsetMS != e.q.OffsetMS {
			kept = append(kept, e)
		}
	}
	c.entries = kept
}

// takeBuilder returns a cell builder for entries, over as much of the unused memory as they need: their
// qualifiers, then their values and the byte that ends the value of a compacted cell.
func (c *cells) takeBuilder(entries []entry) encoding.CellBuilder {
	qualifierBytes, valueBytes := 0, 1
	for i := range entries {
		qualifierBytes += len(entries[i].qualifier)
		valueBytes += len(entries[i].value)
	}

	size := qualifierBytes + valueBytes
	cell := c.unused[:size]
	c.unused = c.unused[size:]
	return encoding.CellBuilder{Qualifier: cell[:0:qualifierBytes], Value: cell[qualifierBytes:qualifierBytes]}
}
