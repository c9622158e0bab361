package operator_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
)

// Rows that were read already give the batches that a scan of them gives.
func TestFromRows(t *testing.T) {
	const base = 1_356_998_400
	schema := encoding.DefaultSchema()
	var from operatortest.Store
	from.Load(schema, operatortest.UID(1),
		operatortest.Series{
			Tags:   []encoding.TagPair{operatortest.Tag(1, 1)},
			Points: operatortest.Every(base, base+3600, 30, func(i int) float64 { return float64(i) }),
		},
		operatortest.Series{
			Tags:   []encoding.TagPair{operatortest.Tag(1, 2)},
			Points: operatortest.Every(base, base+3600, 45, func(i int) float64 { return 1 / float64(i+1) }),
		})
	plan := operatortest.Plan(schema, operatortest.UID(1), base, base+3600)
	plan.Downsample = &scanplan.Downsample{Interval: 60_000, Function: "avg", Fill: scanplan.FillNone}
	plan.Tags = []scanplan.TagPredicate{{
		TagK:   operatortest.UID(1),
		Op:     scanplan.In,
		Values: []encoding.UID{operatortest.UID(2)},
	}}
	part := &scanplan.Part{Plan: plan, Range: plan.Ranges[0]}

	var keys [][]byte
	for host := range 2 {
		keys = append(keys, schema.AppendRowKey(nil, plan.Metric, base,
			schema.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, host+1)})))
	}
	rows, err := from.Get(t.Context(), plan.Table, encoding.FamilyData, keys)
	if err != nil {
		t.Fatal(err)
	}

	for flush, batches := range map[int]int{0: 1, 1: 60} { // one for each bucket
		opts := operator.Options{FlushBytes: flush}
		scanned, err := operator.New(&from, part, opts)
		want := encoded(t, scanned, err)
		given, err := operator.FromRows(part, rows, opts)
		got := encoded(t, given, err)
		if diff := cmp.Diff(want, got); diff != "" || len(rows) != 2 || len(want) != batches {
			t.Errorf("%d rows, %d batches of a scan; want -, got +:\n%s", len(rows), len(want), diff)
		}
		if s := given.Stats(); s.Rejected != 1 || s.Points != 80 {
			t.Errorf("%+v, want one row rejected and 80 points decoded", s)
		}
		if _, err := given.Next(t.Context()); err != io.EOF {
			t.Errorf("after the end: %v, want %v", err, io.EOF)
		}
	}

	closed, err := operator.FromRows(part, rows, operator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	if _, err := closed.Next(t.Context()); !errors.Is(err, operator.ErrClosed) {
		t.Errorf("after Close: %v, want %v", err, operator.ErrClosed)
	}
	if _, err := operator.FromRows(&scanplan.Part{}, rows, operator.Options{}); !errors.Is(err, operator.ErrBadPlan) {
		t.Errorf("an empty part: %v, want %v", err, operator.ErrBadPlan)
	}
}

// A context that ends while the last rows are looked for ends no scan, because there is none: the answer is complete.
func TestFromRows_endsLate(t *testing.T) {
	m, all := kinds(3)
	k := all["raw"]
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	k.opts.Budget = spends{operator.NewBudget(0, 0), func() {
		if calls++; calls == 2 { // the rows are one block, and the second one is none
			cancel()
		}
	}}
	op, err := operator.FromRows(&k.part, m.Rows, k.opts)
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	if err := operatortest.Drain(ctx, op, func(batch.Record) error { records++; return nil }); err != nil ||
		calls != 2 || records < k.records {
		t.Errorf("%v, %d blocks and %d records, want 2 and at least %d", err, calls, records, k.records)
	}
}

// A context that ends before the last records are made ends the part, without records.
func TestFromRows_endsBefore(t *testing.T) {
	m, all := kinds(3)
	for _, name := range []string{"raw", "groups"} {
		k := all[name]
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		budget := spends{operator.NewBudget(0, 0), func() {
			cancel()
			if calls++; calls > 1 {
				t.Fatalf("%s: goes on after the end of its context", name)
			}
		}}
		op, err := operator.FromRows(&k.part, m.Rows, operator.Options{Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		err = operatortest.Drain(ctx, op, func(batch.Record) error { return nil })
		if !errors.Is(err, context.Canceled) || op.Stats().Batches != 0 {
			t.Errorf("%s: %v, %d records, want none", name, err, op.Stats().Batches)
		}
	}
}

// spends is a budget that calls a function before something is spent.
type spends struct {
	operator.Budget
	before func()
}

func (s spends) Spend(ctx context.Context, points, bytes int64) error {
	s.before()
	return s.Budget.Spend(ctx, points, bytes)
}

// encoded returns the batches of an operator as bytes.
func encoded(t *testing.T, op operator.Operator, err error) (all [][]byte) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	op = operatortest.Checked(op, t.Errorf)
	if err := operatortest.Drain(context.Background(), op, func(r batch.Record) error {
		b, err := batch.Encode(r)
		if all = append(all, b); len(all) > 100 {
			return errors.New("more than 100 batches")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
