package dispatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/wire"
)

// A server that joins is checked at once, and used; no query waits for one that does not answer. One that leaves gets
// no further parts, and ends those that it has. One that stays keeps what is known of it.
func TestExecutor_SetServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := table(false)
		plan := operatortest.Plan(s, metric, base, base+6*3600)
		want := truth(t, m, &plan)
		a, b := &scripted{name: "a", store: m}, &scripted{name: "b", store: m}
		hung := &hanging{scripted: &scripted{name: "hung", store: m}}
		e := New(quiet(m, nil))
		run := func() Stats {
			t.Helper()
			got, began := answer{}, time.Now()
			stats, err := e.Run(t.Context(), &plan, Options{Aggregation: PerSeries, Trace: true}, got.sink(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("took %v: it waited for a server", took)
			}
			return stats
		}
		if stats := run(); stats.Remote != 0 {
			t.Errorf("%d parts at servers, there are none", stats.Remote)
		}

		e.SetServers([]Server{hung})
		if stats := run(); stats.Remote != 0 {
			t.Errorf("%d parts at a server that has not answered", stats.Remote)
		}
		e.SetServers([]Server{hung, a})
		synctest.Wait()
		if stats := run(); stats.Remote != stats.Parts || a.parts.Load() != int64(stats.Parts) {
			t.Errorf("%+v: %d parts at the server that has joined, want all", stats, a.parts.Load())
		}

		// It leaves while it has parts, and ends them; then none come.
		left := false
		a.fault = func(context.Context, int) error {
			left = true
			e.SetServers([]Server{hung, b})
			return nil
		}
		if stats := run(); stats.Discarded != 0 || stats.Remote != stats.Parts {
			t.Errorf("%+v: want each part at a server, and all accepted", stats)
		}
		synctest.Wait()
		before := a.parts.Load()
		run()
		if a.parts.Load() != before || b.parts.Load() == 0 || !left {
			t.Errorf("%d parts at the server that left, %d at the one that stays", a.parts.Load()-before,
				b.parts.Load())
		}

		// A failure stays known if the list changes.
		e.servers.markFailed(e.servers.list()[1])
		e.SetServers([]Server{b, hung})
		if healthy := e.servers.placement("tsdb").places; len(healthy) != 0 {
			t.Errorf("%s is healthy, though it has failed", healthy[0].name())
		}

		e.SetServers([]Server{hung})
		if places := e.servers.list(); len(places) != 1 || places[0].name() != "hung" {
			t.Errorf("%d servers, one has left and one is there", len(places))
		}
		time.Sleep(2 * healthTimeout)
	})
}

// A server that has joined and fails its first check is checked again, until it answers: used within 5 s.
func TestExecutor_SetServers_late(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &starting{scripted: &scripted{name: "s"}, until: began.Add(2500 * time.Millisecond)}
		e := New(quiet(nil, nil))
		e.SetServers([]Server{s})
		for len(e.servers.placement("tsdb").places) == 0 {
			time.Sleep(100 * time.Millisecond)
			e.servers.checkHealth(t.Context())
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("used after %v, want 5 s at most", took)
		}
	})
}

// starting is a server that answers from a moment on.
type starting struct {
	*scripted
	until time.Time
}

func (s *starting) Hello(context.Context) (wire.Hello, error) {
	if time.Now().Before(s.until) {
		return wire.Hello{}, wire.ErrServer
	}
	return wire.Hello{Plan: scanplan.Version, Batch: batch.Version}, nil
}
