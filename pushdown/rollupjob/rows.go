package rollupjob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"sort"

	"downpour/encoding"
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

// sum returns the digest, of which 16 bytes are kept.
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
func (l *layout) eachRolled(ctx context.Context, from store.Reader, keys store.KeyRange, f func(key []byte, at int64, c *store.Cell)) error {
	scan := store.Scan{Table: l.table, Start: keys.Start, Stop: keys.Stop, Family: encoding.FamilyData, Columns: l.qualifiers()}
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

// readBack returns the digests of what the table holds at the times of pieces, ascending.
func (l *layout) readBack(ctx context.Context, from store.Reader, keys store.KeyRange, pieces []piece) ([][]byte, error) {
	sums := make([]digest, len(pieces))
	for i := range sums {
		sums[i] = newDigest()
	}
	err := l.eachRolled(ctx, from, keys, func(key []byte, at int64, c *store.Cell) {
		i := sort.Search(len(pieces), func(i int) bool { return pieces[i].To > at })
		if i < len(pieces) && pieces[i].From <= at {
			sums[i].add(key, c)
		}
	})
	out := make([][]byte, len(pieces))
	for i := range sums {
		out[i] = sums[i].sum()
	}
	return out, err
}

// changes returns the mutations that make of a table's cells at a time those of rows: what is
// there already is not written again, so that a mark of it holds.
func (l *layout) changes(ctx context.Context, from store.Reader, keys store.KeyRange, times Range, rows []rolledRow) ([]store.Mutation, error) {
	wanted := make(map[string]map[string][]byte, len(rows)) // values by key and qualifier
	for _, r := range rows {
		cells := make(map[string][]byte, len(r.cells))
		for _, c := range r.cells {
			cells[string(c.Qualifier)] = c.Value
		}
		wanted[string(r.key)] = cells
	}

	var out []store.Mutation
	err := l.eachRolled(ctx, from, keys, func(key []byte, at int64, c *store.Cell) {
		if at < times.From || at >= times.To {
			return
		}
		value, ok := wanted[string(key)][string(c.Qualifier)]
		switch {
		case !ok:
			out = append(out, store.Mutation{Kind: store.DeleteCell, Row: bytes.Clone(key), Family: encoding.FamilyData, Qualifier: bytes.Clone(c.Qualifier)})
		case bytes.Equal(value, c.Value):
			delete(wanted[string(key)], string(c.Qualifier))
		}
	})
	if err != nil {
		return nil, err
	}

	for _, r := range rows {
		left := wanted[string(r.key)]
		for _, c := range r.cells {
			if _, ok := left[string(c.Qualifier)]; ok {
				out = append(out, store.Mutation{Row: r.key, Family: encoding.FamilyData, Qualifier: c.Qualifier, Value: c.Value})
			}
		}
	}
	return out, nil
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
