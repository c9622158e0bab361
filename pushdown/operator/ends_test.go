package operator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/operator/window"
	account "downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// kind is a way in which a part aggregates, with the number of records that it makes of kinds' store.
type kind struct {
	part    scanplan.Part
	records int
	atEnd   bool // makes all records when it has read all rows
	opts    operator.Options
}

// kinds are all ways in which a part aggregates, by name, and a store of some series for them.
func kinds(series int) (*operatortest.Store, map[string]kind) {
	m, groups := sparsePart(series)
	groups.Plan.GroupBy = []encoding.UID{operatortest.UID(1)}
	buckets := *groups
	buckets.Mode = scanplan.PerSeries
	raw, long := buckets, buckets
	raw.Plan.Downsample = nil
	long.Plan.Downsample = &scanplan.Downsample{All: true, Function: "median", Fill: scanplan.FillNone}
	edges := long // the plan has another hour
	edges.Plan.Downsample = &scanplan.Downsample{Interval: 7200_000, Function: "sum", Fill: scanplan.FillNone}
	edges.Plan.To += 3600
	edges.Plan.Ranges = []scanplan.KeyRange{{Start: edges.Range.Start,
		Stop: edges.Plan.HourKey(edges.Range, edges.Plan.To)}}
	unaligned := raw
	unaligned.Mode = scanplan.Aligned
	aligned := unaligned // rates are doubles, whatever the types of points
	aligned.Plan.Rate = &scanplan.Rate{}
	windows, grouped, together := raw, raw, raw
	windows.Plan.GroupBy, windows.Plan.Aggregator = nil, scanplan.None
	windows.Plan.Window = &scanplan.Window{Function: "sum_over_time", Range: 1800_000, Step: 600_000,
		First: raw.Plan.Start, Last: raw.Plan.End}
	grouped.Plan, together.Plan = windows.Plan, windows.Plan
	w := *windows.Plan.Window
	w.Groups = &scanplan.WindowGroups{Function: window.Max, Keys: []encoding.UID{operatortest.UID(1)}}
	v := w
	v.Groups = &scanplan.WindowGroups{Function: window.Max}
	grouped.Plan.Window, together.Plan.Window = &w, &v
	return m, map[string]kind{
		"raw":            {raw, 3 * series, false, operator.Options{FlushBytes: 1}},
		"series":         {buckets, 3 * series, false, operator.Options{FlushBytes: 1}},
		"long buckets":   {long, series, true, operator.Options{FlushBytes: 1}},
		"edges":          {edges, series, false, operator.Options{FlushBytes: 1}},
		"groups":         {*groups, series, true, operator.Options{FlushBytes: 1}},
		"side by side":   {*groups, series, true, operator.Options{FlushBytes: 1, SideBySide: true}},
		"aligned":        {aligned, series, true, operator.Options{FlushBytes: 1}},
		"windows":        {windows, 3 * series, false, operator.Options{FlushBytes: 1}},
		"of windows":     {grouped, series, true, operator.Options{FlushBytes: 1}},
		"of all windows": {together, 1, true, operator.Options{FlushBytes: 1}},
		"unaligned":      {unaligned, 1, true, operator.Options{FlushBytes: 1}},
	}
}

// allKinds are kinds, and those of parts that read histograms: two in each row of another metric of the store.
func allKinds(series int) (*operatortest.Store, map[string]kind) {
	m, all := kinds(series)
	k := all["raw"]
	s, codec, other := k.part.Plan.Schema, 42, operatortest.UID(2)
	h := encoding.Histogram{Buckets: []encoding.HistogramBucket{{Lower: 0, Upper: 1, Count: 2}}}
	for i := range series {
		tags := s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, i+1)})
		for second := int32(0); second < 3*3600; second += 1800 {
			m.Cell(s.AppendRowKey(nil, other, encoding.KeyTime(encoding.Hour(base+int64(second))), tags),
				encoding.AppendHistogramQualifier(nil, second%3600*1000, false),
				encoding.AppendHistogram([]byte{byte(codec)}, &h), 1)
		}
	}
	p := &k.part.Plan
	p.Metric, p.Histograms = other, &scanplan.Histograms{Codec: codec, Buckets: true}
	p.Ranges = operatortest.Plan(s, other, p.From, p.To).Ranges
	k.part.Range = p.Ranges[0]
	all["histograms"] = k
	k.part.Mode = scanplan.PartialAggregation
	all["sums of histograms"] = k
	return m, all
}

