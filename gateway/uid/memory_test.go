package uid

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// storeInMemory is a store of one table under one lock. It is fast, so that concurrent writers
// meet often.
type storeInMemory struct {
	store.Store // nil: methods that these tests do not call
	mu          sync.Mutex
	rows        map[string]map[string][]byte // row, then family:qualifier
}

func (*storeInMemory) Features() store.Features { return store.Features{} }

func newMemory() *storeInMemory { return &storeInMemory{rows: map[string]map[string][]byte{}} }

func columnName(c store.CellKey) string { return c.Family + ":" + string(c.Qualifier) }

// set writes a cell. The caller holds the lock.
func (m *storeInMemory) set(c store.CellKey, value []byte) {
	if m.rows[string(c.Row)] == nil {
		m.rows[string(c.Row)] = map[string][]byte{}
	}
	m.rows[string(c.Row)][columnName(c)] = bytes.Clone(value)
}

func (m *storeInMemory) Increment(_ context.Context, _ string, c store.CellKey, delta int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := delta
	if old := m.rows[string(c.Row)][columnName(c)]; old != nil {
		last, err := encoding.ParseCounter(old)
		if err != nil {
			return 0, err
		}
		n += last
	}
	m.set(c, encoding.AppendCounter(nil, n))
	return n, nil
}

func (m *storeInMemory) CompareAndPut(_ context.Context, _ string, c store.CellKey,
	expected, value []byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, there := m.rows[string(c.Row)][columnName(c)]
	if there != (len(expected) > 0) || !bytes.Equal(old, expected) {
		return false, nil
	}
	m.set(c, value)
	return true, nil
}

func (m *storeInMemory) Apply(_ context.Context, _ string, mutations []store.Mutation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range mutations {
		c := store.CellKey{Row: x.Row, Family: x.Family, Qualifier: x.Qualifier}
		if x.Kind == store.DeleteCell {
			delete(m.rows[string(c.Row)], columnName(c))
			continue
		}
		m.set(c, x.Value)
	}
	return nil
}

// row returns the cells of a row in a family, or in all for "". The caller holds the lock.
func (m *storeInMemory) row(key, family string) (store.Row, bool) {
	r := store.Row{Key: []byte(key)}
	for name, value := range m.rows[key] {
		f, q, _ := bytes.Cut([]byte(name), []byte(":"))
		if family == "" || family == string(f) {
			r.Cells = append(r.Cells, store.Cell{Family: f, Qualifier: q, Value: value})
		}
	}
	return r, len(r.Cells) > 0
}

func (m *storeInMemory) Get(_ context.Context, _, family string, keys [][]byte) (rows []store.Row, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range keys {
		if r, ok := m.row(string(k), family); ok {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// Scan scans the whole table and ignores its bounds.
func (m *storeInMemory) Scan(context.Context, store.Scan) (store.Scanner, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &memoryScanner{}
	for key := range m.rows {
		r, _ := m.row(key, "")
		s.rows = append(s.rows, r)
	}
	slices.SortFunc(s.rows, func(a, b store.Row) int { return bytes.Compare(a.Key, b.Key) })
	return s, nil
}

type memoryScanner struct{ rows []store.Row }

func (s *memoryScanner) Next() (rows []store.Row, err error) {
	if len(s.rows) == 0 {
		return nil, io.EOF
	}
	rows, s.rows = s.rows, nil
	return rows, nil
}

func (*memoryScanner) NextBytes() int64 { return 0 }

func (s *memoryScanner) Stats() store.ScanStats { return store.ScanStats{} }
func (s *memoryScanner) Close() error           { return nil }
