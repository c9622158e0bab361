package faultstore

import (
	"context"
	"sync/atomic"

	"downpour/pushdown/store"
)

// Endless is a store whose scans continue for ever, even after their context has ended. It shows
// after how many blocks a loop over a scan ends by itself.
type Endless struct {
	store.Store // all other methods
	// Row makes the n-th row of a scan.
	Row func(n int) store.Row
	// Rows is the number of rows in a block.
	Rows int
	// Block, if set, is called before each block with its number, counted from 1 over
	// all scans.
	Block func(n int)

	blocks atomic.Int64
}

// Features implements store.Reader: there are none.
func (e *Endless) Features() store.Features { return store.Features{} }

// Blocks returns how many blocks were read so far.
func (e *Endless) Blocks() int { return int(e.blocks.Load()) }

// Scan opens a scan without end.
func (e *Endless) Scan(context.Context, store.Scan) (store.Scanner, error) {
	return &endlessScan{of: e}, nil
}

type endlessScan struct {
	of   *Endless
	next int
	rows []store.Row
}

func (s *endlessScan) Next() ([]store.Row, error) {
	n := int(s.of.blocks.Add(1))
	if s.of.Block != nil {
		s.of.Block(n)
	}
	s.rows = s.rows[:0]
	for range s.of.Rows {
		s.rows = append(s.rows, s.of.Row(s.next))
		s.next++
	}
	return s.rows, nil
}

func (s *endlessScan) NextBytes() int64 { return 0 }

func (s *endlessScan) Stats() store.ScanStats { return store.ScanStats{} }

func (s *endlessScan) Close() error { return nil }
