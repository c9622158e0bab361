package operator

import (
	"bytes"
	"context"
	"fmt"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/store"
)

// Keys calls each with the keys of the rows that a part reads, some hundreds at a
// time, for a query that deletes its rows. The slices belong to each.
func Keys(ctx context.Context, from store.Reader, part *scanplan.Part, each func(keys [][]byte) error) error {
	if err := validate(part); err != nil {
		return err
	}

	access := ChooseFilter(part)
	if access.Nothing {
		return nil
	}

	scan := store.Scan{Table: part.Plan.Table, Family: encoding.FamilyData, KeysOnly: true,
		Start: part.Range.Start, Stop: part.Range.Stop, Filter: access.Filter}
	admit := newAdmission(part)

	for rows, err := range store.Blocks(ctx, from, scan) {
		if err != nil {
			return err
		}
		keys, err := admit.keys(rows)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			continue
		}
		if err := each(keys); err != nil {
			return err
		}
	}

	return nil
}

// keys returns copies of the keys of rows that are admitted.
func (a *admission) keys(rows []store.Row) (out [][]byte, err error) {
	s := a.plan.Schema
	var span []byte
	for _, r := range rows {
		k, err := s.ParseRowKey(r.Key)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", a.plan.Table, err)
		}
		span = s.AppendSpan(span[:0], r.Key)
		if a.row(r.Key, k) && a.span(span) {
			out = append(out, bytes.Clone(r.Key))
		}
	}
	return out, nil
}
