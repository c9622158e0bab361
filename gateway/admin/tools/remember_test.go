package tools

import (
	"fmt"
	"strings"
	"testing"
)

// What an export remembers of series is bounded by bytes.
func TestExporter_bytes(t *testing.T) {
	x := &exporter{series: map[string]seriesText{}}
	text := strings.Repeat("x", 100<<10)
	for i := range 2000 {
		tags := fmt.Appendf(nil, "%06d", i)
		x.remember(tags, seriesText{text: text})
		if _, ok := x.series[string(tags)]; !ok || x.bytes > describedBytes || len(x.series)*len(text) > x.bytes {
			t.Fatalf("after %d series: %d of %d bytes are remembered, this one %t", i, len(x.series), x.bytes, ok)
		}
	}
}
