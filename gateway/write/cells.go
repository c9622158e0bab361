package write

import (
	"bytes"
	"cmp"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Form is how points of one row become cells.
type Form uint8

const (
	// Cells writes one cell a point, as OpenTSDB does: a corrected value
	// overwrites its cell.
	Cells Form = iota
	// Multi writes the points of one row and window as one compacted cell:
	// several times cheaper, but a later correction is a duplicate.
	Multi
	// Appended adds the points to the row's append column; the later write of
	// a time wins.
	Appended
)

const dataFamily = "t"

// cells makes the cells of a batch. Its memory goes on from batch to batch.
type cells struct {
	out     []store.Mutation
	entries []entry // of one row
	memory  []byte  // of compacted cells
	free    []byte  // what is left of it
}

// entry is one point of a row, its slices views into the row's entries.
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

// make turns dealt rows into mutations; they are valid until reset.
func (c *cells) make(r *rows, form Form) ([]store.Mutation, error) {
	if form == Multi {
		c.memory = slices.Grow(c.memory[:0], len(r.values)+len(r.list))
		c.free = c.memory[:cap(c.memory)]
	}
	for i := range r.list {
		key, entries := r.list[i].key, r.entries(i)
		if form == Appended {
			c.out = append(c.out, store.Mutation{Kind: store.Append, Row: key, Family: dataFamily,
				Qualifier: encoding.AppendColumn, Value: entries})
			continue
		}
		if err := c.parse(entries); err != nil {
			return nil, err
		}
		if form == Multi {
			c.compacted(key)
		} else {
			c.single(key)
		}
	}
	return c.out, nil
}

// parse reads the entries of a row.
func (c *cells) parse(b []byte) error {
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

// single adds one mutation a qualifier; of equal qualifiers the last entry,
// which is what overwriting the cell one after another would leave.
func (c *cells) single(key []byte) {
	if c.ascending() {
		for i := range c.entries {
			c.put(key, &c.entries[i])
		}
		return
	}
	last := make(map[string]int, len(c.entries))
	for i := range c.entries {
		e := &c.entries[i]
		if at, ok := last[string(e.qualifier)]; ok {
			c.out[at].Value = e.value
			continue
		}
		last[string(e.qualifier)] = len(c.out)
		c.put(key, e)
	}
}

func (c *cells) put(key []byte, e *entry) {
	c.out = append(c.out, store.Mutation{Row: key, Family: dataFamily, Qualifier: e.qualifier, Value: e.value})
}

// ascending tells that no qualifier comes twice, in the usual order.
func (c *cells) ascending() bool {
	for i := 1; i < len(c.entries); i++ {
		if bytes.Compare(c.entries[i-1].qualifier, c.entries[i].qualifier) >= 0 {
			return false
		}
	}
	return true
}

// compacted adds one cell of a row's points; of equal times the last stays.
func (c *cells) compacted(key []byte) {
	byTime := func(a, b entry) int { return cmp.Compare(a.q.OffsetMS, b.q.OffsetMS) }
	if !slices.IsSortedFunc(c.entries, byTime) {
		slices.SortStableFunc(c.entries, byTime)
	}
	cell := c.builder()
	for i, e := range c.entries {
		if i+1 < len(c.entries) && c.entries[i+1].q.OffsetMS == e.q.OffsetMS {
			continue
		}
		cell.Add(e.q, e.value)
	}
	qualifier, value := cell.Cell()
	c.out = append(c.out, store.Mutation{Row: key, Family: dataFamily, Qualifier: qualifier, Value: value})
}

// builder writes into memory that has exactly the room for the entries and a
// trailing byte.
func (c *cells) builder() encoding.CellBuilder {
	names, size := 0, 1
	for i := range c.entries {
		names += len(c.entries[i].qualifier)
		size += len(c.entries[i].qualifier) + len(c.entries[i].value)
	}
	mine := c.free[:size]
	c.free = c.free[size:]
	return encoding.CellBuilder{Qualifier: mine[:0:names], Value: mine[names:names]}
}
