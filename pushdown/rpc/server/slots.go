package server

import (
	"context"
	"sync"
)

// shares deals out the right to execute a part. A query's first part never
// waits: however many parts heavy queries have, and however long these are
// stuck, a light query passes. Its further parts wait while all slots are taken;
// a free slot goes to the query that has the fewest parts running, and among
// equals to the one that has waited longest.
type shares struct {
	slots int

	mu      sync.Mutex
	running int
	queries map[string]int // parts running
	waiting []*waiter      // in order of arrival
}

// waiter is a part that waits.
type waiter struct {
	query string
	ready chan struct{} // closed when it has a slot
}

func newShares(slots int) *shares { return &shares{slots: slots, queries: map[string]int{}} }

// enter waits for a slot, and says whether it got one before ctx ended or stop
// was closed. Who has a slot without waiting gets it after stop, too.
func (s *shares) enter(ctx context.Context, stop <-chan struct{}, query string) bool {
	s.mu.Lock()
	if s.running < s.slots || s.queries[query] == 0 {
		s.takeLocked(query)
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
	s.giveUp(w)
	return false
}

func (s *shares) takeLocked(query string) {
	s.running++
	s.queries[query]++
}

// giveUp removes a waiter. If it was given a slot in the same moment, the slot
// goes on to the next.
func (s *shares) giveUp(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.waiting {
		if other == w {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return
		}
	}
	s.leaveLocked(w.query)
}

// leave gives a slot back.
func (s *shares) leave(query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(query)
}

func (s *shares) leaveLocked(query string) {
	s.running--
	if s.queries[query]--; s.queries[query] == 0 {
		delete(s.queries, query)
	}
	for i := s.nextLocked(); i >= 0; i = s.nextLocked() {
		w := s.waiting[i]
		s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
		s.takeLocked(w.query)
		close(w.ready)
	}
}

// nextLocked is the index of the waiter whose turn it is, -1 for none.
func (s *shares) nextLocked() int {
	next := -1
	for i, w := range s.waiting {
		if next < 0 || s.queries[w.query] < s.queries[s.waiting[next].query] {
			next = i
		}
	}
	if next >= 0 && s.running >= s.slots && s.queries[s.waiting[next].query] > 0 {
		return -1
	}
	return next
}
