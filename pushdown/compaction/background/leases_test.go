package background

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/pushdown/compaction"
	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

// The region to work on is one whose holder has died, else the next that is due in the order of keys, from the first
// on after the last. If none is due, it is known when the next one is.
func TestWorker_nextDue(t *testing.T) {
	later := time.Now().Add(time.Minute / 2)
	for _, c := range []struct{ due, dead, after, want string }{
		{"abcd", "", "b", "c"}, {"abd", "", "b", "d"}, {"ab", "", "b", "a"}, {"abcd", "", "", "a"},
		{"abcd", "a", "b", "a"}, {"abcd", "d", "b", "d"}, {"bcd", "a", "b", "c"}, {"", "", "b", ""},
	} {
		w := &Worker{after: []byte(c.after)}
		for _, name := range []string{"a", "b", "c", "d"} {
			r := &region{KeyRange: store.KeyRange{Start: []byte(name)}, due: later}
			if strings.Contains(c.due, name) {
				r.due = time.Time{}
			}
			r.dead = strings.Contains(c.dead, name)
			w.regions = append(w.regions, r)
		}
		r, next := w.nextDue()
		got := ""
		if r != nil {
			got = string(r.Start)
		}
		if got != c.want || r == nil && !next.Equal(later) {
			t.Errorf("due %q, dead %q, after %q: got %q, the next at %v, want %q, and %v if none is due",
				c.due, c.dead, c.after, got, next, c.want, later)
		}
	}
}

// saveDone saves under a lease that all hours of a region are done, which ended at stop then, and releases it.
func saveDone(w *world, l *lease.Lease, worker *Worker, r *region, stop string) {
	w.Helper()
	sealed, _ := worker.sealed(r)
	state, err := json.Marshal(progress{Stop: key(stop), Done: []span{{0, sealed}}, Oldest: hour, Again: sealed})
	if err != nil {
		w.Fatal(err)
	}
	if err := errors.Join(l.Save(w.Context(), state), l.Release(w.Context())); err != nil {
		w.Fatal(err)
	}
}

// leased is a worker that does not run, with regions by their first keys, on whose leases others work.
func leased(w *world) (worker *Worker, of map[string]*region, take func(name string, from lease.Cells) *lease.Lease) {
	if err := lease.CreateTable(w.Context(), w.st, "state"); err != nil {
		w.Fatal(err)
	}
	worker = New(Config{Store: w.st, Table: "tsdb", Schema: encoding.DefaultSchema(), Margin: margin,
		Leases: &lease.Keeper{Store: w.st, Table: "state", Holder: "this"}})
	of = map[string]*region{}
	for _, name := range []string{"dead", "done", "held", "new", "part"} {
		of[name] = &region{KeyRange: store.KeyRange{Start: []byte(name), Stop: []byte(name + "~")}}
		worker.regions = append(worker.regions, of[name])
	}
	return worker, of, func(name string, from lease.Cells) *lease.Lease {
		k := &lease.Keeper{Store: from, Table: "state", Holder: name}
		l, err := k.Take(w.Context(), compaction.LeaseName("tsdb", []byte(name)))
		if err != nil {
			w.Fatal(err)
		}
		return l
	}
}

// A worker learns by one call which of its regions others hold, have done, or have left by dying. It makes that call
// again when what it knows is old, also in the middle of a region.
func TestWorker_leases(t *testing.T) {
	simulate(t, nil, func(w *world) {
		worker, of, take := leased(w)
		// All hours of two regions are done, but one was as large as a part of it is now.
		for name, stop := range map[string]string{"done": "done~", "part": "part"} {
			saveDone(w, take(name, w.st), worker, of[name], stop)
		}
		hung := &hanging{Store: w.st}
		held, dead := take("held", w.st), take("dead", hung)

		if worker.urgent(w.Context()) {
			w.Error("the holders of all leases live, and there is urgent work")
		}
		began := time.Now()
		for name, r := range of {
			due := time.Time{}
			switch name {
			case "held", "dead":
				due = began.Add(heldWait)
			case "done":
				_, next := worker.sealed(r)
				due = began.Add(next)
			}
			if !r.due.Equal(due) || r.dead || !r.leasesRead.Equal(began) {
				w.Errorf("%s: due at %v, dead %t, lease read at %v, want due at %v, living, read at %v",
					name, r.due, r.dead, r.leasesRead, due, began)
			}
		}
		if got := worker.totals.Read().held; got != 2 {
			w.Errorf("%d leases of others are counted, want 2", got)
		}

		// A region whose lease another has is no longer urgent once it was tried.
		of["held"].dead = true
		worker.piece(w.Context(), of["held"])
		if r := of["held"]; r.dead || !r.due.Equal(began.Add(heldWait)) || !worker.othersAhead ||
			worker.totals.Read().held != 3 {
			w.Errorf("tried, and held by another: dead %t, due at %v, others ahead %t, held %d", r.dead, r.due,
				worker.othersAhead, worker.totals.Read().held)
		}

		hung.kill()
		urgent := 0
		for second := 1; second <= 60; second++ {
			pass(time.Second)
			before := worker.leasesRead
			if worker.urgent(w.Context()) && urgent == 0 {
				urgent = second
			}
			if read := !worker.leasesRead.Equal(before); read != (second%5 == 0) {
				w.Fatalf("leases were read in second %d: %t, want them read every five", second, read)
			}
		}
		if urgent < 30 || !of["dead"].dead || of["held"].dead {
			w.Errorf("urgent after %d s, dead %t and %t, want the work of the dead holder after 45 s and a little",
				urgent, of["dead"].dead, of["held"].dead)
		}
		refused, cancel := context.WithCancel(w.Context())
		cancel()
		worker.leasesRead = time.Time{}
		if worker.urgent(refused) || worker.readLeases(refused, worker.regions) == nil {
			w.Error("leases that cannot be read make urgent work, or no error")
		}
		_ = dead.Release(w.Context()) // its store is dead
		if err := held.Release(w.Context()); err != nil {
			w.Error(err)
		}
	})
}
