package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
)

// What a configuration lacks has a default.
func TestNew(t *testing.T) {
	e := New(Config{})
	if e.cfg.Log != slog.Default() || e.servers.within != healthTimeout || e.cfg.PerServer != 4 || e.cfg.Local < 1 {
		t.Errorf("%+v, a health check takes %v", e.cfg, e.servers.within)
	}
	if e := New(Config{HelloTimeout: time.Minute}); e.servers.within != time.Minute {
		t.Errorf("a health check takes %v, want a minute", e.servers.within)
	}
}

// A plan is cut into four parts for each that can be executed at a time. Without servers no regions are listed.
func TestExplain_parts(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+200*3600)
	for servers, want := range map[int]int{0: 4 * 2, 1: 4 * (2 + 3), 3: 4 * (2 + 3*3)} {
		l := &listing{Store: m}
		cfg := quiet(l, nil)
		cfg.PerServer = 3
		for i := range servers {
			cfg.Servers = append(cfg.Servers, &scripted{name: fmt.Sprint("s", i), store: m})
		}
		parts, err := New(cfg).Explain(t.Context(), &plan, PerSeries, false)
		if err != nil || len(parts) != want || (l.listed.Load() > 0) != (servers > 0) {
			t.Errorf("%d servers: %v, %d parts, want %d; regions are listed %d times", servers, err, len(parts), want,
				l.listed.Load())
		}
	}
}

// Explain says which parts are in the result cache. The parts of an answer that names no series leave names out.
func TestExplain_kept(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	cfg := quiet(resting{m}, nil)
	cfg.ResultCache = resultcache.New(1<<26, nil)
	e := New(cfg)
	for _, want := range []string{"", "kept"} {
		parts, err := e.Explain(t.Context(), &plan, PerSeries, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			if p.ResultCache != want {
				t.Errorf("part %+v is %q, want %q", p, p.ResultCache, want)
			}
		}
		for range 3 { // the second run cuts the plan differently, and a part that is read twice is kept
			if _, err := e.Run(t.Context(), &plan, Options{Aggregation: PerSeries}, answer{}.sink(t)); err != nil {
				t.Fatal(err)
			}
		}
	}

	cfg.SideBySide = true
	plan.Aggregator = "sum"
	plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
	for unnamed, want := range map[bool]scanplan.Mode{
		false: scanplan.PartialAggregation,
		true:  scanplan.PartialWithoutNames,
	} {
		cut, err := New(cfg).partition(t.Context(), &plan, Auto, unnamed)
		if err != nil || len(cut.parts) != 1 || cut.parts[0].Mode != want {
			t.Errorf("%v, %+v, want one part of mode %v", err, cut.parts, want)
		}
	}
}

// failingList is a store that does not say where its regions are: first it is away, then it refuses.
type failingList struct {
	listing
	err error
}

func (*failingList) Features() store.Features { return store.Features{} }

func (l *failingList) Regions(context.Context, string, []byte, []byte) ([]store.Region, error) {
	if l.listed.Add(1) < 3 {
		return nil, store.ErrUnavailable
	}
	return nil, l.err
}

// While the store is away its regions are listed again, after longer and longer pauses. Another error ends a run before
// it reads anything.
func TestRun_regionsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := table(false)
		plan := operatortest.Plan(s, metric, base, base+6*3600)
		for _, want := range []error{store.ErrDenied, nil} {
			l := &failingList{listing{Store: m}, want}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			e, began := New(quiet(l, nil, &scripted{name: "s", store: m})), time.Now()
			stats, err := e.Run(ctx, &plan, Options{Aggregation: PerSeries}, answer{}.sink(t))
			if !errors.Is(err, want) || (stats.Parts > 0) != (want == nil) || l.listed.Load() != 3 {
				t.Errorf("%v after %d lists, want %v after 3; %d parts", err, l.listed.Load(), want, stats.Parts)
			}
			if took := time.Since(began); took != 3*minRetryPause {
				t.Errorf("took %v, want a pause of %v and one of twice that", took, minRetryPause)
			}
			if _, err := e.Explain(ctx, &plan, Auto, false); !errors.Is(err, want) {
				t.Errorf("explain: %v, want %v", err, want)
			}
		}
	})
}

// endless is a store that never answers where its regions are.
type endless struct{ *operatortest.Store }

func (endless) Features() store.Features { return store.Features{} }

func (endless) Regions(ctx context.Context, _ string, _, _ []byte) ([]store.Region, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A run whose deadline comes before it has listed the regions fails, or all ranges are missing. One whose caller leaves
// fails, and so does one with a plan that is none.
func TestRun_noRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := table(false)
		plan := operatortest.Plan(s, metric, base, base+6*3600)
		e := New(quiet(endless{m}, nil, &scripted{name: "s", store: m}))
		run := func(plan *scanplan.Plan, within time.Duration, missing bool) (Stats, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if within < time.Minute {
				time.AfterFunc(within, cancel)
			}
			return e.Run(ctx, plan, Options{AllowMissing: missing}, answer{}.sink(t))
		}
		if stats, err := run(&plan, time.Minute, false); !errors.Is(err, ErrDeadline) || stats.Missing != nil {
			t.Errorf("%v, missing %v, want that of the deadline", err, stats.Missing)
		}
		stats, err := run(&plan, time.Minute, true)
		if diff := cmp.Diff(plan.Ranges, stats.Missing); err != nil || diff != "" {
			t.Errorf("%v, missing (-want +got):\n%s", err, diff)
		}
		if _, err := run(&plan, time.Second, true); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that of the caller", err)
		}
		none := plan
		none.Ranges = nil
		if _, err := run(&none, time.Minute, true); !errors.Is(err, operator.ErrBadPlan) {
			t.Errorf("a plan without ranges: %v, want that it is refused", err)
		}
	})
}
