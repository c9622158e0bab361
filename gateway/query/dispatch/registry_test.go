package dispatch

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that stays keeps its place when the list changes, and has not joined.
func TestRegistry_set(t *testing.T) {
	a, b, c := &scripted{name: "a"}, &scripted{name: "b"}, &scripted{name: "c"}
	r := newRegistry([]Server{a, b}, nil, slog.New(slog.DiscardHandler))
	before := r.list()
	joined := r.set([]Server{c, b, a})
	after := r.list()
	if len(joined) != 1 || len(after) != 3 || after[0] != joined[0] || after[1] != before[1] || after[2] != before[0] {
		t.Errorf("%d servers have joined, want c alone; the others keep their places: %v, %v", len(joined),
			after[1] == before[1], after[2] == before[0])
	}
}

// Each query waits for the check of a server that has not failed; of one that has, a single check runs at a time. Parts
// that fail together count as one failure.
func TestRegistry_claimCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := &hanging{scripted: &scripted{name: "hung"}}
		r := newRegistry([]Server{hung}, nil, slog.New(slog.DiscardHandler))
		p := r.list()[0]
		for range 2 {
			if due, failed := r.claimCheck(p); !due || failed {
				t.Errorf("due %v, failed %v, want that each query checks it", due, failed)
			}
		}
		for range 3 {
			r.markFailed(p)
		}
		if p.health.backoff != minBackoff {
			t.Errorf("failures at one time: a pause of %v, want %v", p.health.backoff, minBackoff)
		}
		time.Sleep(minBackoff)
		for i := range 2 {
			if due, failed := r.claimCheck(p); due != (i == 0) || !failed {
				t.Errorf("query %d: due %v, failed %v, want that one checks it", i, due, failed)
			}
		}
		p.health.checking = false
		for range 2 {
			r.suspect(t.Context(), p)
		}
		synctest.Wait()
		if n := hung.hellos.Load(); n != 1 {
			t.Errorf("a server where parts are late is asked %d times, want once", n)
		}
		time.Sleep(2 * healthTimeout)
	})
}

// Why a check has failed is known, and in the log.
func TestRegistry_check(t *testing.T) {
	var log bytes.Buffer
	s := &scripted{name: "s", hello: errors.New("no route")}
	r := newRegistry([]Server{s}, nil, slog.New(slog.NewTextHandler(&log, nil)))
	r.checkHealth(t.Context())
	health := &r.list()[0].health
	if health.lastError != "no route" || health.lastFail.IsZero() || !strings.Contains(log.String(), "no route") {
		t.Errorf("%+v; log: %s", health, &log)
	}
}

// All tables that are no rollups have the same servers, and one placement.
func TestRegistry_placement(t *testing.T) {
	r := newRegistry([]Server{&scripted{name: "s"}}, []string{"rollup"}, slog.New(slog.DiscardHandler))
	r.checkHealth(t.Context())
	one, rollup, other := r.placement("one"), r.placement("rollup"), r.placement("other")
	if one != other || one == rollup || len(one.places) != 1 || len(rollup.places) != 0 {
		t.Errorf("%d places, %d for rollups; the same: %v", len(one.places), len(rollup.places), one == other)
	}
}
