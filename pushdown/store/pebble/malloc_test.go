//go:build cgo && linux

package pebble

import (
	"runtime"
	"testing"

	"downpour/pushdown/store/pebble/arenatest"
)

// However many threads allocate pebble's memory, it comes from few of malloc's arenas, so that
// what one thread has freed serves the others.
func TestFewArenas(t *testing.T) {
	want := max(1, runtime.NumCPU()/8)
	if got := arenatest.Arenas(8 + 2*want); got < 1 || got > want {
		t.Errorf("%d arenas of malloc, want 1 to %d, unless MALLOC_ARENA_MAX is set", got, want)
	}
}
