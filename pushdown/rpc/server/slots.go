package server

import (
	"context"
	"sync"
)

// fairSlots shares the right to execute a part among queries. A query's first part
// never waits: however many parts heavy queries have, and however long these are
// stuck, a light query passes. Its further parts wait while all slots are taken. A
// free slot goes to the query with the fewest parts running, and among equals to
// the part that has waited longest.
type fairSlots struct {
	slots int

	mu      sync.Mutex
	running int            // parts; more than slots if first parts did not wait
	queries map[string]int // parts running by query
	waiting []*waiter      // in order of arrival
}

// waiter is a part that waits for a slot.
type waiter struct {
	query string
	ready chan struct{} // closed when it has a slot
}

func newFairSlots(slots int) *fairSlots { return &fairSlots{slots: slots, queries: map[string]int{}} }

// acquire waits for a slot. It returns false if ctx ends or stop is closed before
// there is one. A part that need not wait gets its slot also after stop.
func (s *fairSlots) acquire(ctx context.Context, stop <-chan struct{}, query string) bool {
	s.mu.Lock()
	// A query's first part never waits, so that a light query overtakes heavy ones.
	if s.running < s.slots || s.queries[query] == 0 {
		s.takeSlotLocked(query)
		s.mu.Unlock()
		return true
	}
	w := &waiter{query: query, ready: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()

	select {
	case <-w.ready:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	s.stopWaiting(w)
	return false
}

func (s *fairSlots) takeSlotLocked(query string) {
	s.running++
	s.queries[query]++
}

// stopWaiting removes a waiter. If it was given a slot in the same moment, the slot
// goes to the next one.
func (s *fairSlots) stopWaiting(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for i, other := range s.waiting {
		if other == w {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return
		}
	}
	s.releaseLocked(w.query)
}

// release gives a slot back.
func (s *fairSlots) release(query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked(query)
}

// releaseLocked gives back the slot of a query's part and starts the parts that may run
// now.
func (s *fairSlots) releaseLocked(query string) {
	s.running--
	if s.queries[query]--; s.queries[query] == 0 {
		delete(s.queries, query)
	}

	// More than one part may start: this one's slot is free, and a waiting part whose query has no
	// running part needs no free slot.
	for i := s.nextLocked(); i >= 0; i = s.nextLocked() {
		w := s.waiting[i]
		s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
		s.takeSlotLocked(w.query)
		close(w.ready)
	}
}

// nextLocked returns the index of the waiter that may start now, -1 for none.
func (s *fairSlots) nextLocked() int {
	next := -1
	for i, w := range s.waiting {
		if next < 0 || s.queries[w.query] < s.queries[s.waiting[next].query] {
			next = i
		}
	}

	// Without a free slot only the first part of a query starts.
	if next >= 0 && s.running >= s.slots && s.queries[s.waiting[next].query] > 0 {
		return -1
	}
	return next
}
