package peer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/e2e"
)

// The parts add up to the resident memory, but the rest is never below 0.
func TestResidentParts(t *testing.T) {
	const stats = "heap profile: 1: 2 [3: 4] @ heap/1048576\n\n# runtime.MemStats\n# Alloc = 1\n# Sys = 120\n" +
		"# HeapSys = 100\n# HeapIdle = 40\n# HeapInuse = 60\n# HeapReleased = 10\n"
	for resident, rest := range map[int64]int64{200: 55, 100: 0} {
		got, err := residentParts(e2e.Memory{Resident: resident, File: 35}, stats)
		var bytes []int64
		for _, s := range got {
			bytes = append(bytes, s.Bytes)
		}
		if d := cmp.Diff([]int64{60, 30, 20, rest, 35}, bytes); err != nil || d != "" {
			t.Errorf("%d resident: %v, -want +got\n%s", resident, err, d)
		}
	}
	if _, err := residentParts(e2e.Memory{}, strings.Replace(stats, "HeapInuse = 60", "HeapInuse", 1)); err == nil ||
		!strings.Contains(err.Error(), "HeapInuse: got") {
		t.Errorf("error %v, want HeapInuse named", err)
	}
}
