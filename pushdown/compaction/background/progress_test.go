package background

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

const hour = encoding.RowSeconds

// TestProgress: whenever hours are sealed and however often the work is interrupted, each hour with
// rows is done once, newer ones first, and read a second time once; then nothing is left.
func TestProgress(t *testing.T) {
	seed := seedtest.Of(t)
	for round := range 500 {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		start := int64(1_700_000_000 / hour * hour)
		oldest := start - rng.Int64N(200)*hour
		sealed, end := start, start+rng.Int64N(100)*hour
		done, again := map[int64]int{}, map[int64]int{}
		var p progress
		first := int64(0) // what was sealed when the work began
		for steps := 0; ; steps++ {
			if steps > 5000 {
				t.Fatalf("round %d: no end: %+v", round, p)
			}
			if rng.IntN(3) == 0 {
				sealed = min(end, sealed+rng.Int64N(3)*hour)
			}
			begun := p.Work != nil
			w := p.next(sealed)
			if first == 0 {
				first = sealed
			}
			if w == nil {
				if sealed == end {
					break
				}
				sealed = min(end, sealed+hour)
				continue
			}
			if w.From >= w.To || w.To > sealed || w.From%hour != 0 || w.To%hour != 0 {
				t.Fatalf("round %d: interval %+v, sealed %d", round, w, sealed)
			}
			if newest := sealed - hour; !begun && done[newest] == 0 && w.To != sealed {
				t.Fatalf("round %d: interval %+v comes before the newest hour %d: %+v", round, w, newest, p)
			}
			if rng.IntN(3) == 0 { // cut, and read again
				state, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				q, err := parseProgress(state)
				if d := cmp.Diff(p, q, cmp.AllowUnexported(progress{}, work{})); d != "" || err != nil {
					t.Fatalf("round %d: read again: %v, %s", round, err, d)
				}
				p = q
				continue
			}
			for h := w.From; h < w.To; h += hour {
				if w.Second {
					again[h]++
				} else {
					done[h]++
				}
				if h >= oldest {
					w.Rows++
				}
			}
			w.Oldest = oldest
			p.finish()
		}
		for h := oldest; h < end; h += hour {
			if done[h] != 1 {
				t.Fatalf("round %d: hour %d is done %d times: %+v", round, h, done[h], p)
			}
			if want := h >= first && h < end-secondLook; (again[h] == 1) != want || again[h] > 1 {
				t.Fatalf("round %d: hour %d is read %d times more, want %v: %+v", round, h, again[h], want, p)
			}
		}
		if len(p.Done) != 1 {
			t.Fatalf("round %d: %+v, want one interval", round, p)
		}
	}
}

// TestProgress_empty: hours without rows are passed in growing steps, and a region
// without rows has no older hours.
func TestProgress_empty(t *testing.T) {
	start := int64(1_700_000_000 / hour * hour)
	var p progress
	steps := 0
	for ; p.next(start) != nil; steps++ {
		p.Work.Oldest = 300_000_000 / hour * hour // 1979
		p.finish()
	}
	if steps > 70 {
		t.Errorf("%d intervals, want far fewer than there are hours", steps)
	}

	// A step is twice as long as the one before, and as short as at first after one with rows.
	p = progress{}
	var got []int64
	for _, rows := range []int64{1, 0, 0, 0, 1, 0} {
		w := p.next(start)
		got = append(got, (w.To-w.From)/hour)
		w.Oldest, w.Rows = 300_000_000/hour*hour, rows
		p.finish()
	}
	if want := []int64{6, 6, 12, 24, 48, 6}; !slices.Equal(got, want) {
		t.Errorf("steps of %d hours, want %d", got, want)
	}

	p = progress{}
	p.next(start).Oldest = math.MaxInt64
	p.finish()
	if w := p.next(start); w != nil {
		t.Errorf("an empty region has %+v to do", w)
	}
	if w := p.next(start + hour); w == nil || w.From != start {
		t.Errorf("the next hour: %+v", w)
	}
}

// TestProgress_fit: what is done holds for a part of the region, and not for more.
func TestProgress_fit(t *testing.T) {
	made := func() progress { return progress{Stop: key("m"), Done: []span{{hour, 2 * hour}}, Again: hour} }
	for stop, kept := range map[string]bool{"m": true, "k": true, "n": false, "": false} {
		p := made()
		p.fit([]byte(stop))
		if (len(p.Done) > 0) != kept || string(p.Stop) != stop {
			t.Errorf("stop %q: %+v, kept %v", stop, p, kept)
		}
	}
	p := made()
	p.Stop = nil // the table's end
	p.fit([]byte("z"))
	if len(p.Done) == 0 {
		t.Error("the table's end is beyond every key")
	}

	for _, state := range []string{"{", `{"stop":"6x"}`} {
		if _, err := parseProgress([]byte(state)); err == nil {
			t.Errorf("a damaged state is read: %s", state)
		}
	}
}

// A part of a region begins with the progress of the region, unless it has its own.
func TestRegion_progressOf(t *testing.T) {
	parent := progress{Stop: key("z"), Done: []span{{10 * hour, 20 * hour}}, Oldest: 7, Work: &work{At: key("y")}}
	for state, want := range map[string]progress{
		"": parent,
		`{"stop":"6d","done":[],"oldest":5,"work":{"from":36000,"to":39600}}`:      {Oldest: 5},
		`{"stop":"6d","done":[{"from":36000,"to":39600}],"oldest":5,"again":3600}`: {Oldest: 5, Again: hour},
	} {
		r := region{KeyRange: store.KeyRange{Stop: []byte("m")}, parent: &parent}
		got, err := r.progressOf([]byte(state))
		if err != nil || got.Oldest != want.Oldest || got.Again != want.Again || string(got.Stop) != "m" ||
			r.parent != nil || state == "" && got.Work != nil {
			t.Errorf("state %s: got %+v, %v, want %+v", state, got, err, want)
		}
		for i := range got.Done {
			got.Done[i] = span{}
		}
		if parent.Done[0].From != 10*hour {
			t.Errorf("state %s: the hours of a part are those of the other, too", state)
		}
	}
}

// Regions are looked at in turn, a few at a time, from the one after the last on.
func TestWorker_unseen(t *testing.T) {
	w := &Worker{}
	for _, start := range []string{"", "b", "c", "d", "e"} {
		w.regions = append(w.regions, &region{KeyRange: store.KeyRange{Start: []byte(start)}})
	}
	w.regions[2].due = time.Now().Add(time.Hour)
	w.now = w.regions[4]
	var got []string
	var last []byte
	for range 4 {
		var due []*region
		due, last = w.unseen(last, 2)
		for _, r := range due {
			got = append(got, string(r.Start))
		}
	}
	if want := []string{"b", "d", "", "b", "d", "", "b", "d"}; !slices.Equal(got, want) {
		t.Errorf("got the regions %q, want %q", got, want)
	}
}
