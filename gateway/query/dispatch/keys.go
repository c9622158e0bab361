package dispatch

import (
	"context"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// DiskBytes returns about how many bytes on the disk hold the rows of a plan's ranges, 0 if the
// store does not know, as HBase.
func (e *Executor) DiskBytes(ctx context.Context, plan *scanplan.Plan) (int64, error) {
	d := e.cfg.Store.Features().RangeDeleter
	if d == nil {
		return 0, nil
	}
	ranges := make([]store.KeyRange, len(plan.Ranges))
	for i, r := range plan.Ranges {
		ranges[i] = store.KeyRange{Start: r.Start, Stop: r.Stop}
	}
	return d.DiskBytes(ctx, plan.Table, ranges)
}

// Keys calls each with the keys of the rows that Run would read, some hundreds at a time, in key order. They
// are read in this process, and the slices belong to each.
func (e *Executor) Keys(ctx context.Context, plan *scanplan.Plan, each func(keys [][]byte) error) error {
	for _, r := range plan.Ranges {
		if err := operator.Keys(ctx, e.cfg.Store, &scanplan.Part{Plan: *plan, Range: r}, each); err != nil {
			return err
		}
	}
	return nil
}
