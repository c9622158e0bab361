package pacer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pages runs pages that cost 11 each, whose calls take so long, and returns the time of all.
func pages(t *testing.T, p *Pacer, n int, call time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for range n {
		if err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(call)
		p.Changed(call, 10)
		p.Done(11)
	}
	return time.Since(began)
}

// TestPacer: the rate is kept, is not made up for after a pause, falls while calls are slow and
// comes back.
func TestPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(110, nil) // ten pages a second
		if took := pages(t, p, 101, time.Millisecond); took < 10*time.Second || took > 10100*time.Millisecond {
			t.Errorf("101 pages took %v, want 10 s", took)
		}
		time.Sleep(time.Minute)
		if took := pages(t, p, 101, time.Millisecond); took < 10*time.Second {
			t.Errorf("after a pause 101 pages took %v, want 10 s", took)
		}

		pages(t, p, 20, 20*time.Millisecond)
		if rate, _ := p.State(); rate > 20 {
			t.Errorf("the rate is %.1f while calls take twenty times as long, want far less than 110", rate)
		}
		if rate, _ := p.State(); rate < 110*Slowest {
			t.Errorf("the rate is %.1f, want the work to go on", rate)
		}
		pages(t, p, 60, time.Millisecond)
		if rate, _ := p.State(); rate != 110 {
			t.Errorf("the rate is %.1f after calls are fast again, want 110", rate)
		}
	})
}

// TestPacer_yields: while queries run a page waits, but not for ever, and it ends with its
// context.
func TestPacer_yields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parts atomic.Int64
		p := New(1000, func() int { return int(parts.Load()) })
		parts.Store(1)
		go func() {
			time.Sleep(2 * time.Second)
			parts.Store(0)
		}()
		if took := pages(t, p, 1, 0); took < 2*time.Second || took > 2*time.Second+YieldLook {
			t.Errorf("a page took %v during a query of 2 s", took)
		}
		parts.Store(3)
		if took := pages(t, p, 1, 0); took < YieldMost || took > YieldMost+YieldLook {
			t.Errorf("a page took %v during endless queries, want %v", took, YieldMost)
		}
		if _, yielded := p.State(); yielded < 7*time.Second || yielded > 8*time.Second {
			t.Errorf("yielded for %v, want 7 s", yielded)
		}

		ended := errors.New("ended")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ended)
		if err := p.Wait(ctx); !errors.Is(err, ended) {
			t.Errorf("got %v, want %v", err, ended)
		}
	})
}
