//go:build cgo && linux

package pebble

import (
	"os"
	"runtime"
	"testing"

	"downpour/pushdown/store/pebble/arenatest"
)

// However many threads pebble's memory is asked for from, it comes from few
// arenas: what one thread has freed serves the others.
func TestFewArenas(t *testing.T) {
	if os.Getenv("MALLOC_ARENA_MAX")+os.Getenv("GLIBC_TUNABLES") != "" {
		return // whoever runs the test has chosen
	}
	want := max(1, runtime.NumCPU()/8)
	if got := arenatest.Arenas(8 + 2*want); got < 1 || got > want {
		t.Errorf("%d arenas of malloc, want 1 to %d", got, want)
	}
}
