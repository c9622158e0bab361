package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rpc/wire"
	"downpour/pushdown/store"
)

// stepped is a run with one part and two healthy servers, whose steps a test takes one by one.
type stepped struct {
	*run
	part *pendingPart
	at   []*place // the servers
	log  *bytes.Buffer
}

// newStepped returns a run that has not begun, on a store.
func newStepped(t *testing.T, m *operatortest.Store, mem *memory.CheckedAllocator) *stepped {
	s := &stepped{log: &bytes.Buffer{}}
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+6*3600)
	cfg := quiet(m, mem, &scripted{name: "s0", store: m}, &scripted{name: "s1", store: m})
	cfg.Log = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e := New(cfg)
	e.servers.checkHealth(t.Context())
	p := part{Range: plan.Ranges[0], RegionServer: "rs0:1", Bytes: 1 << 20}
	opts := Options{Budget: operator.NewBudget(0, 0)}
	s.run = newRun(e, &plan, opts, answer{}.sink(t), partition{parts: []part{p}})
	s.at, s.part = e.servers.list(), s.queue.unplaced[0]
	s.queue.placement, s.queue.unplaced = e.servers.placement(plan.Table), nil
	return s
}

// ends has an attempt at the part end with an error, nil for none.
func (s *stepped) ends(ctx context.Context, at *place, stats operator.Stats, err error) error {
	of := &runningAttempt{place: at, cancel: func() {}}
	s.part.running = append(s.part.running, of)
	a := &partAttempt{part: s.part, of: of, place: at, began: time.Now(), stats: stats, err: err}
	return s.finishAttempt(ctx, a)
}

// healthy reports whether a server gets parts.
func (s *stepped) healthy(at *place) bool {
	for p := range s.e.servers.placement(s.plan.Table).candidates("", 0) {
		if p == at {
			return true
		}
	}
	return false
}

// A server that has failed a part does not get it again before all places have failed it; then there is a pause, which
// doubles up to a bound. Of a part that was to be read here a server is the next one, at once.
func TestRun_retries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := table(false)
		s := newStepped(t, m, nil)
		for i, at := range s.at {
			if err := s.ends(t.Context(), at, operator.Stats{}, wire.ErrServer); err != nil {
				t.Fatal(err)
			}
			if s.mayTake(s.part, at) || s.healthy(at) || !s.part.notBefore.IsZero() {
				t.Errorf("server %d may take a part that it has failed, or it waits until %v", i, s.part.notBefore)
			}
			if next := s.choosePlace(s.part); next == at {
				t.Errorf("after server %d has failed a part, it is next", i)
			}
		}
		for i, want := range []time.Duration{50, 100, 200, 400, 800, 1600, 2000, 2000} {
			if err := s.ends(t.Context(), s.e.here, operator.Stats{}, store.ErrUnavailable); err != nil {
				t.Fatal(err)
			}
			if got := time.Until(s.part.notBefore); got != want*time.Millisecond || !s.mayTake(s.part, s.at[0]) {
				t.Errorf("pause %d is %v, want %v, and that servers may take the part again", i, got, want)
			}
		}

		s = newStepped(t, m, nil)
		s.part.Here = true
		err := s.ends(t.Context(), s.e.here, operator.Stats{}, &operator.LimitError{What: operator.Memory})
		if err != nil || !s.part.notBefore.IsZero() || s.choosePlace(s.part) != s.at[0] {
			t.Errorf("%v, the part waits until %v, want a server at once", err, s.part.notBefore)
		}
	})
}

// What a place has done is counted, and the time of what has succeeded is learnt.
func TestRun_counts(t *testing.T) {
	m, _ := table(false)
	for _, remote := range []bool{true, false} {
		s := newStepped(t, m, nil)
		at := s.e.here
		if remote {
			at = s.at[0]
		}
		for _, err := range []error{store.ErrUnavailable, nil} {
			if err := s.ends(t.Context(), at, operator.Stats{Bytes: 7}, err); err != nil {
				t.Fatal(err)
			}
		}
		got, learnt := at.tally.stats(time.Now()), 0
		if remote {
			learnt = 1
		}
		if got.Parts != 1 || got.Failed != 1 || got.Bytes != 7 || at.pace.n != learnt {
			t.Errorf("%s: %+v, and %d times are learnt; want a part, a failure, and %d", at.name(), got, at.pace.n,
				learnt)
		}
	}
}

