package operator_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/operator/operatortest"
	account "downpour/pushdown/process/memory"
)

// However a part aggregates, a row with two values at one time fails it unless the plan fixes that, and so does a
// damaged row, which is left out and counted if the plan says so: the answer is then that without the row.
func TestKinds_damaged(t *testing.T) {
	s := encoding.DefaultSchema()
	m, all := kinds(3)
	whole := map[string]string{}
	for name, k := range all {
		k.part.Plan.GroupBy = nil
		whole[name], _, _ = answer(t.Context(), m, k)
	}
	key := s.AppendRowKey(nil, metric, base, s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, 9)}))
	m.Cell(key, []byte{0x00, 0x10, 0x00, 0x20}, []byte{5}, 1)
	for name, k := range all {
		k.part.Plan.GroupBy = nil
		var data *operator.DataError
		if _, _, err := answer(t.Context(), m, k); !errors.As(err, &data) && name != "unaligned" {
			t.Errorf("%s of a damaged row: got %v", name, err)
		}
		if k.part.Mode == scanplan.Aligned {
			continue // its plan leaves no row out
		}
		k.part.Plan.Fix = scanplan.FixDamaged
		got, stats, err := answer(t.Context(), m, k)
		if err != nil || got != whole[name] {
			t.Errorf("%s without a damaged row: %v, got\n%s, want\n%s", name, err, got, whole[name])
		}
		if stats.Damaged != 1 || !strings.Contains(stats.DamagedRow, "is corrupt") {
			t.Errorf("%s: %d damaged rows: %s", name, stats.Damaged, stats.DamagedRow)
		}
	}

	m, all = kinds(3)
	m.Cell(m.Rows[0].Key, []byte{0x00, 0x0b}, make([]byte, 4), 2) // at the time of its first point
	for name, k := range all {
		var data *operator.DataError
		if _, _, err := answer(t.Context(), m, k); !errors.As(err, &data) {
			t.Errorf("%s of a duplicate: got %v", name, err)
		}
		k.part.Plan.FixDuplicates = true
		if _, stats, err := answer(t.Context(), m, k); err != nil || stats.Points != 18 && name != "unaligned" {
			t.Errorf("%s with duplicates fixed: %v, %d points, want 18", name, err, stats.Points)
		}
	}
}

// blocks is a budget that counts how often something is spent.
type blocks struct {
	operator.Budget
	spends, points, bytes atomic.Int64
}

func (b *blocks) Spend(ctx context.Context, points, bytes int64) error {
	if bytes > 0 {
		b.spends.Add(1)
	}
	b.points.Add(points)
	b.bytes.Add(bytes)
	return b.Budget.Spend(ctx, points, bytes)
}

// However a part aggregates, it counts the ranges and the times of its scans and its probes, spends of the budget after
// each block of rows, and records what a scan of the first tag has cost.
func TestKinds_counts(t *testing.T) {
	m, all := allKinds(9) // 27 rows, two a block
	for name, k := range all {
		if name == "unaligned" {
			continue // it ends early
		}
		k.part.Plan.Tags = []scanplan.TagPredicate{{TagK: operatortest.UID(1), Op: scanplan.In}}
		for v := 1; v < 9; v += 2 { // every second one, so that ranges do not touch
			k.part.Plan.Tags[0].Values = append(k.part.Plan.Tags[0].Values, operatortest.UID(v))
		}
		budget := &blocks{Budget: operator.NewBudget(0, 0)}
		cache := access.NewPrefixCache()
		k.opts.Budget, k.opts.Prefixes = budget, cache
		_, stats, err := answer(t.Context(), m, k)
		if err != nil || stats.Ranges < 3*(4+1) || stats.Ranges > 3*(4+1)+3 { // and of off-hour rows
			t.Errorf("%s: %v, %d ranges, want four and one for off-hour rows in each of 3 hours", name, err,
				stats.Ranges)
		}
		if stats.ScanTime <= 0 || stats.DecodeTime <= 0 || stats.EmitTime <= 0 {
			t.Errorf("%s took %v, %v and %v, want some time for each", name, stats.ScanTime, stats.DecodeTime,
				stats.EmitTime)
		}
		if n, points := budget.spends.Load(), budget.points.Load(); n < 6 || points != 24 || stats.Points != points ||
			budget.bytes.Load() != stats.Bytes {
			t.Errorf("%s spent %d times for %d points and %d bytes, want it after each of 6 blocks or more, "+
				"24 points, %d bytes", name, n, points, budget.bytes.Load(), stats.Bytes)
		}
		if known := cache.Lookup(access.CacheKey(&k.part)); !known.Few {
			t.Errorf("%s: known is %+v, want few rows", name, known)
		}

		k.part.Plan.Tags[0].TagK = operatortest.UID(2)
		cache.Record(access.CacheKey(&k.part),
			access.ScanCost{From: base, To: base + 3*3600, Scanned: 10_000, Ranges: 1})
		if _, stats, err := answer(t.Context(), m, k); err != nil || stats.Probes == 0 {
			t.Errorf("%s: %v, %d probes, want some", name, err, stats.Probes)
		}
	}
}

