package stage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"downpour/encoding/seedtest"
	"downpour/gateway/query/dispatch"
	"downpour/pushdown/resultcache"
)

// A query that waits for an equal one leaves at its deadline, and says so.
func TestSharing_deadline(t *testing.T) {
	s := newSharing(time.Hour)
	s.enter(resultcache.ID{1})
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := s.wait(ctx, resultcache.ID{1}, s.enter(resultcache.ID{1})); !errors.Is(err, dispatch.ErrDeadline) {
		t.Errorf("error %v, want ErrDeadline", err)
	}
	s.end(resultcache.ID{1})
	if plans, waiting := s.count(); plans != 0 || waiting != 0 {
		t.Errorf("%d plans are still held, %d queries wait", plans, waiting)
	}
}

// Whenever a query comes, leaves or executes: an answer is of an execution that began after its ask,
// and at the end nothing is held.
func TestLaw_sharing(t *testing.T) {
	first := seedtest.Of(t)
	for seed := first; seed < first+20; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := newSharing(time.Duration(rand.New(rand.NewPCG(seed, 0)).IntN(3)) * 100 * time.Microsecond)
			var written, got atomic.Int64
			var clients sync.WaitGroup
			for c := range uint64(16) {
				rng := rand.New(rand.NewPCG(seed, c+1))
				clients.Go(func() {
					for range 60 {
						s.lawStep(t, rng, &written, &got)
					}
				})
			}
			clients.Wait()
			if len(s.plans) != 0 || got.Load() == 0 {
				t.Errorf("%d plans are held, %d answers", len(s.plans), got.Load())
			}
		})
	}
}

// lawStep writes, or asks for one of two plans: its answer is how much was written when its
// execution began.
func (s *sharing) lawStep(t *testing.T, rng *rand.Rand, written, got *atomic.Int64) {
	plan := resultcache.ID{byte(rng.IntN(2))}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if rng.IntN(3) == 0 {
		go cancel()
	}
	execute := func() *cachedGroups {
		a := &cachedGroups{}
		a.stats.Points = written.Load()
		for range rng.IntN(50) {
			runtime.Gosched()
		}
		return a
	}
	acknowledged := written.Add(1)
	check := func(a *cachedGroups) {
		got.Add(1)
		if a.stats.Points < acknowledged {
			t.Errorf("an answer with %d writes, want %d, which were acknowledged before the question", a.stats.Points,
				acknowledged)
		}
	}

	b := s.enter(plan)
	if b == nil {
		check(execute())
		s.end(plan)
		return
	}
	leads, err := s.wait(ctx, plan, b)
	switch {
	case err != nil:
	case !leads && b.answer != nil:
		check(b.answer)
	case !leads: // for itself
	case rng.IntN(4) == 0:
		s.resign(plan, b)
	case rng.IntN(8) == 0:
		s.publish(plan, b, nil)
	default:
		a := execute()
		check(a)
		s.publish(plan, b, a)
	}
}
