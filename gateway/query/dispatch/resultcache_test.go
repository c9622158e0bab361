package dispatch

import (
	"context"
	"testing"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
)

// resting is a store whose rows do not change.
type resting struct{ *operatortest.Store }

func (r resting) Features() store.Features {
	return store.Features{Versioner: store.VersionFunc(r.Version)}
}

func (resting) Version(context.Context, string, string, store.KeyRange) (string, error) {
	return "always the same", nil
}

type nothing struct{}

func (nothing) Bytes() int64 { return 1 }

// The answer of a plan is cached as a whole if all its parts were executed in process, and cut the
// same way in two runs, and not if a pushdown server executed them.
func TestLookupPlan(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	for name, servers := range map[string][]Server{"in process": nil,
		"a server": {&scripted{name: "one:1", store: m}}} {
		e := New(Config{Store: resting{m}, Servers: servers, ResultCache: resultcache.New(1<<20, nil)})
		found := 0
		for range 5 { // the second run knows sizes, and cuts the plan differently
			whole := e.LookupPlan(t.Context(), &plan, "", nil)
			if whole.Found() != nil {
				found++
			}
			if whole.Wanted() && len(servers) > 0 {
				t.Error("the answer is wanted although a server will execute the parts")
			}
			stats, err := e.Run(t.Context(), &plan, Options{Aggregation: PerSeries}, answer{}.sink(t))
			if err != nil {
				t.Fatal(err)
			}
			if stats.CacheComplete() {
				whole.Store(nothing{})
			}
		}
		if want := 2 * (1 - len(servers)); found != want || e.HoldsPlan(&plan, "") != (want > 0) {
			t.Errorf("%s: %d of 5 look-ups found an answer, want %d", name, found, want)
		}
		if err := e.DropCaches(t.Context()); err != nil || e.HoldsPlan(&plan, "") {
			t.Errorf("%s: %v, the cache is dropped: %v", name, err, !e.HoldsPlan(&plan, ""))
		}
	}
}

func TestStats_CacheComplete(t *testing.T) {
	f := func(want bool, s Stats, hits, proven int64) {
		t.Helper()
		s.CacheHits, s.CacheProven = hits, proven
		if s.CacheComplete() != want {
			t.Errorf("%+v: complete %v, want %v", s, !want, want)
		}
	}
	f(true, Stats{Parts: 3}, 3, 0)
	f(true, Stats{Parts: 3}, 1, 2)
	f(false, Stats{Parts: 3}, 2, 0)
	f(false, Stats{Parts: 3, Remote: 1}, 3, 0)
	f(false, Stats{Parts: 3, Missing: []scanplan.KeyRange{{}}}, 3, 0)
	f(false, Stats{}, 0, 0)
}

func TestStats_FromCache(t *testing.T) {
	s := Stats{
		Parts:     3,
		Attempts:  4,
		Discarded: 1,
		Stats:     operator.Stats{Rows: 5, Bytes: 6, Points: 7, RPCs: 8, ScanTime: 9, CacheStored: 3},
	}
	want := Stats{Parts: 3, Stats: operator.Stats{Rows: 5, Bytes: 6, Points: 7, CacheHits: 3}}
	if got := s.FromCache(); got.Stats != want.Stats || got.Parts != 3 || got.Attempts != 0 || got.Discarded != 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
}
