package operator_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// heldAtMost runs a part in an account and returns the most bytes that were reserved when the store
// was asked for rows, and when a record was returned.
func heldAtMost(t *testing.T, m *operatortest.Store, blockRows int, part *scanplan.Part,
	opts operator.Options) (scanning, handing int64) {
	t.Helper()
	account := memory.New(1 << 40).Open(memory.Query)
	defer account.Close()
	m.BlockRows = blockRows
	m.Fail = func(context.Context, int) error {
		scanning = max(scanning, account.Held())
		return nil
	}
	ctx := memory.With(t.Context(), account)
	op, err := operator.New(m, part, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	for {
		r, err := op.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		handing = max(handing, account.Held())
		r.Release()
	}
	if n := account.Held(); n != 0 {
		t.Errorf("%d bytes are still reserved at the end", n)
	}
	return scanning, handing
}

// Functions such as percentiles keep all points of a bucket, about 8 bytes each, and a bucket may
// be as long as the query: they are reserved. Other functions keep nothing like that.
func TestMemory_longBuckets(t *testing.T) {
	const hours = 50
	points := operatortest.Every(base, base+hours*3600, 1, identity)
	f := func(function string, least, most int64) {
		t.Helper()
		for _, d := range []scanplan.Downsample{{All: true}, {Interval: base * 1000}} {
			d.Function, d.Fill = scanplan.Aggregator(function), scanplan.FillNone
			p := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+hours*3600)
			p.Downsample = &d
			if held, _ := heldAtMost(t, table(series(points, operatortest.Tag(1, 1))), 1, whole(p),
				operator.Options{}); held < least ||
				held > most {
				t.Errorf("%s, all %t: %d bytes were reserved for %d points, want %d to %d", function, d.All, held,
					points.Len(), least, most)
			}
		}
	}
	n := int64(points.Len())
	f("p99", 7*n, 12*n)
	f("median", 7*n, 12*n)
	f("sum", 0, 64<<10)
}

// Windows that are longer than a row keep the points of the rows before: they are reserved.
func TestMemory_longWindows(t *testing.T) {
	const hours, reach = 50, 40
	m := table(series(operatortest.Every(base, base+hours*3600, 10, identity), operatortest.Tag(1, 1)))
	p := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+hours*3600)
	p.GroupBy, p.Aggregator = nil, scanplan.None
	p.Window = &scanplan.Window{Function: "sum_over_time", Range: reach * 3600_000, Step: 3600_000,
		First: p.Start, Last: p.End}
	held, _ := heldAtMost(t, m, 1, whole(p), operator.Options{})
	if n := int64(reach * 360); held < 16*n || held > 64*n {
		t.Errorf("%d bytes were reserved for windows of %d points, want 16 to 64 for each", held, n)
	}
}

// The states of groups are reserved while they are computed, and the records with them, which are
// all made before the first is returned.
func TestMemory_states(t *testing.T) {
	const hours, groups = 10, 40
	var all []operatortest.Series
	for i := range groups {
		all = append(all, series(operatortest.Every(base, base+hours*3600, 600, identity), operatortest.Tag(1, i+1)))
	}
	p := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+hours*3600)
	p.Downsample = &scanplan.Downsample{Interval: 1000, Function: "sum", Fill: scanplan.FillNone}
	p.Aggregator, p.GroupBy = "sum", append(p.GroupBy, operatortest.UID(1))
	part := whole(p)
	part.Mode = scanplan.PartialAggregation
	buckets := int64(hours * 3600 * groups)
	_, held := heldAtMost(t, table(all...), 1, part, operator.Options{})
	if held < buckets*(48+25) || held > buckets*100 {
		t.Errorf("%d bytes were reserved for %d states, want at least 73 and at most 100 for each", held, buckets)
	}
}

// Annotations count: a part with too many ends before it has read all of them. It is not the row that is damaged.
func TestMemory_annotations(t *testing.T) {
	const rows, each = 100, 1000
	m, blocks := &operatortest.Store{BlockRows: 1}, 0
	for i := range rows {
		key := encoding.DefaultSchema().AppendRowKey(nil, metric, uint32(base+3600*i), nil)
		m.Cell(key, []byte{encoding.PrefixAnnotation, 0, 0}, make([]byte, each), 1)
	}
	m.Fail = func(context.Context, int) error { blocks++; return nil }
	p := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600*rows)
	p.MaxBytes, p.Fix = 10*each, scanplan.FixDamaged
	_, _, err := read(t, m, whole(p), operator.Options{})
	var limit *operator.LimitError
	if !errors.As(err, &limit) || blocks > 15 {
		t.Errorf("%v after %d rows of %d bytes, want a LimitError of %d", err, blocks, each, p.MaxBytes)
	}
}

// The records of a part may take as much as its plan says, and not a byte more. Here they take more than the points
// that they were made of: a record each.
func TestMemory_records(t *testing.T) {
	m := table(series(operatortest.Every(base, base+1000, 1, identity), operatortest.Tag(1, 1)))
	part := whole(operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600))
	opts := operator.Options{FlushBytes: 1}
	_, stats, err := read(t, m, part, opts)
	if err != nil {
		t.Fatal(err)
	}
	part.Plan.MaxBytes = stats.ShippedBytes
	if _, _, err := read(t, m, part, opts); err != nil {
		t.Errorf("with all %d bytes: %v", stats.ShippedBytes, err)
	}
	part.Plan.MaxBytes--
	var limit *operator.LimitError
	if _, _, err := read(t, m, part, opts); !errors.As(err, &limit) || limit.Need != stats.ShippedBytes {
		t.Errorf("with a byte less than %d: %v", stats.ShippedBytes, err)
	}
}

