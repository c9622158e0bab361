package hbase

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store/hbase/regions"
)

// A region refuses writes at random times, for random durations: at most a quarter as
// many mutations are refused as are accepted in between, and the window is full again
// after some calls.
func TestWindow(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	w := newWindow()
	vain, accepted := 0, 0
	for range 1000 {
		for range 1 + rng.IntN(10) { // it refuses
			vain += w.size
			w.shrinkRefused()
			if w.size != 1 {
				t.Fatalf("a window of %d after a refusal, want 1", w.size)
			}
		}
		for range 10 + rng.IntN(30) {
			accepted += w.size
			w.grow(w.size)
			if w.size > maxWindow || w.bytes() > maxOutBytes {
				t.Fatalf("a window of %d and %d bytes, want at most %d and %d", w.size, w.bytes(), maxWindow,
					maxOutBytes)
			}
		}
	}

	if vain > accepted/4 {
		t.Errorf("%d sent in vain while %d were accepted, want at most a quarter", vain, accepted)
	}

	for range 20 {
		w.grow(w.size)
	}

	if b := w.bytes(); b < maxOutBytes*9/10 {
		t.Errorf("a full window of %d bytes, want about %d", b, maxOutBytes)
	}
	if w.size != maxWindow {
		t.Errorf("a window of %d after 20 accepted calls, want %d", w.size, maxWindow)
	}
	w.shrinkLost()
	if w.size != maxWindow/2 || w.threshold != w.size {
		t.Errorf("%+v after a lost call, want half of %d", w, maxWindow)
	}
	w.grow(w.size/2 - 1)
	if w.size != maxWindow/2 {
		t.Errorf("a window of %d after a call that did not fill it, want it as it was", w.size)
	}
	w.grow(w.size / 2)
	if w.size != maxWindow/2+windowStep {
		t.Errorf("a window of %d after a call that filled half of it, want a step more", w.size)
	}
}

// A region that refuses writes gets one call at a time, after longer and longer
// delays. Calls that met the same fault count once.
func TestPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pacer{}
		call := []*regionBatch{{loc: &regions.Location{Name: []byte("r")}}}
		region := call[0].loc.Name
		state := func(want error) {
			t.Helper()
			if w, err := p.window(region); err != want {
				t.Fatalf("got %+v, %v, want %v", w, err, want)
			}
		}
		state(nil)
		sent := time.Now()
		time.Sleep(time.Second)
		p.refused(region, sent)
		p.refused(region, sent) // of another writer
		if at := p.regions["r"]; at.delay != regions.FirstBusyDelay || at.threshold != initialWindow/2 {
			t.Fatalf("%+v, want one refusal to count", at)
		}
		for delay := regions.FirstBusyDelay; delay <= regions.LastBusyDelay; delay *= 2 {
			state(regions.ErrRegionBusy)
			if at := p.regions["r"]; at.delay != delay || at.threshold != initialWindow/2 {
				t.Fatalf("%+v, want a delay of %v and the first threshold", at, delay)
			}
			time.Sleep(delay)
			state(nil)
			p.callStarted(call)
			state(regions.ErrRegionBusy) // one is on its way
			p.refused(region, time.Now())
			p.callEnded(call)
		}
		time.Sleep(regions.LastBusyDelay)
		state(nil)
		p.accepted(region, 1)
		p.callStarted(call)
		state(nil)
		p.callEnded(call)

		sent = time.Now()
		before := p.regions["r"].size
		time.Sleep(time.Second)
		p.lost(region, sent)
		p.lost(region, sent) // of another writer
		if at := p.regions["r"]; at.size != before/2 {
			t.Fatalf("%+v, want half of %d after two calls that met one fault", at, before)
		}

		resolved := p.abandoned(call)
		state(errWritePending)
		time.Sleep(time.Hour)
		state(errWritePending)
		resolved()
		state(nil)
	})
}

// The paces of regions without a call are forgotten once there are too many. Those of others stay, and so does what is
// known of one region when another one comes.
func TestPacer_forgets(t *testing.T) {
	p := &pacer{}
	batch := func(name string) []*regionBatch {
		return []*regionBatch{{loc: &regions.Location{Name: []byte(name)}}}
	}
	p.lost([]byte("lost"), time.Now())
	p.callStarted(batch("called"))
	resolved := p.abandoned(batch("abandoned"))
	if w, _ := p.window([]byte("lost")); w.size != initialWindow/2 {
		t.Errorf("a window of %d after a call was lost, and others came, want %d", w.size, initialWindow/2)
	}
	for i := range maxPaces + 1 {
		if _, err := p.window(fmt.Append(nil, i)); err != nil || len(p.regions) > maxPaces {
			t.Fatalf("region %d: %v, %d paces, want %d at most", i, err, len(p.regions), maxPaces)
		}
	}
	if _, err := p.window([]byte("abandoned")); err != errWritePending || p.regions["called"].inFlight != 1 ||
		p.regions["lost"] != nil {
		t.Errorf("%v, %+v, %+v, want those of calls alone to be known", err, p.regions["called"], p.regions["lost"])
	}
	resolved()
	if _, err := p.window([]byte("abandoned")); err != nil {
		t.Errorf("resolved: %v", err)
	}
}
