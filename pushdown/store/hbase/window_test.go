package hbase

import (
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

	if w.size != maxWindow {
		t.Errorf("a window of %d after 20 accepted calls, want %d", w.size, maxWindow)
	}
	w.shrinkLost()
	if w.size != maxWindow/2 {
		t.Errorf("a window of %d after a lost call, want half of %d", w.size, maxWindow)
	}
	w.grow(w.size/2 - 1)
	if w.size != maxWindow/2 {
		t.Errorf("a window of %d after a call that did not fill it, want it as it was", w.size)
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

		resolved := p.abandoned(call)
		state(errWritePending)
		time.Sleep(time.Hour)
		state(errWritePending)
		resolved()
		state(nil)
	})
}
