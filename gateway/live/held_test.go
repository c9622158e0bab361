package live

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"downpour/encoding"
)

func heapNow() int64 {
	runtime.GC()
	runtime.GC() // what ended while the first one ran is garbage now
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What is told to be held is what is held, or twice or half of that: the answer,
// the history, and what is on its way to slow subscribers.
func TestHeld(t *testing.T) {
	const groups, points, ticks = 50, 4000, 40
	f := func(name string, subscribers int, slow bool, format func(*Update), part func(Held) int64) {
		t.Helper()
		before := heapNow()
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
		sending := make([]*Update, subscribers) // as sockets hold them
		for tick := range ticks {
			a := Answer{}
			for g := range groups {
				r := Result{Metric: "m", Tags: map[string]string{"host": fmt.Sprint("host-", g)}}
				for i := range points {
					r.Points.Append(int64(1_700_000_000_000+i), encoding.IntValue(int64(i)))
				}
				for i := range 5 { // that change
					r.Points.Append(int64(1_700_000_100_000+i), encoding.IntValue(int64(tick)))
				}
				a.Results = append(a.Results, r)
			}
			subs[0].evaluator.publish(context.Background(), a, nil)
			for i, s := range subs {
				// A slow one asks once, at a tick of its own.
				if !slow || tick == i {
					if u := s.Next(); u != nil {
						format(u)
						sending[i] = u
					}
				}
			}
		}
		subs[0].evaluator.publish(context.Background(), Answer{Results: []Result{}, Kept: map[int]bool{0: true}}, nil)
		held, real := h.Held(), heapNow()-before
		t.Logf("%s: %+v, the heap grew by %d", name, held, real)
		if sum := held.Total(); sum < real/2 || sum > 2*real {
			t.Errorf("%s: told %d KiB, %+v; the heap grew by %d KiB", name, sum>>10, held, real>>10)
		}
		if part(held) < held.Total()/4 {
			t.Errorf("%s: %+v", name, held)
		}
		if stats := h.Stats(); stats.Bytes != held.Total() {
			t.Errorf("%s: Stats tells %d, %+v", name, stats.Bytes, held)
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
	f("slow ones with a snapshot each", 30, true, asJSON, func(h Held) int64 { return h.Sending })
	f("a snapshot not encoded yet", 1, true, func(*Update) {}, func(h Held) int64 { return h.Answer })
}

// Whoever leaves leaves nothing in the sum.
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
	subs[0].evaluator.publish(context.Background(), Answer{}, refusal) // its end
	if got := h.Held(); got.Total() >= all.Total() {
		t.Errorf("two queries hold %+v, three held %+v", got, all)
	}
	h.Close()
	if got := h.Held(); got != (Held{}) {
		t.Errorf("none holds %+v", got)
	}
}
