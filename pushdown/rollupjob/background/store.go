package background

import (
	"context"
	"time"

	"downpour/pushdown/process/pacer"
	"downpour/pushdown/store"
)

// timed is a store that reports to a pacer how long its calls take.
type timed struct {
	store.Cells
	pace *pacer.Pacer
}

// Features implements store.Reader. Marks are no reading of rows, so they pass the pacer by.
func (t timed) Features() store.Features {
	return store.Features{
		Versioner:     nil,
		Marker:        t.Cells.Features().Marker,
		Staged:        nil,
		RangeDeleter:  nil,
		Versioned:     nil,
		PutAbsent:     nil,
		IncrementAll:  nil,
		Watch:         nil,
		Writable:      nil,
		DiskUsage:     nil,
		Checkpoint:    nil,
		Seal:          nil,
		Inspect:       nil,
		CheckReadable: nil,
	}
}

// unitRows is how many rows of a block, or cells of a write, count as one more call.
const unitRows = 64

// Scan implements store.Reader.
func (t timed) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	scanner, err := t.Cells.Scan(ctx, s)
	if err != nil {
		return nil, err
	}
	return timedScanner{scanner, t.pace}, nil
}

// timedScanner is a scanner of timed.
type timedScanner struct {
	store.Scanner
	pace *pacer.Pacer
}

// Next implements store.Scanner.
func (t timedScanner) Next() ([]store.Row, error) {
	began := time.Now()
	rows, err := t.Scanner.Next()
	cells := 0
	for i := range rows {
		cells += len(rows[i].Cells)
	}
	t.pace.Read(time.Since(began), 1+float64(len(rows)+cells)/unitRows)
	return rows, err
}

// Apply implements store.Writer.
func (t timed) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	began := time.Now()
	err := t.Cells.Apply(ctx, table, mutations)
	t.pace.Changed(time.Since(began), 1+float64(len(mutations))/unitRows)
	return err
}
