package live

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/pushdown/process/heap/heaptest"
)

// The bytes that the hub counts are between half of and twice what the heap holds, for answers with
// their history as for messages that slow subscribers hold.
func TestHeld(t *testing.T) {
	const groups, points, ticks = 20, 4000, 20
	f := func(name string, subscribers int, slow bool, format func(*Update), part func(Held) int64) {
		t.Helper()
		before := heaptest.InUse()
		h := blockedHub()
		defer h.Close()
		var subs []*Subscription
		for range subscribers {
			s, err := h.Subscribe(Request{Query: json.RawMessage(`{"start":"1h-ago","msResolution":true}`)}, func() {})
			if err != nil {
				t.Fatal(err)
			}
			subs = append(subs, s)
		}
		sending := make([]*Update, subscribers) // held as by sockets that are sending them
		for tick := range ticks {
			a := Answer{}
			for g := range groups {
				r := Result{Metric: "m", Tags: map[string]string{"host": fmt.Sprint("host-", g)}}
				for i := range points {
					r.Points.Append(int64(1_700_000_000_000+i), encoding.IntValue(int64(i)))
				}
				for i := range 5 { // points that change at each tick
					r.Points.Append(int64(1_700_000_100_000+i), encoding.IntValue(int64(tick)))
				}
				a.Results = append(a.Results, r)
			}
			subs[0].evaluator.publish(context.Background(), a, nil)
			for i, s := range subs {
				// A slow subscriber takes one message, each at another tick.
				if !slow || tick == i {
					if u := s.Next(); u != nil {
						format(u)
						sending[i] = u
					}
				}
			}
		}
		subs[0].evaluator.publish(context.Background(), Answer{Results: []Result{}, Kept: map[int]bool{0: true}}, nil)
		held, real := h.Held(), heaptest.InUse()-before

		if sum := held.Total(); sum < real/2 || sum > 2*real {
			t.Errorf("%s: counted %d KiB, %+v; the heap grew by %d KiB", name, sum>>10, held, real>>10)
		}
		if part(held) < held.Total()/4 {
			t.Errorf("%s: got %+v, want a quarter or more in the part of this case", name, held)
		}
		if stats := h.Stats(); stats.Bytes != held.Total() {
			t.Errorf("%s: Stats has %d bytes, Held %+v: want equal sums", name, stats.Bytes, held)
		}
		runtime.KeepAlive(sending)
		runtime.KeepAlive(subs)
		for _, s := range subs {
			s.Close()
		}
	}
	asJSON := func(u *Update) { u.JSON() }
	f("one reader", 1, false, asJSON, func(h Held) int64 { return h.Answer })
	f("many readers share", 100, false, asJSON, func(h Held) int64 { return h.Answer })
	f("Arrow", 3, false, func(u *Update) { u.Arrow() }, func(h Held) int64 { return h.Answer })
	f("slow ones with a snapshot each", 15, true, asJSON, func(h Held) int64 { return h.Sending })
	f("a snapshot not encoded yet", 1, true, func(*Update) {}, func(h Held) int64 { return h.Answer })
}

