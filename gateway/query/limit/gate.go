package limit

import (
	"context"
	"sync"
	"time"

	"downpour/pushdown/operator"
)

// maxWait is how long a heavy query waits for a slot.
const maxWait = 10 * time.Second

// gate has the slots of heavy queries.
type gate struct{ slots chan struct{} }

func newGate(slots int) *gate { return &gate{slots: make(chan struct{}, slots)} }

// heavySlot is a query's claim to one slot. It takes one at most, however many of the
// query's parts become heavy.
type heavySlot struct {
	gate *gate

	mu       sync.Mutex
	held     bool
	yielded  bool  // it was held, and the query has begun to answer
	released bool  // for good: a part that becomes heavy later needs no slot
	err      error // of the wait
}

type heavySlotKey struct{}

// acquire waits for a slot unless the query has one. The error is an
// *operator.LimitError if none becomes free, or the context's.
func (s *heavySlot) acquire(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.held || s.released || s.err != nil {
		return s.err
	}

	// With the lock held, for the query's other parts wait for the same slot.
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	if s.yielded {
		timer.Stop() // it waits as long as it has time, because its answer would be cut
	}
	select {
	case s.gate.slots <- struct{}{}:
		s.held = true
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		// Kept, so that no other part waits as long again.
		s.err = &operator.LimitError{What: operator.Queries, Limit: int64(cap(s.gate.slots))}
	}
	return s.err
}

// gatedBudget is the budget of a sub-query that needs a slot once it has read more
// than heavyAt points. It may wait for it before each further block of rows.
type gatedBudget struct {
	*operator.ReadBudget
	heavyAt int64
	slot    *heavySlot
}

// Spend counts what was read, and waits for a slot if that is much.
func (b *gatedBudget) Spend(ctx context.Context, points, bytes int64) error {
	if err := b.ReadBudget.Spend(ctx, points, bytes); err != nil {
		return err
	}

	if b.Spent() > b.heavyAt {
		return b.slot.acquire(ctx)
	}
	return nil
}

// release gives the slot back for good: a part that becomes heavy later waits for none.
func (s *heavySlot) release() {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.held {
		<-s.gate.slots
	}
	s.held, s.released = false, true
}

// yield gives the slot back until the query reads on.
func (s *heavySlot) yield() {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.held {
		<-s.gate.slots
	}
	s.held, s.yielded = false, true
}
