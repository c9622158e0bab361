package rollupjob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"slices"
	"sort"

	"downpour/encoding"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
)

// callMutations is the number of mutations of one call.
const callMutations = 2000

// digest sums up rollup rows, ascending, each with its cells ascending.
type digest struct{ hash.Hash }

func newDigest() digest { return digest{sha256.New()} }

// add adds a cell. Lengths keep fields apart.
func (d digest) add(key []byte, c *store.Cell) {
	var b []byte
	for _, field := range [][]byte{key, c.Qualifier, c.Value} {
		b = append(binary.AppendUvarint(b, uint64(len(field))), field...)
	}
	d.Write(b)
}

// sum returns the first 16 bytes of the digest.
func (d digest) sum() []byte { return d.Sum(nil)[:16] }

// digestOf returns the digest of rows.
func digestOf(rows []rolledRow) []byte {
	d := newDigest()
	for _, r := range rows {
		for i := range r.cells {
			d.add(r.key, &r.cells[i])
		}
	}
	return d.sum()
}

// eachRolled calls f for each cell of the layout's columns in the rollup rows of a key range,
// with the start of its interval. f must not keep what it is given.
func (l *layout) eachRolled(ctx context.Context, from store.Reader, keys store.KeyRange,
	f func(key []byte, at int64, c *store.Cell)) error {
	scan := store.Scan{
		Table:   l.table,
		Start:   keys.Start,
		Stop:    keys.Stop,
		Family:  encoding.FamilyData,
		Columns: l.qualifiers(),
	}
	for row, err := range store.Rows(ctx, from, scan) {
		if err != nil {
			return err
		}
		key, err := l.schema.ParseRowKey(row.Key)
		if err != nil {
			return &damageError{bytes.Clone(row.Key), err}
		}
		for i := range row.Cells {
			if at, ok := l.timeOf(int64(key.BaseTime), row.Cells[i].Qualifier); ok {
				f(row.Key, at, &row.Cells[i])
			}
		}
	}
	return nil
}

// readBack returns the digests of the table's cells at the times of pieces, and at those of wholes,
// which consist of pieces; both ascend.
func (l *layout) readBack(ctx context.Context, from store.Reader, keys store.KeyRange,
	pieces, wholes []Range) (ofPieces, ofWholes [][]byte, err error) {
	p, w := newSums(pieces), newSums(wholes)
	err = l.eachRolled(ctx, from, keys, func(key []byte, at int64, c *store.Cell) {
		p.add(key, at, c)
		w.add(key, at, c)
	})
	return p.digests(), w.digests(), err
}

// sums are digests of several times.
type sums struct {
	times []Range
	of    []digest
}

func newSums(times []Range) sums {
	s := sums{times: times}
	for range times {
		s.of = append(s.of, newDigest())
	}
	return s
}

// add adds a cell to the digest of its time.
func (s *sums) add(key []byte, at int64, c *store.Cell) {
	i := sort.Search(len(s.times), func(i int) bool { return s.times[i].To > at })
	if i < len(s.times) && s.times[i].From <= at {
		s.of[i].add(key, c)
	}
}

func (s *sums) digests() [][]byte {
	out := make([][]byte, len(s.of))
	for i := range s.of {
		out[i] = s.of[i].sum()
	}
	return out
}

// slotKey names what a row holds of one series and interval.
type slotKey struct {
	row string
	at  int64 // begin of the interval
}

// change is a mutation of a cell of the table.
type change struct {
	store.Mutation
	slotKey
	fewer bool // the table's values are of more points than the raw rows have, or of an unknown number
	count bool // it puts a number of points
}

// changes returns the changes that turn a table's cells at a time into those of rows: equal cells
// are not written again, so that their mark holds.
func (l *layout) changes(ctx context.Context, from store.Reader, keys store.KeyRange, times Range,
	rows []rolledRow) ([]change, error) {
	wanted := make(map[string]map[string][]byte, len(rows)) // values by key and qualifier
	counts := map[slotKey]int64{}                           // of raw points, where there are any
	for _, r := range rows {
		cells := make(map[string][]byte, len(r.cells))
		for i, c := range r.cells {
			cells[string(c.Qualifier)] = c.Value
			if n, ok := l.countOf(&c); ok {
				counts[slotKey{string(r.key), r.times[i]}] = n
			}
		}
		wanted[string(r.key)] = cells
	}

	var out []change
	there := map[slotKey]int64{} // counts in the table, unknown ones largest
	err := l.eachRolled(ctx, from, keys, func(key []byte, at int64, c *store.Cell) {
		if at < times.From || at >= times.To {
			return
		}
		slot := slotKey{string(key), at}
		if n, ok := l.countOf(c); ok {
			there[slot] = n
		} else if _, ok := there[slot]; !ok {
			there[slot] = math.MaxInt64
		}
		value, ok := wanted[slot.row][string(c.Qualifier)]
		switch {
		case !ok:
			m := store.Mutation{
				Kind:      store.DeleteCell,
				Row:       bytes.Clone(key),
				Family:    encoding.FamilyData,
				Qualifier: bytes.Clone(c.Qualifier),
			}
			out = append(out, change{Mutation: m, slotKey: slot})
		case bytes.Equal(value, c.Value):
			delete(wanted[slot.row], string(c.Qualifier))
		}
	})
	if err != nil {
		return nil, err
	}

	for _, r := range rows {
		left := wanted[string(r.key)]
		for i, c := range r.cells {
			if _, ok := left[string(c.Qualifier)]; ok {
				m := store.Mutation{Row: r.key, Family: encoding.FamilyData, Qualifier: c.Qualifier, Value: c.Value}
				_, isCount := l.countOf(&c)
				out = append(out, change{Mutation: m, slotKey: slotKey{string(r.key), r.times[i]}, count: isCount})
			}
		}
	}
	for i := range out {
		n, ok := there[out[i].slotKey]
		out[i].fewer = ok && counts[out[i].slotKey] < n
	}
	return out, nil
}

// countOf returns the value of a cell of the column of counts.
func (l *layout) countOf(c *store.Cell) (n int64, ok bool) {
	for i := range l.columns {
		if rollup.ComputedColumns[l.columns[i].value] != "count" {
			continue
		}
		_, float, width, ok := l.columns[i].ParseQualifier(c.Qualifier)
		if !ok || float || width != len(c.Value) {
			return 0, false
		}
		for _, b := range c.Value {
			n = n<<8 | int64(b)
		}
		return n, n >= 0
	}
	return 0, false
}

// permitted returns the changes to make, those of counts of points apart, and how many values stay instead of being
// changed. Counts are written before values, so that a killed job leaves no value without its number of points. Values
// that were made of more points than the raw rows have now are kept, unless fewer is set: if retention, a TTL of HBase
// or a script has deleted raw rows, rollups are all that remains of them, and that cannot be distinguished from a
// deletion that rollups should follow. They differ from what the raw rows give, so their piece has valuesStay, and
// queries read raw rows.
func permitted(changes []change, fewer bool) (pointCounts, values []store.Mutation, stay int64) {
	for i := range changes {
		c := &changes[i]
		switch {
		case c.fewer && !fewer:
			stay++
		case c.count:
			pointCounts = append(pointCounts, c.Mutation)
		default:
			values = append(values, c.Mutation)
		}
	}
	return pointCounts, values, stay
}

// write carries out changes.
func write(ctx context.Context, to store.Writer, table string, changes []store.Mutation) error {
	for some := range slices.Chunk(changes, callMutations) {
		if err := to.Apply(ctx, table, some); err != nil {
			return err
		}
	}
	return nil
}
