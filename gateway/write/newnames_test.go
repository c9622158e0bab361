package write

import (
	"strings"
	"testing"
	"time"

	"downpour/encoding"
)

// brandNew are unknown names.
type brandNew struct{ numbering }

// Cached reports that every name is new.
func (n *brandNew) Cached(encoding.UIDKind, string) bool { return false }

// PrepareNames looks at a bounded number of points, and at a bounded number of bytes of names.
func TestPrepareNames_bounds(t *testing.T) {
	schema := encoding.DefaultSchema()
	auto := Auto{Metrics: true, TagKs: true, TagVs: true}
	w := New(Config{Schema: schema, Table: "tsdb", Window: time.Hour}, &memory{},
		NewSeries(SeriesConfig{Schema: schema, Names: &brandNew{}, Auto: auto}))
	defer w.Close()
	f := func(length, want int) {
		t.Helper()
		p := &Point{Metric: "m", Tags: []Tag{{K: "host", V: strings.Repeat("a", length)}}}
		taken := 0
		looked := w.PrepareNames(t.Context(), p, func(yield func(*Point) bool) {
			for yield(p) {
				taken++
			}
			taken++
		})
		if looked != want || taken != want {
			t.Errorf("values of %d bytes: looked at %d points and took %d, want %d", length, looked, taken, want)
		}
	}
	f(1, maxAhead)
	f(32<<10, 7) // with that of the first point, 8 values are more than 256 KiB
}