// A row of one point takes many times as much as the point, in the store's block and while it waits
// to be returned: all of that is reserved.
func TestMemory_smallRows(t *testing.T) {
	const hours = 5000
	p := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+hours*3600)
	m := table(series(operatortest.Every(base, base+hours*3600, 3600, identity), operatortest.Tag(1, 1)))
	if held, _ := heldAtMost(t, m, 0, whole(p), operator.Options{}); held < hours*(48+80+40+17) || held > hours*400 {
		t.Errorf("%d bytes were reserved for %d rows, want at least 185 and at most 400 for each", held, hours)
	}
}

// The memory of a block of rows is reserved before it is read, for hours side by side as for hours
// one after the other: otherwise many parts that wait for memory would hold it already.
func TestMemory_beforeRows(t *testing.T) {
	const ahead = 1 << 20
	for _, sideBySide := range []bool{false, true} {
		m, part := sparsePart(50)
		m.BlockRows, m.NextBytes = 3, ahead
		account := memory.New(1 << 40).Open(memory.Query)
		var least atomic.Int64
		least.Store(1 << 40)
		m.Fail = func(context.Context, int) error {
			for held := account.Held(); ; {
				if old := least.Load(); old <= held || least.CompareAndSwap(old, held) {
					return nil
				}
			}
		}
		op, err := operator.New(m, part, operator.Options{SideBySide: sideBySide})
		if err != nil {
			t.Fatal(err)
		}
		if err := operatortest.Drain(memory.With(t.Context(), account), op,
			func(batch.Record) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if held := least.Load(); held < ahead || held > 100*ahead {
			t.Errorf("side by side %t: %d bytes were reserved before a block was read, want at least %d", sideBySide,
				held, ahead)
		}
		if n := account.Held(); n != 0 {
			t.Errorf("side by side %t: %d bytes are still reserved at the end", sideBySide, n)
		}
		account.Close()
	}
}

// A part that cannot have the memory of its first block of rows does not read it.
func TestMemory_noRows(t *testing.T) {
	m, all := allKinds(3)
	m.NextBytes = 1 << 30
	m.Fail = func(context.Context, int) error { return errors.New("read") }
	for name, k := range all {
		held := memory.New(1 << 20).Open(memory.Query)
		if _, _, err := answer(memory.With(t.Context(), held), m, k); !memory.Refused(err) {
			t.Errorf("%s: got %v", name, err)
		}
		held.Close()
	}
}

// What a part of each kind needs by the count of its plan's bound, and what it reserves at most while it reads and
// while it returns records, in one record and in many. The figures are estimates, which may change; one that no
// longer counts something shows here.
func TestMemory_kinds(t *testing.T) {
	m, all := allKinds(9)
	for i := range m.Rows {
		m.Rows[i].Cells = append(m.Rows[i].Cells, store.Cell{Family: []byte(encoding.FamilyData),
			Qualifier: []byte{encoding.PrefixAnnotation, 0, 0}, Value: bytes.Repeat([]byte("?"), 100)})
	}
	type figures [5]int64
	for name, want := range map[string]figures{
		"raw":                {6147, 9583, 9583, 9404, 9404},
		"series":             {6093, 9516, 9516, 9397, 9397},
		"long buckets":       {8685, 10542, 10542, 12533, 12533},
		"edges":              {6597, 8940, 8940, 10461, 10461},
		"groups":             {15552, 9516, 32064, 13338, 42711},
		"aligned":            {10224, 12081, 11811, 15903, 19306},
		"windows":            {8829, 12684, 12684, 11363, 11363},
		"of windows":         {14355, 16212, 16212, 18203, 18203},
		"of all windows":     {7127, 8984, 8984, 10975, 10975},
		"histograms":         {22680, 24104, 24104, 13367, 13367},
		"sums of histograms": {22572, 23996, 23996, 13247, 13247},
		"unaligned":          {7920, 8384, 8272, 13023, 12911},
	} {
		k := all[name]
		var got figures
		got[1], got[2] = heldAtMost(t, m, 2, &k.part, operator.Options{})
		got[3], got[4] = heldAtMost(t, m, 9, &k.part, operator.Options{FlushBytes: 300})
		k.opts.FlushBytes = 0
		k.part.Plan.MaxBytes = 1
		for { // each refusal says how much is needed so far
			_, _, err := answer(t.Context(), m, k)
			if err == nil {
				break
			}
			var limit *operator.LimitError
			if !errors.As(err, &limit) || limit.Limit != k.part.Plan.MaxBytes || limit.Need <= limit.Limit {
				t.Fatalf("%s with %d bytes: %v", name, k.part.Plan.MaxBytes, err)
			}
			k.part.Plan.MaxBytes = limit.Need
		}
		if got[0] = k.part.Plan.MaxBytes; got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
