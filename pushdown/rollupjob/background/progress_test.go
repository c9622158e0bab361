package background

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
)

// A walk goes over all time from the last sealed hour down to the first row, without a hole; hours
// that are sealed in between come before it continues, and nothing is done twice within a day.
func TestProgress(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		now := int64(1_500_000_000) + rng.Int64N(10*day)
		oldest := now - rng.Int64N(400*day)
		var p progress
		low, passes := int64(-1), 0
		for end := now + 3*day; now < end; {
			sealed := now / grain * grain
			of := p.next(sealed, now)
			if of == nil {
				if !p.Newest.Done || p.Newest.To != sealed || !p.Walk.Done || low > oldest {
					t.Fatalf("nothing to do at %d, the oldest row is at %d: %+v", now, oldest, p)
				}
				now += p.after(sealed, now, 0)
				continue
			}
			if passes++; passes > 1000 {
				t.Fatalf("passes without end: %+v", p)
			}
			switch {
			case !of.walk:
				if of.to != sealed || of.from != sealed-recent {
					t.Fatalf("got %+v at %d", of, now)
				}
			case of.first:
				if low = of.from; of.to < sealed {
					t.Fatalf("the walk begins with %+v at %d", of, now)
				}
				p.saw(oldest)
			default:
				if of.to != low {
					t.Fatalf("got %+v, want it to end at %d", of, low)
				}
				low = of.from
			}
			*of.next = encoding.UID{1, 2, 3}
			p.finish(of)
			now += rng.Int64N(3600)
			text, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			again, err := parseProgress(text)
			if d := cmp.Diff(p, again); d != "" || err != nil {
				t.Fatal(d, err)
			}
		}
	}
}

// After a clock was wrong, work that was done too early is repeated.
func TestProgress_clock(t *testing.T) {
	var p progress
	const later, now = 10 * 365 * day, 365 * day
	for _, at := range []int64{later, now} {
		var ends []int64
		for of := p.next(at, at); of != nil; of = p.next(at, at) {
			ends = append(ends, of.to)
			p.finish(of)
		}
		if want := []int64{at, (at + window - 1) / window * window}; !cmp.Equal(want, ends) {
			t.Errorf("at %d: passes that end at %d, want %d", at, ends, want)
		}
	}
}
