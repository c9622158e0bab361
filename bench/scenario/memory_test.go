package scenario

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/bench/peer"
	"downpour/bench/report"
)

// hoarded holds the memory that hoard makes; wasted holds that of waste only while waste runs.
var hoarded, wasted [][]byte

//go:noinline
func hoard() {
	for range 32 {
		hoarded = append(hoarded, make([]byte, 1<<20))
	}
}

//go:noinline
func waste() {
	for range 64 {
		wasted = append(wasted[:0], make([]byte, 1<<20))
	}
	wasted = nil
}

// mostHeld names the function whose memory is still held, not one whose memory is garbage, and of
// several heap profiles it takes the one that holds most.
func TestMostHeld(t *testing.T) {
	server := profiledServer(t)
	var heaps []peer.Heap
	look := func() error {
		h, err := server.Heap(t.Context())
		heaps = append(heaps, h)
		return err
	}
	for _, do := range []func(){waste, hoard, func() { hoarded = nil }} {
		do()
		if err := look(); err != nil {
			t.Fatal(err)
		}
	}
	all, err := mostHeld(heaps)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) int64 {
		i := slices.IndexFunc(all, func(s report.Share) bool {
			return strings.HasSuffix(s.Name, "bench/scenario."+name)
		})
		if i < 0 {
			return 0
		}
		return all[i].Bytes
	}
	if of("hoard") < 16<<20 || of("waste") > 8<<20 {
		t.Errorf("hoard holds %d bytes, waste %d; want some 32 MiB and nothing: %+v", of("hoard"), of("waste"), all)
	}
}

// Resident divides the memory of a server by what the Go runtime that serves its profile says.
func TestResident(t *testing.T) {
	server := profiledServer(t)
	hoard()
	bytes, parts, err := server.Resident(t.Context())
	runtime.KeepAlive(hoarded)
	hoarded = nil
	if err != nil || bytes <= 0 || len(parts) != 5 || parts[0].Bytes < 32<<20 {
		t.Errorf("%d bytes, %v, %v; want some, and 32 MiB of heap in use", bytes, parts, err)
	}
}

// observe looks while something runs and once afterwards. It returns the error of what runs, or
// else that of a look.
func TestWatched(t *testing.T) {
	looks, enough := 0, make(chan struct{})
	err := observe(func() error { <-enough; return nil }, time.Microsecond, func() error {
		if looks++; looks == 3 {
			close(enough)
		}
		return nil
	})
	if err != nil || looks < 4 {
		t.Errorf("%d looks, %v; want three and one afterwards", looks, err)
	}
	dead, blind := errors.New("dead"), errors.New("blind")
	if err := observe(func() error { return dead }, time.Hour, func() error { return blind }); err != dead {
		t.Errorf("what is watched fails: error %v, want its own", err)
	}
	if err := observe(func() error { return nil }, time.Hour, func() error { return blind }); err != blind {
		t.Errorf("a look fails: error %v, want its own", err)
	}
}

// The larger data set has ten times the points, whatever the step.
func TestMemorySteps(t *testing.T) {
	for step, want := range map[int][2]int{
		10: {10, 1}, 60: {60, 6}, 1: {10, 1}, 15: {10, 1}, 72: {60, 6}, 3600: {3600, 360},
	} {
		if got := memorySteps(step); got != want {
			t.Errorf("step %d: got %v, want %v", step, got, want)
		}
	}
}
