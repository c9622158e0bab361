package tools

import (
	"fmt"
	"strings"
	"testing"
)

// What an export keeps of series in memory is bounded by bytes.
func TestExporter_bytes(t *testing.T) {
	x := &exporter{seriesCache: map[string]seriesText{}}
	text := strings.Repeat("x", 100<<10)
	for i := range 2000 {
		tags := fmt.Appendf(nil, "%06d", i)
		x.cacheSeries(tags, seriesText{text: text})
		if _, ok := x.seriesCache[string(tags)]; !ok || x.seriesBytes > seriesCacheBytes || len(x.seriesCache)*len(text) > x.seriesBytes {
			t.Fatalf("after %d series: %d of %d bytes are cached, this one %t", i, len(x.seriesCache), x.seriesBytes, ok)
		}
	}
}
