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

// Rows is the store that Delete reads keys from and deletes rows of.
type Rows interface {
	store.Reader
	store.Writer
}

// Delete removes the rows that the query reads. These are whole hours with all their
// points and annotations, also those outside the query's own times. Rows of series that
// the post filter rejects are kept. It returns the number of rows removed; without an
// error all of them are removed durably. Source: SaltScanner and TsdbQuery.ScannerCB,
// their delete.
func (e *Engine) Delete(ctx context.Context, q *query.Query, rows Rows) (deleted int, err error) {
	plans, err := e.compileQuery(ctx, q)
	if err != nil {
		return 0, err
	}
	if err := refuseRollups(plans, "deletes"); err != nil {
		return 0, err
	}
	// The rows of histograms hold points too, which the answer does not show. All sub-queries are
	// checked before the first row is deleted.
	for _, p := range plans {
		if p.sub.Histogram() {
			return 0, errDeletesHistograms(p.sub.Index)
		}
	}

	for _, p := range plans {
		if readsNothing(p.Compiled) {
			continue
		}
		n, err := e.deletePlan(ctx, p, rows)
		if deleted += n; err != nil {
			return deleted, fmt.Errorf("cannot delete all rows, %d are gone: %w", deleted, err)
		}
	}
	return deleted, nil
}

// refuseRollups returns an error if a plan reads rollups, for a query that does something
// with rows which is right for rows of raw data alone.
func refuseRollups(plans []subPlan, does string) error {
	for _, p := range plans {
		if p.MayReadRollups {
			e := query.Bad("A query that %s cannot read rollups, as sub query %d would", does, p.sub.Index)
			e.Details = "Ask for raw data, with rollupUsage=" + query.RollupRaw
			return e
		}
	}
	return nil
}

// errDeletesHistograms is the error of a query that deletes and reads histograms. Their rows hold
// points, too, which the answer does not show: OpenTSDB deletes them.
func errDeletesHistograms(i int) error {
	e := query.Bad("A query that deletes cannot read histograms, as sub query %d does", i)
	e.Details = "Rows are deleted whole, and hold the points of their series beside histograms. Ask for the points: " +
		"that deletes both"
	return e
}

// deletePlan deletes the rows of a plan that pass its filters, and returns their number.
func (e *Engine) deletePlan(ctx context.Context, p subPlan, rows Rows) (deleted int, err error) {
	keep := e.spanFilter(ctx, p)
	for _, r := range p.Plan.Ranges {
		// Keys are deleted batch by batch, so that only one batch of them is in memory.
		part := &scanplan.Part{Plan: *p.Plan, Range: r}
		err := operator.Keys(ctx, rows, part, func(keys [][]byte) error {
			deletions, err := e.rowDeletions(keys, keep)
			if err != nil || len(deletions) == 0 {
				return err
			}
			deleted += len(deletions)
			return rows.Apply(ctx, p.Plan.Table, deletions)
		})
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// rowDeletions returns mutations that delete the rows whose series passes keep; nil
// passes all.
func (e *Engine) rowDeletions(keys [][]byte,
	keep func(span []byte) (bool, error)) (deletions []store.Mutation, err error) {
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
		deletions = append(deletions, store.Mutation{Kind: store.DeleteRow, Row: key, Family: encoding.FamilyData})
	}
	return deletions, nil
}