// answer runs a part and returns its records as text, and its counts.
func answer(ctx context.Context, from store.Reader, k kind) (text string, stats operator.Stats, err error) {
	op, err := operator.New(from, &k.part, k.opts)
	if err != nil {
		return "", stats, err
	}
	err = operatortest.Drain(ctx, op, func(r batch.Record) error {
		for i, c := range r.Columns() {
			text += fmt.Sprintln(r.ColumnName(i), c)
		}
		return nil
	})
	return text, op.Stats(), err
}

// However little memory a request may have, a part is refused or its answer is complete. Of records that it has begun
// nothing is left.
func TestMemory_refused(t *testing.T) {
	m, all := allKinds(100)
	m.BlockRows = 10
	const step = 64 << 10 // an account takes so much at once, and may have half of all
	for name, k := range all {
		for _, k.opts.FlushBytes = range []int{0, 1} {
			k.opts.Mem = nil
			want, _, err := answer(t.Context(), m, k)
			if err != nil || want == "" {
				t.Fatalf("%s: %v, want an answer", name, err)
			}
			refused := 0
			for total := int64(step); ; total += 2 * step {
				held, mem := account.New(total).Open(account.Query), memory.NewCheckedAllocator(memory.NewGoAllocator())
				k.opts.Mem = mem
				got, _, err := answer(account.With(t.Context(), held), m, k)
				held.Close()
				if n := mem.CurrentAlloc(); n != 0 {
					t.Errorf("%s, with %d bytes: %d bytes leaked", name, total, n)
				}
				if err == nil {
					if got != want {
						t.Errorf("%s: another answer with %d bytes", name, total)
					}
					break
				}
				if !account.Refused(err) {
					t.Errorf("%s: %d bytes: %v", name, total, err)
				}
				refused++
			}
			if refused < 2 {
				t.Errorf("%s was refused %d times, want more", name, refused)
			}
		}
	}
}

// A part whose context ends while it makes the last records makes none and fails, however it aggregates.
func TestNext_endsAtLast(t *testing.T) {
	m, all := allKinds(300)
	m.BlockRows = 0
	gone := errors.New("client is gone")
	for name, k := range all {
		if k.opts.SideBySide || name == "unaligned" || k.part.Plan.Histograms != nil {
			continue // its hours end at any time; it has ended before; its sums are there
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		m.Fail = func(_ context.Context, block int) error {
			if block == 1 {
				cancel(gone)
			}
			return nil
		}
		k.opts.FlushBytes = 0
		if _, stats, err := answer(ctx, m, k); !errors.Is(err, gone) || strings.Count(err.Error(), gone.Error()) != 1 ||
			stats.Batches != 0 {
			t.Errorf("%s: got %v, %d records, want %v, once, and none", name, err, stats.Batches, gone)
		}
	}
}

// However many records an operator of any kind has returned, Close frees all other memory, of records
// and what was reserved, and ends its scans and their context. What an operator has spent that did not read its part to
// the end is given back.
func TestClose_frees(t *testing.T) {
	m, all := allKinds(9)
	var scan atomic.Pointer[context.Context]
	m.Fail = func(ctx context.Context, _ int) error { scan.Store(&ctx); return nil }
	for name, f := range all {
		for n := 0; ; n++ {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			budget, held := operator.NewBudget(0, 0), account.New(1<<40).Open(account.Query)
			f.opts.Mem, f.opts.Budget = mem, budget
			op, err := operator.New(m, &f.part, f.opts)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for range n {
				r, nextErr := op.Next(account.With(t.Context(), held))
				if err = nextErr; err != nil {
					break
				}
				if mem.CurrentAlloc() == 0 {
					t.Errorf("%s: a record is not in the memory that is given", name)
				}
				r.Release()
			}
			if err != nil && err != io.EOF {
				t.Fatalf("%s: %v", name, err)
			}
			op.Close()
			op.Close()
			if mem.CurrentAlloc() != 0 || held.Held() != 0 || m.Open.Load() != 0 {
				t.Errorf("%s, closed after %d records: %d bytes of records, %d reserved and %d scanners are left",
					name, n, mem.CurrentAlloc(), held.Held(), m.Open.Load())
			}
			if n > 0 && (*scan.Load()).Err() == nil {
				t.Errorf("%s, closed after %d records: the context of a scan has not ended", name, n)
			}
			held.Close()
			points := op.Stats().Points
			spent, ended := budget.Spent(), err == io.EOF || n > 0 && f.atEnd
			if ended && spent != points || n < f.records-3 && !ended && spent != 0 || ended && points == 0 {
				t.Errorf("%s, closed after %d records: %d points spent of %d", name, n, spent, points)
			}
			if err == io.EOF {
				if n-1 < f.records {
					t.Errorf("%s: %d records, want at least %d", name, n-1, f.records)
				}
				break
			}
		}
	}
}