// An attempt that ends because its query does says nothing of its server.
func TestRun_endsWithItsQuery(t *testing.T) {
	m, _ := table(false)
	s := newStepped(t, m, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.ends(ctx, s.at[0], operator.Stats{}, fmt.Errorf("s0: %w", context.Canceled))
	if err != nil || s.part.failure != nil || !s.healthy(s.at[0]) || s.log.Len() > 0 {
		t.Errorf("%v, the failure %v, the server healthy: %v; log: %s", err, s.part.failure, s.healthy(s.at[0]), s.log)
	}
}

// A run whose time is over waits for its attempts, and does nothing until they end.
func TestRun_awaitsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := table(false)
		plan := operatortest.Plan(s, metric, base, base+6*3600)
		m.Fail = func(ctx context.Context, _ int) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			return ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := New(quiet(m, nil)).Run(ctx, &plan, Options{}, answer{}.sink(t))
		if took := time.Since(began); !errors.Is(err, ErrDeadline) || took != time.Minute+time.Second {
			t.Errorf("%v after %v, want that of the deadline, when the attempts have ended", err, took)
		}
	})
}

// A plan that a server does not know is in the log once, and the server gets no part of it, and those of others.
func TestRun_refused(t *testing.T) {
	m, _ := table(false)
	s := newStepped(t, m, nil)
	for range 2 {
		if err := s.ends(t.Context(), s.at[0], operator.Stats{}, operator.ErrBadPlan); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(s.log.String(), "does not know a plan"); n != 1 || s.mayTake(s.part, s.at[0]) ||
		!s.healthy(s.at[0]) {
		t.Errorf("%d lines, want one; may take a part: %v, healthy: %v", n, s.mayTake(s.part, s.at[0]),
			s.healthy(s.at[0]))
	}

	// This process is not refused for all parts: what it does not know ends the query once no server knows it.
	s.part.Here = true
	err := s.ends(t.Context(), s.e.here, operator.Stats{}, operator.ErrBadPlan)
	if err != nil || s.refusedBy[s.e.here] {
		t.Errorf("%v, refused by this process: %v", err, s.refusedBy[s.e.here])
	}
	err = s.ends(t.Context(), s.e.here, operator.Stats{}, operator.ErrBadPlan)
	if !errors.Is(err, operator.ErrBadPlan) {
		t.Errorf("%v, want the error of the plan", err)
	}
}

// A trace has all attempts, and says which were accepted. Without Options.Trace there is none.
func TestRun_trace(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	failed := false
	server := &scripted{name: "s", store: m, fault: func(_ context.Context, n int) error {
		if n == 1 && !failed {
			failed = true
			return resultcache.ErrUnproven
		}
		return nil
	}}
	cfg := quiet(m, memory.NewGoAllocator(), server)
	cfg.PerServer = 1
	for _, trace := range []bool{true, false} {
		failed = false
		stats, err := New(cfg).Run(t.Context(), &plan, Options{Aggregation: PerSeries, Trace: trace}, answer{}.sink(t))
		if err != nil {
			t.Fatal(err)
		}
		if !trace {
			if stats.Trace != nil {
				t.Errorf("a trace of %d attempts, want none", len(stats.Trace))
			}
			continue
		}
		accepted := map[string]bool{}
		for _, a := range stats.Trace {
			if a.Accepted != (a.Err == nil) || accepted[a.Range.Start.String()] {
				t.Errorf("attempt %+v: want that accepted which has no error, and each part once", a)
			}
			accepted[a.Range.Start.String()] = a.Accepted
		}
		if len(stats.Trace) != stats.Attempts || stats.Attempts != stats.Parts+1 || len(accepted) != stats.Parts {
			t.Errorf("%d attempts in the trace, and %+v; want one more than parts", len(stats.Trace), stats)
		}
	}
}
