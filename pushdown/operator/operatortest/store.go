// Package operatortest has what tests of operators and of their callers need: a store
// in memory that fails on demand, tables of known points, and a check of the contract
// of operators.
package operatortest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Store is a store.Reader over rows in memory. It overwrites the keys and values of a
// block when the next one is requested, so that a view that was kept is noticed. Set
// its fields before use.
type Store struct {
	Rows []store.Row // ascending by key
	// BlockRows is the number of rows of a block; 0 is all.
	BlockRows int
	// Loose makes the store ignore filters, which a store may do, and the bounds of
	// the scan, which it may not.
	Loose bool
	// Sealed returns append columns as the embedded store keeps old ones, to scans that take them.
	Sealed bool
	// Borders are the first keys of all regions but the first. Servers are the servers
	// of the regions, used in rotation.
	Borders [][]byte
	Servers []string
	// Fail, if set, is called before each block. Its error ends the scan; it is returned as one that
	// wraps io.EOF, as that of a server which has closed its connection. Fail may
	// block until ctx ends.
	Fail func(ctx context.Context, block int) error
	// Away makes Regions fail with store.ErrUnavailable.
	Away atomic.Bool
	// NextBytes, if set, is the scanners' estimate of the next block, see store.Scanner.
	NextBytes int64
	// Keep does not overwrite blocks, for benchmarks.
	Keep bool

	// Open is the number of scanners that are not closed.
	Open atomic.Int64
}

var _ store.Reader = (*Store)(nil)

// Features implements store.Reader: there are none.
func (m *Store) Features() store.Features { return store.Features{} }

// Scan returns a scanner over the rows that s selects.
func (m *Store) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	m.Open.Add(1)

	sc := &scanner{store: m, ctx: ctx}
	first, _ := m.search(s.Start)
	last := len(m.Rows)
	if len(s.Stop) > 0 {
		last, _ = m.search(s.Stop)
	}

	// A benchmark must not measure the copying of rows.
	if m.Keep && len(s.Filter.Ranges) == 0 && s.Filter.Pattern == nil {
		sc.rows = m.Rows[first:last]
		return sc, nil
	}

	// The operator must drop what its part does not admit.
	if m.Loose {
		first, last = 0, len(m.Rows)
	}
	for _, r := range m.Rows[first:max(first, last)] {
		sc.stats.RowsScanned++
		if m.Loose || s.Filter.Matches(r.Key) {
			if m.Sealed && s.Sealed {
				r = sealedRow(r)
			}
			sc.rows = append(sc.rows, r)
		}
	}
	return sc, nil
}

// sealedRow is a row with its append column sealed.
func sealedRow(r store.Row) store.Row {
	r.Cells = slices.Clone(r.Cells)
	var s encoding.Sealer
	for i, c := range r.Cells {
		if !bytes.Equal(c.Qualifier, encoding.AppendColumn) {
			continue
		}
		if v, ok := s.Seal(nil, c.Value); ok {
			r.Cells[i].Value = v
		}
	}
	return r
}

// scanner is what Scan returns.
type scanner struct {
	store  *Store
	ctx    context.Context
	rows   []store.Row
	block  []store.Row
	blocks int
	stats  store.ScanStats
	closed atomic.Bool
}

// Next returns a copy of the next rows.
func (s *scanner) Next() ([]store.Row, error) {
	s.overwrite()
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	if f := s.store.Fail; f != nil {
		if err := f(s.ctx, s.blocks); err != nil {
			return nil, fmt.Errorf("%w: %w", err, io.EOF)
		}
	}

	s.blocks++
	s.stats.RPCs++
	if len(s.rows) == 0 {
		return nil, io.EOF
	}

	n := len(s.rows)
	if b := s.store.BlockRows; b > 0 {
		n = min(n, b)
	}
	rows := s.rows[:n]
	s.rows = s.rows[n:]
	s.count(rows)

	if s.store.Keep {
		return rows, nil
	}
	for _, r := range rows {
		s.block = append(s.block, cloneRow(r))
	}
	return s.block, nil
}

