package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"downpour/gateway/query/dispatch"
	"downpour/pushdown/resultcache"
)

// Many viewers of one dashboard query the same plans at the same time. Requests that come while an
// equal plan is being executed share its next execution, which begins when that one ends. They
// never share one that has begun: it may already have read a row to which a point was written
// since, and a point that is acknowledged before a query must be in its answer.

// sharing has the plans that are being executed. Its methods may be called from many
// goroutines.
type sharing struct {
	patience time.Duration // see Config
	answered atomic.Int64  // queries by the execution of another one

	mu    sync.Mutex
	plans map[resultcache.ID]*executions
}

// executions counts the running executions of one plan, and has the batch of requests that wait for the
// next one.
type executions struct {
	running int      // at least 1
	next    *sharers // nil if no request waits
}

// sharers are a batch: the requests that share one execution, which begins when an earlier one ends.
type sharers struct {
	// lead has a value once the execution may begin: the query that receives it executes. If it
	// ends too early, it puts the value back.
	lead chan struct{}
	// done is closed at the end. Then answer is shared by all, nil if each must execute for itself.
	done   chan struct{}
	answer *cachedGroups

	// Guarded by sharing.mu.
	members int // without those that have left
	begun   bool
}

func newSharing(patience time.Duration) *sharing {
	return &sharing{patience: patience, plans: map[resultcache.ID]*executions{}}
}

// enter returns nil if no execution of the plan runs: the caller executes it, and calls end. Otherwise
// the caller joins the batch that shares the next execution, which enter returns, and calls wait.
func (s *sharing) enter(plan resultcache.ID) *sharers {
	s.mu.Lock()
	defer s.mu.Unlock()

	x := s.plans[plan]
	if x == nil {
		s.plans[plan] = &executions{running: 1}
		return nil
	}
	if x.next == nil {
		x.next = &sharers{lead: make(chan struct{}, 1), done: make(chan struct{})}
	}
	x.next.members++
	return x.next
}

// end ends an execution, and has the next one begin.
func (s *sharing) end(plan resultcache.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.endLocked(plan)
}

func (s *sharing) endLocked(plan resultcache.ID) {
	x := s.plans[plan]
	x.running--
	if b := x.next; b != nil {
		x.begin()
		b.lead <- struct{}{}
	} else if x.running == 0 {
		delete(s.plans, plan)
	}
}

// begin closes the next batch: later requests do not share it.
func (x *executions) begin() {
	x.next.begun, x.next = true, nil
	x.running++
}

// wait waits for the answer of a batch. leads is set if the caller must execute for the batch, and
// end with publish or resign.
func (s *sharing) wait(ctx context.Context, plan resultcache.ID, b *sharers) (leads bool, err error) {
	patience := time.NewTimer(s.patience)
	defer patience.Stop()
	for {
		select {
		case <-b.lead:
			return true, nil
		case <-b.done:
			return false, nil
		case <-patience.C:
			if s.beginAlongside(plan, b) {
				return true, nil
			}
		case <-ctx.Done():
			s.leave(plan, b)
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return false, fmt.Errorf("%w while it waited for the execution of an equal one", dispatch.ErrDeadline)
			}
			return false, context.Cause(ctx)
		}
	}
}

// beginAlongside begins the execution of a batch while others run, unless it has begun.
func (s *sharing) beginAlongside(plan resultcache.ID, b *sharers) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if b.begun {
		return false
	}
	s.plans[plan].begin()
	return true
}

// leave takes a query that does not execute out of a batch.
func (s *sharing) leave(plan resultcache.ID, b *sharers) {
	s.mu.Lock()
	defer s.mu.Unlock()

	b.members--
	switch {
	case b.members > 0:
	case !b.begun:
		s.plans[plan].next = nil
	default: // no member is left to take the lead
		select {
		case <-b.lead:
			s.endLocked(plan)
		case <-b.done:
		}
	}
}

// resign takes the query that executes out of a batch: another one executes.
func (s *sharing) resign(plan resultcache.ID, b *sharers) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if b.members--; b.members > 0 {
		b.lead <- struct{}{}
		return
	}
	s.endLocked(plan)
}

// publish ends the execution of a batch with its answer, nil if it has none to share.
func (s *sharing) publish(plan resultcache.ID, b *sharers, answer *cachedGroups) {
	b.answer = answer
	close(b.done)
	s.end(plan)
}

// isShared reports whether several queries wait for the execution of a batch.
func (s *sharing) isShared(b *sharers) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.members > 1
}

// count returns how many plans are being executed, and how many queries wait.
func (s *sharing) count() (plans, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.plans {
		if x.next != nil {
			waiting += x.next.members
		}
	}
	return len(s.plans), waiting
}
