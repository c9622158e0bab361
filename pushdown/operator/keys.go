package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/store"
)

// Keys passes the keys of the rows that a part reads, some hundreds at a time:
// what a query that deletes removes. The keys belong to each.
func Keys(ctx context.Context, from store.Reader, part *scanplan.Part, each func(keys [][]byte) error) error {
	if err := validate(part); err != nil {
		return err
	}
	access := Explain(part)
	if access.Nothing {
		return nil
	}
	sc, err := from.Scan(ctx, store.Scan{Table: part.Plan.Table, Family: encoding.FamilyData, KeysOnly: true,
		Start: part.Range.Start, Stop: part.Range.Stop, Filter: access.Filter})
	if err != nil {
		return err
	}
	defer sc.Close()
	admit := newAdmission(part)
	for {
		rows, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
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
}

// keys are the admitted keys among rows, copied.
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
