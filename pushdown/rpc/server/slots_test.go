package server

import (
	"context"
	"testing"
	"testing/synctest"
)

// If a query holds every slot, its own further parts wait, but the first part of any other query
// runs at once.
func TestFairSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFairSlots(2)
		var order []string
		ctx, cancel := context.WithCancel(t.Context())
		ask := func(ctx context.Context, query string) {
			go func() {
				if s.acquire(ctx, nil, query) {
					order = append(order, query)
				}
			}()
			synctest.Wait()
		}
		want := func(what string, queries ...string) {
			t.Helper()
			if len(order) != len(queries) {
				t.Fatalf("%s: %q run, want %q", what, order, queries)
			}
			for i := range queries {
				if order[i] != queries[i] {
					t.Fatalf("%s: %q run, want %q", what, order, queries)
				}
			}
		}
		for range 5 {
			ask(ctx, "heavy")
		}
		want("all slots are taken", "heavy", "heavy")
		ask(t.Context(), "light")
		want("a light query passes", "heavy", "heavy", "light")
		ask(t.Context(), "light")
		ask(t.Context(), "third")
		want("its second part waits, a third query's first does not", "heavy", "heavy", "light", "third")
		s.release("third")
		synctest.Wait()
		want("more run than there are slots", "heavy", "heavy", "light", "third")
		s.release("heavy")
		synctest.Wait()
		want("as many as there are slots", "heavy", "heavy", "light", "third")
		s.release("heavy")
		synctest.Wait()
		want("a query without parts comes first", "heavy", "heavy", "light", "third", "heavy")
		s.release("light")
		synctest.Wait()
		want("then the other", "heavy", "heavy", "light", "third", "heavy", "light")
		cancel()
		synctest.Wait()
		s.release("light")
		s.release("heavy")
		if len(s.waiting) != 0 || s.running != 0 || len(s.queries) != 0 {
			t.Errorf("at the end %d wait, %d run, queries %v, want none", len(s.waiting), s.running, s.queries)
		}
	})
}

// A part that gives up in the moment in which it gets a slot hands it on.
func TestFairSlots_stopWaiting(t *testing.T) {
	s := newFairSlots(1)
	s.acquire(t.Context(), nil, "a")
	w := &waiter{query: "a", ready: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.release("a")
	<-w.ready
	s.stopWaiting(w)
	if s.running != 0 {
		t.Errorf("%d run, want none", s.running)
	}
}
