package operator

import (
	"context"
	"io"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// FromRows returns the operator of one part whose rows the caller has read already. It
// admits, decodes and downsamples them as the operator that New returns does with the
// rows of a scan. rows are ascending by key and in the part's range; each is complete.
// They must not change before Close.
//
// An error is an ErrBadPlan and names the wrong field. Options.Prefixes and Options.BlockBytes have
// no effect, because nothing is scanned.
func FromRows(part *scanplan.Part, rows []store.Row, opts Options) (Operator, error) {
	opts.Prefixes = nil
	op, err := New(nil, part, opts)
	if err != nil {
		return nil, err
	}
	return &rowsOperator{partOperator: op.(*partOperator), rows: rows}, nil
}

// rowsOperator is the operator of a part whose rows are given.
type rowsOperator struct {
	*partOperator
	rows []store.Row
}

// Next returns the next batch; see Operator.
func (o *rowsOperator) Next(ctx context.Context) (batch.Record, error) {
	// The context of the first Next bounds the operator. An operator that has a
	// scanner opens no scan.
	if o.scanner == nil && !o.closed {
		o.memory = memory.NewLease(ctx)
		o.cancel = func() {} // there is no scan to end
		o.scanner = &rowScanner{rows: o.rows}
	}
	return o.partOperator.Next(ctx)
}

// rowScanner returns given rows as one block. It counts nothing: reading the rows
// has cost the caller, not the operator.
type rowScanner struct{ rows []store.Row }

func (s *rowScanner) Next() ([]store.Row, error) {
	rows := s.rows
	s.rows = nil
	if len(rows) == 0 {
		return nil, io.EOF
	}
	return rows, nil
}

// NextBytes implements store.Scanner. The caller has paid for the rows.
func (s *rowScanner) NextBytes() int64 { return 0 }

func (s *rowScanner) Stats() store.ScanStats { return store.ScanStats{} }

func (s *rowScanner) Close() error { return nil }
