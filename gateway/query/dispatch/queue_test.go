package dispatch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// Parts wait for their places, in order, until they have room; those of other places do not wait for them. When the
// servers change, all parts get a new place.
func TestQueue(t *testing.T) {
	var q queue
	now := time.Unix(1000, 0)
	a, b, c := &place{}, &place{}, &place{}
	at := []*place{a, b, a, a, b, c}
	for turn := range at {
		p := &pendingPart{turn: turn}
		if turn == 5 {
			p.notBefore = now.Add(time.Second)
		}
		q.add(p)
	}
	choose := func(p *pendingPart) *place { return at[p.turn] }
	room := map[*place]int{a: 1, b: 5, c: 5}
	start := func() (turns []int) {
		for {
			p, at := q.take(func(at *place) bool { return room[at] > 0 })
			if p == nil {
				return turns
			}
			room[at]--
			turns = append(turns, p.turn)
		}
	}
	f := func(what string, want ...int) {
		t.Helper()
		if diff := cmp.Diff(want, start()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	one := newPlacement()
	q.place(one, now, choose)
	f("a has room for one", 0, 1, 4)
	room[a]++
	q.freed(b)
	f("b has no parts")
	q.freed(a)
	f("a has room again", 2)
	if d, ok := q.nextPauseEnd(now); d != time.Second || !ok {
		t.Errorf("the pause ends in %v, %t, want 1s", d, ok)
	}
	if d, ok := q.nextPauseEnd(now.Add(2 * time.Second)); d != 0 || !ok {
		t.Errorf("a pause that is over ends in %v, %t, want at once", d, ok)
	}

	q.place(one, now, choose)
	f("nothing has changed")
	q.place(one, now.Add(time.Second), choose)
	f("the pause is over", 5)
	if _, ok := q.nextPauseEnd(now); ok {
		t.Error("a part pauses, want none")
	}
	at[3] = b
	q.place(one, now, choose)
	f("the servers are the same")
	q.place(newPlacement(), now, choose)
	f("the servers are other ones", 3)
	if left := q.waiting(); len(left) != 0 {
		t.Errorf("%d parts wait, want none", len(left))
	}
}

// Parts that wait are listed by their turns, wherever each waits, and the first pause that ends is the one to wait for.
func TestQueue_waiting(t *testing.T) {
	now := time.Unix(1000, 0)
	a, b := &place{}, &place{}
	var q queue
	for _, turn := range []int{4, 0, 3, 1, 5, 2, 6} {
		p := &pendingPart{turn: turn}
		if turn > 3 {
			p.notBefore = now.Add([]time.Duration{5, 3, 4}[turn-4] * time.Second)
		}
		q.add(p)
	}
	check := func(what string) {
		t.Helper()
		for turn, p := range q.waiting() {
			if p.turn != turn {
				t.Errorf("%s: part %d is number %d of %d", what, p.turn, turn, len(q.waiting()))
			}
		}
	}
	check("without places")
	q.place(newPlacement(), now, func(p *pendingPart) *place { return []*place{a, b}[p.turn%2] })
	check("at their places, and in pauses")
	if d, ok := q.nextPauseEnd(now); d != 3*time.Second || !ok {
		t.Errorf("the first pause ends in %v, %v, want 3 s", d, ok)
	}
	if n := len(q.waiting()); n != 7 {
		t.Errorf("%d parts wait, want 7", n)
	}
}

// The order of candidates is by how close servers are, and within that by turns.
func TestPlacement_candidates(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedtest.Of(t), 0))
	hosts := []string{"", "a:1", "a:2", "b:1", "b:2", "nothing", "c:1"}
	closeness := func(server, rows string) int {
		switch {
		case server == "" || rows == "":
			return 0
		case server == rows:
			return 2
		case len(server) == 3 && len(rows) == 3 && server[0] == rows[0]:
			return 1
		}
		return 0
	}
	for range 300 {
		l := newPlacement()
		var next []string
		for range rng.IntN(8) {
			next = append(next, pick(rng, hosts...))
			l.add(&place{}, next[len(next)-1])
		}
		rows, turn := pick(rng, hosts...), rng.IntN(20)
		var want []*place
		for _, how := range []int{2, 1, 0} {
			for k := range next {
				if i := (turn + k) % len(next); closeness(next[i], rows) == how {
					want = append(want, l.places[i])
				}
			}
		}
		if got := slices.Collect(l.candidates(rows, turn)); !slices.Equal(got, want) {
			t.Fatalf("servers next to %q, rows of %q, turn %d: places %p, want %p", next, rows, turn, got, want)
		}
		if got := l.closest(rows, turn); len(want) > 0 && got != want[0] || len(want) == 0 && got != nil {
			t.Fatalf("servers next to %q, rows of %q, turn %d: the closest is %p, want the first of %p", next, rows,
				turn, got, want)
		}
	}
}

// Regions are found by a search, as a look at each of them would find them.
func TestOverlapping_law(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedtest.Of(t), 0))
	key := func() []byte { return []byte(fmt.Sprintf("%02d", rng.IntN(40)))[:rng.IntN(3)] }
	for range 1000 {
		var regions []store.Region
		var start []byte
		for i := range rng.IntN(6) + 1 {
			stop := []byte(fmt.Sprintf("%02d", 6*i+rng.IntN(6)))
			if bytes.Compare(stop, start) > 0 && rng.IntN(6) > 0 { // else a region is missing
				regions = append(regions, store.Region{Start: start, Stop: stop, Server: string(stop)})
			}
			start = stop
		}
		if rng.IntN(2) == 0 {
			regions = append(regions, store.Region{Start: start, Server: "last"})
		}

		from, to := key(), key()
		var want []store.Region
		for _, r := range regions {
			reaches := len(r.Stop) == 0 || bytes.Compare(r.Stop, from) > 0
			if reaches && (len(to) == 0 || bytes.Compare(r.Start, to) < 0) {
				want = append(want, r)
			}
		}
		got := overlapping(regions, from, to)
		if len(to) > 0 && bytes.Compare(from, to) >= 0 {
			continue // no plan has such a range
		}
		if len(got)+len(want) > 0 && !cmp.Equal(got, want) {
			t.Fatalf("[%q, %q) of %q: %q, want %q", from, to, regions, got, want)
		}
		holder := ""
		for _, r := range regions {
			if (store.KeyRange{Start: r.Start, Stop: r.Stop}).Contains(from) {
				holder = r.Server
			}
		}
		if got := regionServer(regions, from); got != holder {
			t.Fatalf("%q of %q is at %q, want %q", from, regions, got, holder)
		}
	}
}
