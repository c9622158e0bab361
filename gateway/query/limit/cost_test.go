package limit

import (
	"testing"

	"downpour/gateway/query"
	"downpour/pushdown/process/memory"
)

// The cost of a query is what all of its sub-queries have spent, without what was given back, also
// when it was refused, and the memory that it holds.
func TestEntry_Cost(t *testing.T) {
	for _, cfg := range []Config{{Points: 100}, {Points: 100, Heavy: 1, HeavyPoints: 10}} {
		cfg.Memory = memory.New(memory.Least)
		l := New(cfg)
		ctx, entry := l.Enter(t.Context(), memory.Query)
		a, b := l.Budget(ctx, &query.Query{}, &query.SubQuery{}), l.Budget(ctx, &query.Query{}, &query.SubQuery{})
		for _, err := range []error{a.Spend(ctx, 50, 500), b.Spend(ctx, 7, 70), memory.Reserve(ctx, 1000)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		b.Refund(5, 50)
		if err := a.Spend(ctx, 51, 5); err == nil {
			t.Error("101 points of 100 are not refused")
		}
		if got, want := entry.Cost(), (Cost{Points: 103, Bytes: 525, Memory: 1000}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		entry.Close()
		if got := entry.Cost(); got.Memory != 0 || got.Points != 103 {
			t.Errorf("after its end: %+v, want no memory", got)
		}
	}
}
