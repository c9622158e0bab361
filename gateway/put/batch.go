package put

import (
	"cmp"
	"context"
	"slices"
	"time"

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

// Batch is a set of points that become durable together. It is done once its
// lane has written it.
type Batch struct {
	rows  map[string]int
	data  []rowPoints
	bytes int
	due   time.Time // when its window ends
	done  chan struct{}
	err   error
}

// rowPoints are one row's points in the order of their arrival, as entries of
// an append column: qualifier, value, qualifier, value, ….
type rowPoints struct {
	key     []byte
	entries []byte
	points  int // entries counted
}

func newBatch(window time.Duration) *Batch {
	return &Batch{rows: make(map[string]int), due: time.Now().Add(window), done: make(chan struct{})}
}

// add puts one entry into the row of key.
func (b *Batch) add(key, entry []byte) {
	i, ok := b.rows[string(key)]
	if !ok {
		i = len(b.data)
		k := slices.Clone(key)
		b.rows[string(k)] = i
		b.data = append(b.data, rowPoints{key: k})
		b.bytes += len(k) + 64
	}
	b.data[i].entries = append(b.data[i].entries, entry...)
	b.data[i].points++
	b.bytes += len(entry)
}

// Wait returns once the batch is durable, or its error. A context that ends
// first leaves the points' fate unknown.
func (b *Batch) Wait(ctx context.Context) error {
	select {
	case <-b.done:
		return b.err
	default:
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Batch) finish(err error) {
	b.err = err
	b.rows, b.data = nil, nil
	close(b.done)
}

// mutations makes the cells of all rows.
func (b *Batch) mutations(form Form) ([]store.Mutation, error) {
	out := make([]store.Mutation, 0, len(b.data))
	for _, r := range b.data {
		if form == Appended {
			out = append(out, store.Mutation{Kind: store.Append, Row: r.key, Family: dataFamily,
				Qualifier: encoding.AppendColumn, Value: r.entries})
			continue
		}
		entries, err := parseEntries(r.entries)
		if err != nil {
			return nil, err
		}
		if form == Multi {
			out = append(out, compacted(r.key, entries))
			continue
		}
		out = appendCells(out, r.key, entries)
	}
	return out, nil
}

// entry is one point of a row, its slices views into the row's entries.
type entry struct {
	q         encoding.Qualifier
	qualifier []byte
	value     []byte
}

func parseEntries(b []byte) ([]entry, error) {
	var out []entry
	for len(b) > 0 {
		q, rest, err := encoding.ParseQualifier(b)
		if err != nil {
			return nil, err
		}
		n := len(b) - len(rest)
		out = append(out, entry{q: q, qualifier: b[:n], value: rest[:q.Width]})
		b = rest[q.Width:]
	}
	return out, nil
}

// appendCells adds one mutation a qualifier; of equal qualifiers the last
// entry, which is what overwriting the cell one after another would leave.
func appendCells(out []store.Mutation, key []byte, entries []entry) []store.Mutation {
	last := make(map[string]int, len(entries))
	for _, e := range entries {
		m := store.Mutation{Row: key, Family: dataFamily, Qualifier: e.qualifier, Value: e.value}
		if i, ok := last[string(e.qualifier)]; ok {
			out[i] = m
			continue
		}
		last[string(e.qualifier)] = len(out)
		out = append(out, m)
	}
	return out
}

// compacted makes one cell of a row's points; of equal times the last stays.
func compacted(key []byte, entries []entry) store.Mutation {
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.q.OffsetMS, b.q.OffsetMS) })
	var cell encoding.CellBuilder
	for i, e := range entries {
		if i+1 < len(entries) && entries[i+1].q.OffsetMS == e.q.OffsetMS {
			continue
		}
		cell.Add(e.q, e.value)
	}
	qualifier, value := cell.Cell()
	return store.Mutation{Row: key, Family: dataFamily, Qualifier: qualifier, Value: value}
}

const dataFamily = "t"