// However a part aggregates, it is refused if it reads a point more than its budget has, and not if it reads as many.
// What a part has spent whose store fails is given back once, and so is its memory.
func TestKinds_budget(t *testing.T) {
	m, all := kinds(9)
	broken := errors.New("disk on fire")
	for name, k := range all {
		if name == "unaligned" {
			continue // it ends early
		}
		_, stats, err := answer(t.Context(), m, k)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, left := range []int64{stats.Points, stats.Points - 1} {
			k.opts.Budget = operator.NewBudget(left, 0)
			_, _, err := answer(t.Context(), m, k)
			var limit *operator.LimitError
			if refused := errors.As(err, &limit) && limit.What == operator.Points; refused != (left < stats.Points) {
				t.Errorf("%s reads %d points of %d: got %v", name, stats.Points, left, err)
			}
		}

		budget, held := &blocks{Budget: operator.NewBudget(0, 0)}, account.New(1<<40).Open(account.Query)
		k.opts.Budget = budget
		m.Fail = func(_ context.Context, block int) error {
			if block == 3 {
				return broken
			}
			return nil
		}
		if _, _, err := answer(account.With(t.Context(), held), m, k); !errors.Is(err, broken) {
			t.Errorf("%s: got %v, want that the store fails", name, err)
		}
		spent := budget.Budget.(*operator.ReadBudget).Spent()
		if budget.points.Load() == 0 || spent != 0 || held.Held() != 0 {
			t.Errorf("%s: of %d points %d are spent, and %d bytes are held, want none", name, budget.points.Load(),
				spent, held.Held())
		}
		m.Fail = nil
		held.Close()
	}
}

// A part that returns its records one by one gives the memory of each back with it.
func TestKinds_handOver(t *testing.T) {
	m, all := allKinds(9)
	for _, name := range []string{"groups", "side by side", "aligned"} {
		k := all[name]
		held := account.New(1 << 40).Open(account.Query)
		op, err := operator.New(m, &k.part, k.opts)
		if err != nil {
			t.Fatal(err)
		}
		var before int64
		for i := range k.records {
			r, err := op.Next(account.With(t.Context(), held))
			if err != nil {
				t.Fatal(err)
			}
			bytes := operator.RecordBytes(r)
			r.Release()
			if now := held.Held(); i > 0 && before-now != bytes {
				t.Errorf("%s: %d bytes are given back with a record of %d", name, before-now, bytes)
			}
			before = held.Held()
		}
		op.Close()
		held.Close()
	}
}

// A part of little makes one record of all its series or groups.
func TestKinds_oneRecord(t *testing.T) {
	m, all := allKinds(9)
	for name, k := range all {
		k.opts.FlushBytes = 0
		if _, stats, err := answer(t.Context(), m, k); err != nil || stats.Batches != 1 {
			t.Errorf("%s: %v, %d records, want one", name, err, stats.Batches)
		}
	}
}
