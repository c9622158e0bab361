package dispatch

import (
	"context"
	"errors"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

// failing is a store whose scans fail with an error, unless that is nil.
type failing struct {
	*operatortest.Store
	err error
}

func (*failing) Features() store.Features { return store.Features{} }

func (f *failing) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.Store.Scan(ctx, s)
}

// Where a plan reads few rows of few hours, this process reads them, and the server where this process cannot: also
// after an error that would be final, as of memory. Without a server that error ends the run.
func TestRun_here(t *testing.T) {
	m, s := table(false)
	server := &scripted{name: "s", store: m}
	ours := &failing{Store: m}
	cfg := quiet(ours, memory.NewGoAllocator(), server)
	cfg.Seek = access.NewPrefixCache()
	e := New(cfg)
	run := func(name string, plan scanplan.Plan, here bool, failure error) {
		t.Helper()
		ours.err = failure
		planned, err := e.Explain(t.Context(), &plan, Auto, false)
		if err != nil {
			t.Fatal(err)
		}
		got := answer{}
		stats, err := e.Run(t.Context(), &plan, Options{Aggregation: PerSeries}, got.sink(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(truth(t, m, &plan), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		explained := planned[0].Server == InProcess
		if explained != (here || failure != nil) || (stats.Remote == 0) != here {
			t.Errorf("%s: explained here %t, %d of %d parts by the server, want here %t", name, explained,
				stats.Remote, stats.Parts, here)
		}
	}

	host := func(tagk int, hours int64) scanplan.Plan {
		p := operatortest.Plan(s, metric, base, base+hours*3600)
		p.Tags = []scanplan.TagPredicate{{TagK: operatortest.UID(tagk), Op: scanplan.In,
			Values: []encoding.UID{operatortest.UID(3)}}}
		return p
	}
	run("first tag", host(1, 6), true, nil)
	run("the store is away", host(1, 6), false, store.ErrUnavailable)
	run("too little memory", host(1, 6), false, &operator.LimitError{What: operator.Memory})
	run("many hours", host(1, 25), false, nil)
	run("all rows", operatortest.Plan(s, metric, base, base+6*3600), false, nil)
	run("another tag", host(2, 6), false, nil)
	run("another tag, known", host(2, 6), true, nil)

	server.hello = errors.New("away")
	ours.err = &operator.LimitError{What: operator.Memory}
	plan := host(1, 6)
	stats, err := New(cfg).Run(t.Context(), &plan, Options{}, answer{}.sink(t))
	if !errors.Is(err, ours.err) || stats.Attempts != 1 {
		t.Errorf("without a server: %v after %d attempts, want %v after one", err, stats.Attempts, ours.err)
	}
}
