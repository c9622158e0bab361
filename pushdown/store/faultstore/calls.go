package faultstore

import (
	"context"
	"sync"

	"downpour/pushdown/store"
)

var _ store.Store = (*Store)(nil)

// Scan opens a scanner whose Next obeys the rules as well.
func (s *Store) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	return call(ctx, s, Scan, scan.Table, func() (store.Scanner, error) {
		inner, err := s.inner.Scan(ctx, scan)
		if err != nil {
			return nil, err
		}
		s.scans.Add(1)
		closed := sync.OnceFunc(func() { s.scans.Add(-1) })
		return &scanner{Scanner: inner, ctx: ctx, store: s, table: scan.Table, closed: closed}, nil
	})
}

// scanner obeys rules about Next. After an error Next returns the same error again,
// because rows are missing.
type scanner struct {
	store.Scanner
	ctx    context.Context
	store  *Store
	table  string
	failed error
	closed func()
}

// Next obeys the rules.
func (c *scanner) Next() ([]store.Row, error) {
	if c.failed != nil {
		return nil, c.failed
	}
	rows, err := call(c.ctx, c.store, Next, c.table, c.Scanner.Next)
	c.failed = err
	return rows, err
}

// Close closes the wrapped scanner.
func (c *scanner) Close() error {
	c.closed()
	return c.Scanner.Close()
}

// Get obeys the rules.
func (s *Store) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	return call(ctx, s, Get, table, func() ([]store.Row, error) { return s.inner.Get(ctx, table, family, keys) })
}

// Regions obeys the rules.
func (s *Store) Regions(ctx context.Context, table string, start, stop []byte) ([]store.Region, error) {
	return call(ctx, s, Regions, table,
		func() ([]store.Region, error) { return s.inner.Regions(ctx, table, start, stop) })
}

// Apply obeys the rules.
func (s *Store) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	_, err := call(ctx, s, Apply, table,
		func() (struct{}, error) { return struct{}{}, s.inner.Apply(ctx, table, mutations) })
	return err
}

// Increment obeys the rules.
func (s *Store) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	return call(ctx, s, Increment, table, func() (int64, error) { return s.inner.Increment(ctx, table, cell, delta) })
}

// CompareAndPut obeys the rules.
func (s *Store) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	return call(ctx, s, CompareAndPut, table, func() (bool, error) {
		return s.inner.CompareAndPut(ctx, table, cell, expected, value)
	})
}

// Replace obeys the rules.
func (s *Store) Replace(ctx context.Context, table, family string,
	changes []store.Replacement) ([]store.Outcome, error) {
	return call(ctx, s, Replace, table,
		func() ([]store.Outcome, error) { return s.inner.Replace(ctx, table, family, changes) })
}

// CreateTable is the wrapped store's.
func (s *Store) CreateTable(ctx context.Context, spec store.TableSpec) error {
	return s.inner.CreateTable(ctx, spec)
}

// TableExists is the wrapped store's.
func (s *Store) TableExists(ctx context.Context, name string) (bool, error) {
	return s.inner.TableExists(ctx, name)
}

// faultyVersioner is the Versioner of a store with faults.
type faultyVersioner struct {
	s     *Store
	inner store.Versioner
}

// Version obeys the rules.
func (v faultyVersioner) Version(ctx context.Context, table, family string,
	r store.KeyRange) (token string, proof func() error, err error) {
	token, err = call(ctx, v.s, Version, table, func() (string, error) {
		token, proof, err = v.inner.Version(ctx, table, family, r)
		return token, err
	})
	return token, proof, err
}

// Close closes the wrapped store.
func (s *Store) Close() error { return s.inner.Close() }

// Features implements store.Reader. Features without rules are absent, so that callers use the
// calls that obey the rules.
func (s *Store) Features() store.Features {
	var versioner store.Versioner
	if inner := s.inner.Features().Versioner; inner != nil {
		versioner = faultyVersioner{s, inner}
	}
	return store.Features{
		Versioner:     versioner,
		Marker:        nil,
		Staged:        nil,
		RangeDeleter:  nil,
		Versioned:     nil,
		PutAbsent:     nil,
		IncrementAll:  nil,
		Watch:         s.inner.Features().Watch, // reads nothing
		Writable:      nil,
		DiskUsage:     nil,
		Checkpoint:    nil,
		Seal:          nil,
		Inspect:       nil,
		CheckReadable: nil,
	}
}
