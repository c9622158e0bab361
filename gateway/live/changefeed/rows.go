package changefeed

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/live/incremental"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// replace reads the units of changed rows and takes them into the table.
func (s *sub) replace(ctx context.Context, changed [][]byte) error {
	plan := s.as.Plan
	keys, err := unitKeys(plan, changed)
	if err != nil {
		return err
	}
	rows, err := s.rowsOf(ctx, keys)
	if err != nil {
		return err
	}
	if s.gone(changed, rows) {
		return incremental.ErrStale
	}
	var records []batch.Record
	defer func() {
		for _, r := range records {
			r.Release()
		}
	}()
	for _, r := range plan.Ranges {
		part := inRange(rows, r)
		if len(part) == 0 {
			continue
		}
		if records, err = decode(ctx, s.decoded(), r, part, records); err != nil {
			return err
		}
	}
	return s.table.Replace(keys, records)
}

// decoded is the plan that makes of rows what the table takes: points where it
// can go on with them by itself, else buckets, which take less.
func (s *sub) decoded() *scanplan.Plan {
	if _, here := s.of.cfg.Store.(store.Watcher); !here {
		return s.as.Plan
	}
	raw := *s.as.Plan
	raw.Downsample = nil
	return &raw
}

// rowsOf returns rows by ascending keys: those that the finder knows, and of the
// others what the store has.
func (s *sub) rowsOf(ctx context.Context, keys [][]byte) (rows []store.Row, err error) {
	var unknown [][]byte
	s.cells = s.cells[:0]
	for _, key := range keys {
		before := len(s.cells)
		var known bool
		if s.cells, known = s.find.row(key, s.cells); !known {
			unknown = append(unknown, key)
			continue
		}
		rows = append(rows, store.Row{Key: key, Cells: s.cells[before:len(s.cells):len(s.cells)]})
	}
	if len(unknown) == 0 {
		return rows, nil
	}
	read, err := s.of.cfg.Store.Get(ctx, s.as.Plan.Table, encoding.FamilyData, unknown)
	if _, here := s.of.cfg.Store.(store.Watcher); here && err != nil {
		return nil, unreadable(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	s.of.stats.rows.Add(int64(len(read)))
	s.find.read(read)
	rows = append(rows, read...)
	slices.SortFunc(rows, func(a, b store.Row) int { return bytes.Compare(a.Key, b.Key) })
	return rows, nil
}

// unitKeys are the keys of all rows that must be read, ascending, each once.
func unitKeys(plan *scanplan.Plan, changed [][]byte) (keys [][]byte, err error) {
	for _, row := range changed {
		if keys, err = incremental.UnitKeys(keys, plan, row); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal), nil
}

// gone tells whether a changed row that the table knows is not there any more.
func (s *sub) gone(changed [][]byte, rows []store.Row) bool {
	var span []byte
	for _, key := range changed {
		_, there := slices.BinarySearchFunc(rows, key, func(r store.Row, key []byte) int { return bytes.Compare(r.Key, key) })
		span = s.as.Plan.Schema.AppendSpan(span[:0], key)
		if !there && s.table.Known(span) {
			return true
		}
	}
	return false
}

// inRange are the rows inside a range, of ascending rows.
func inRange(rows []store.Row, r scanplan.KeyRange) []store.Row {
	search := func(key []byte) int {
		i, _ := slices.BinarySearchFunc(rows, key, func(r store.Row, key []byte) int { return bytes.Compare(r.Key, key) })
		return i
	}
	i, j := search(r.Start), len(rows)
	if len(r.Stop) > 0 {
		j = search(r.Stop)
	}
	return rows[i:max(i, j)]
}

// decode has the rows of one range admitted, decoded and downsampled as a query
// would, whose part is the whole range: all its buckets are whole. The records
// are the caller's.
func decode(ctx context.Context, plan *scanplan.Plan, r scanplan.KeyRange, rows []store.Row, to []batch.Record) ([]batch.Record, error) {
	op, err := operator.New(given{rows}, &scanplan.Part{Plan: *plan, Range: r}, operator.Options{})
	if err != nil {
		return to, err
	}
	defer op.Close()
	for {
		rec, err := op.Next(ctx)
		if errors.Is(err, io.EOF) {
			return to, nil
		}
		if err != nil {
			return to, err
		}
		to = append(to, rec)
	}
}

// given is a store that holds nothing but some rows, all inside what is scanned.
type given struct{ rows []store.Row }

func (g given) Scan(context.Context, store.Scan) (store.Scanner, error) {
	return &givenRows{rows: g.rows}, nil
}

func (g given) Get(context.Context, string, string, [][]byte) ([]store.Row, error) {
	return nil, errors.ErrUnsupported
}

func (g given) Regions(context.Context, string, []byte, []byte) ([]store.Region, error) {
	return nil, errors.ErrUnsupported
}

type givenRows struct{ rows []store.Row }

func (g *givenRows) Next() ([]store.Row, error) {
	if len(g.rows) == 0 {
		return nil, io.EOF
	}
	rows := g.rows
	g.rows = nil
	return rows, nil
}

func (g *givenRows) Stats() store.ScanStats { return store.ScanStats{} }
func (g *givenRows) Close() error           { return nil }
