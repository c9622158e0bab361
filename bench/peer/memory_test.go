package peer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/bench/report"
	"downpour/integration/e2e"
)

// held is what go tool pprof -top -unit=B -sample_index=inuse_space writes.
const held = `File: gateway
Type: inuse_space
Active filters:
   show=^downpour/
Showing nodes accounting for 170247802B, 96.32% of 176754191B total
Dropped 35 nodes (cum <= 883770B)
      flat  flat%   sum%        cum   cum%
 55081832B 31.16% 31.16%  55081832B 31.16%  downpour/encoding/batch.Encode
  5160674B  2.92% 95.35%   5160674B  2.92%  downpour/gateway/query/merge.(*slab[go.shape.struct { a []string; b int }]).take (inline)
         0     0% 96.32%  59575281B 33.71%  downpour/gateway/query/merge.(*aggregation).group
`

func TestParseHeld(t *testing.T) {
	got, sum, err := parseHeld(held)
	want := []report.Share{
		{Name: "downpour/encoding/batch.Encode", Bytes: 55081832},
		{Name: "downpour/gateway/query/merge.(*slab[…]).take (inline)", Bytes: 5160674},
	}
	if d := cmp.Diff(want, got); err != nil || sum != 176754191 || d != "" {
		t.Errorf("sum %d, want 176754191; error %v; -want +got\n%s", sum, err, d)
	}
	for text, want := range map[string]string{
		"": "want a table", strings.Replace(held, "55081832B", "many", 1): `line "many 31.16%`, strings.Replace(held, "B total", " total", 1): "want a total in bytes",
	} {
		if _, _, err := parseHeld(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// The parts add up to the resident memory, but the rest is never below 0.
func TestResidentParts(t *testing.T) {
	const stats = "heap profile: 1: 2 [3: 4] @ heap/1048576\n\n# runtime.MemStats\n# Alloc = 1\n# Sys = 120\n# HeapSys = 100\n# HeapIdle = 40\n# HeapInuse = 60\n# HeapReleased = 10\n"
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
	if _, err := residentParts(e2e.Memory{}, strings.Replace(stats, "HeapInuse = 60", "HeapInuse", 1)); err == nil || !strings.Contains(err.Error(), "HeapInuse: got") {
		t.Errorf("error %v, want HeapInuse named", err)
	}
}
