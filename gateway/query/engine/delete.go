package engine

import (
	"context"
	"fmt"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// Rows is what deleting needs of a store.
type Rows interface {
	store.Reader
	store.Writer
}

// Delete removes the rows that the query reads: whole hours, with all their
// points and notes, also those outside the query's own times. Rows of series
// that only a filter on names keeps out stay. It returns the number of rows
// removed, all of them durably when there is no error. Source: SaltScanner and
// TsdbQuery.ScannerCB, their delete.
func (e *Engine) Delete(ctx context.Context, q *query.Query, rows Rows) (deleted int, err error) {
	plans, err := e.plans(ctx, q)
	if err != nil {
		return 0, err
	}
	for _, p := range plans {
		if p.Nothing != "" || p.sub.Histogram() {
			continue
		}
		n, err := e.deletePlan(ctx, p, rows)
		if deleted += n; err != nil {
			return deleted, fmt.Errorf("deleting, %d rows are gone: %w", deleted, err)
		}
	}
	return deleted, nil
}

func (e *Engine) deletePlan(ctx context.Context, p planned, rows Rows) (deleted int, err error) {
	keep := e.keep(ctx, p)
	for _, r := range p.Plan.Ranges {
		part := &scanplan.Part{Plan: *p.Plan, Range: r}
		err := operator.Keys(ctx, rows, part, func(keys [][]byte) error {
			dead, err := e.deletions(keys, keep)
			if err != nil || len(dead) == 0 {
				return err
			}
			deleted += len(dead)
			return rows.Apply(ctx, p.Plan.Table, dead)
		})
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// deletions remove the rows of those series that are kept in the answer.
func (e *Engine) deletions(keys [][]byte, keep func(span []byte) (bool, error)) (dead []store.Mutation, err error) {
	var span []byte
	for _, key := range keys {
		if keep != nil {
			span = e.cfg.Compile.Schema.AppendSpan(span[:0], key)
			ok, err := keep(span)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		dead = append(dead, store.Mutation{Kind: store.DeleteRow, Row: key, Family: encoding.FamilyData})
	}
	return dead, nil
}
