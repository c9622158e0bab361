package operator_test

import (
	"io"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	account "downpour/pushdown/process/memory"
)

// However many records an operator of any kind has returned, Close frees all other memory, of records
// and what was reserved, and ends its scans. What an operator has spent that did not read its part to
// the end is given back.
func TestClose_frees(t *testing.T) {
	m, groups := sparsePart(9)
	groups.Plan.GroupBy = []encoding.UID{operatortest.UID(1)}
	series := *groups
	series.Mode = scanplan.PerSeries
	raw := series
	raw.Plan.Downsample = nil
	aligned := raw
	aligned.Mode = scanplan.Aligned
	for name, f := range map[string]struct {
		part    scanplan.Part
		records int
		opts    operator.Options
	}{
		"raw":          {raw, 27, operator.Options{FlushBytes: 1}},
		"series":       {series, 27, operator.Options{FlushBytes: 1}},
		"groups":       {*groups, 9, operator.Options{FlushBytes: 1}},
		"side by side": {*groups, 9, operator.Options{FlushBytes: 1, SideBySide: true}},
		"aligned":      {aligned, 1, operator.Options{FlushBytes: 1}},
	} {
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
			held.Close()
			points := op.Stats().Points
			if spent := budget.Spent(); spent != 0 && spent != points || err == io.EOF && spent == 0 {
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