// NextBytes implements store.Scanner.
func (s *scanner) NextBytes() int64 { return s.store.NextBytes }

// count counts rows that are returned.
func (s *scanner) count(rows []store.Row) {
	s.stats.Rows += int64(len(rows))
	for _, r := range rows {
		s.stats.Cells += int64(len(r.Cells))
		for _, c := range r.Cells {
			s.stats.Bytes += int64(len(r.Key) + len(c.Qualifier) + len(c.Value))
		}
	}
}

// overwrite overwrites the last block, which the caller must no longer use.
func (s *scanner) overwrite() {
	for _, r := range s.block {
		fill(r.Key)
		for _, c := range r.Cells {
			fill(c.Qualifier)
			fill(c.Value)
		}
	}
	s.block = nil
}

func fill(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}

func cloneRow(r store.Row) store.Row {
	out := store.Row{Key: bytes.Clone(r.Key)}
	for _, c := range r.Cells {
		out.Cells = append(out.Cells, store.Cell{
			Family:    bytes.Clone(c.Family),
			Qualifier: bytes.Clone(c.Qualifier),
			Value:     bytes.Clone(c.Value),
			Timestamp: c.Timestamp,
		})
	}
	return out
}

// Stats returns the counts so far.
func (s *scanner) Stats() store.ScanStats { return s.stats }

// Close ends the scan.
func (s *scanner) Close() error {
	if s.closed.CompareAndSwap(false, true) {
		s.store.Open.Add(-1)
		s.overwrite()
	}
	return nil
}

// Get returns those rows of keys that exist.
func (m *Store) Get(_ context.Context, _, _ string, keys [][]byte) (rows []store.Row, err error) {
	for _, k := range keys {
		if i, ok := m.search(k); ok {
			rows = append(rows, cloneRow(m.Rows[i]))
		}
	}
	return rows, nil
}

// search returns where a key is or would be.
func (m *Store) search(key []byte) (int, bool) {
	return slices.BinarySearchFunc(m.Rows, key, func(r store.Row, k []byte) int { return bytes.Compare(r.Key, k) })
}

// Regions returns the regions between Borders that meet [start, stop).
func (m *Store) Regions(_ context.Context, _ string, start, stop []byte) (regions []store.Region, err error) {
	if m.Away.Load() {
		return nil, store.ErrUnavailable
	}

	borders := append(append([][]byte{nil}, m.Borders...), nil)
	for i := 0; i+1 < len(borders); i++ {
		r := store.Region{Start: borders[i], Stop: borders[i+1]}
		if len(m.Servers) > 0 {
			r.Server = m.Servers[i%len(m.Servers)]
		}

		before := len(r.Stop) > 0 && bytes.Compare(r.Stop, start) <= 0
		if !before && (len(stop) == 0 || bytes.Compare(r.Start, stop) < 0) {
			regions = append(regions, r)
		}
	}
	return regions, nil
}

// Cell adds one cell to the row of key, which it makes if there is none.
func (m *Store) Cell(key, qualifier, value []byte, timestamp int64) {
	i, found := m.search(key)
	if !found {
		m.Rows = slices.Insert(m.Rows, i, store.Row{Key: bytes.Clone(key)})
	}

	c := store.Cell{
		Family:    []byte(encoding.FamilyData),
		Qualifier: bytes.Clone(qualifier),
		Value:     bytes.Clone(value),
		Timestamp: timestamp,
	}
	cells := m.Rows[i].Cells
	at, _ := slices.BinarySearchFunc(cells, qualifier,
		func(c store.Cell, q []byte) int { return bytes.Compare(c.Qualifier, q) })
	m.Rows[i].Cells = slices.Insert(cells, at, c)
}