// A query that has ended is no longer counted.
func TestHeld_left(t *testing.T) {
	h := blockedHub()
	defer h.Close()
	var subs []*Subscription
	for i := range 3 {
		s, err := h.Subscribe(Request{Query: json.RawMessage(fmt.Sprintf(`{"start":"%dh-ago"}`, i+1))}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		s.evaluator.publish(context.Background(), Answer{Results: []Result{{Metric: "m"}}}, nil)
		subs = append(subs, s)
	}
	all := h.Held()
	if all.Answer < 3*groupBytes || all.Sending != 3*subBytes {
		t.Errorf("three queries hold %+v", all)
	}
	refusal := &Error{Code: 400}
	subs[0].evaluator.publish(context.Background(), Answer{}, refusal) // an error that ends the query
	if got := h.Held(); got.Total() >= all.Total() {
		t.Errorf("two queries hold %+v, want less than three held, %+v", got, all)
	}
	h.Close()
	if got := h.Held(); got != (Held{}) {
		t.Errorf("after Close %+v is held, want nothing", got)
	}
}

// changing returns an answer of so many points, which all change at each tick.
func changing(points, tick int) Answer {
	r := Result{Metric: "m"}
	for i := range points {
		r.Points.Append(int64(1_700_000_000_000+i), encoding.IntValue(int64(1000*tick+i%10)))
	}
	return Answer{Results: []Result{r}}
}

func join(t *testing.T, h *Hub, cut func()) *Subscription {
	t.Helper()
	s, err := h.Subscribe(Request{Query: json.RawMessage(`{"start":"1h-ago","msResolution":true}`), Cut: cut},
		func() {})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Subscribers that are equally far behind share one merged message. It is a delta, or a snapshot
// if a delta would be hardly shorter.
func TestMerged_shared(t *testing.T) {
	f := func(points int, kind Kind) {
		t.Helper()
		h := blockedHub()
		defer h.Close()
		a, b, c := join(t, h, nil), join(t, h, nil), join(t, h, nil)
		e := a.evaluator
		publish := func(tick int) { e.publish(context.Background(), changing(points, tick), nil) }
		publish(0)
		a.Next()
		b.Next()
		publish(1)
		c.Next()
		publish(2)
		publish(3)
		first, second, other := a.Next(), b.Next(), c.Next()
		if first != second || first.Kind != kind || !first.merged {
			t.Errorf("%d points: got a %s and a %s, want one %s for both", points, first.Kind, second.Kind, kind)
		}
		if kind == KindDelta && other == first {
			t.Error("a subscriber that is less behind gets the same message, want another")
		}
		publish(4)
		if u := a.Next(); u.Kind != KindDelta || u == first {
			t.Errorf("afterwards a %s, want the next delta", u.Kind)
		}
	}
	f(100, KindDelta)
	f(2*historyPoints, KindSnapshot)
}

// The bytes of messages on their way to slow subscribers are bounded. Beyond the bound those are
// cut whose message is oldest, and none that keeps up.
func TestCut(t *testing.T) {
	const points, slow = 10_000, 20
	h := blockedHub()
	defer h.Close()
	h.cfg.MaxSending = 5 * (textPointBytes + pointBytes) * points
	var cut []int
	fast := join(t, h, func() { cut = append(cut, -1) })
	shared := join(t, h, func() { cut = append(cut, -2) })
	var held []*Update
	for tick := range slow {
		s := join(t, h, func() { cut = append(cut, tick) })
		fast.evaluator.publish(context.Background(), changing(points, tick), nil)
		held = append(held, s.Next()) // and takes none after that
		if tick == 0 {
			held = append(held, shared.Next())
		}
		fast.Next().JSON()
		fast.Next()
		if sum := h.Held(); sum.Sending > h.cfg.MaxSending {
			t.Errorf("tick %d: %+v is on its way, at most %d wanted", tick, sum, h.cfg.MaxSending)
		}
	}
	if len(cut) < slow-6 || len(cut) > slow-3 {
		t.Errorf("%d of %d were cut: %v; want 14 to 17", len(cut), slow+1, cut)
	}
	slices.Sort(cut)
	want := []int{-2}
	for i := range len(cut) - 1 {
		want = append(want, i)
	}
	if diff := cmp.Diff(want, cut); diff != "" {
		t.Errorf("want those cut that have waited longest; want -, got +: %s", diff)
	}
	runtime.KeepAlive(held)
}

// No subscriber is cut if that would free nothing: neither one whose message is the newest, nor one
// whose message the history holds as well.
func TestCut_inVain(t *testing.T) {
	h := blockedHub()
	defer h.Close()
	h.cfg.MaxSending = 1
	cut := func() { t.Error("a subscriber was cut") }
	behind := join(t, h, cut)
	publish := func(tick int) { behind.evaluator.publish(context.Background(), changing(100, tick), nil) }
	publish(0)
	behind.Next()
	publish(1)
	if u := behind.Next(); u.Kind != KindDelta {
		t.Fatalf("got a %s, want a delta", u.Kind)
	}
	for tick := range historyPoints/100 - 3 {
		visitor := join(t, h, cut)
		visitor.Next()
		publish(2 + tick)
		visitor.Close()
	}

	slow, cuts := join(t, h, func() {}), 0
	slow.cut = func() { cuts++ }
	slow.Next()
	publish(-1)
	publish(-2)
	if cuts != 1 {
		t.Errorf("a subscriber with a message of two ticks ago was cut %d times, want once", cuts)
	}
}
