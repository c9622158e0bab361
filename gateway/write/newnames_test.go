package write

import (
	"context"
	"fmt"
	"slices"
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

// prepared are names that remember what they were to prepare. Those that begin with n are new.
type prepared struct {
	numbering
	names [3][]string
}

func (n *prepared) Cached(_ encoding.UIDKind, name string) bool { return name[0] != 'n' }

func (n *prepared) Prepare(_ context.Context, kind encoding.UIDKind, names []string) {
	n.names[kind] = append(n.names[kind], names...)
}

// New names of all kinds are prepared together, those of points that may be refused are not, and none where a kind has
// one alone. Points after one whose names are known are not looked at.
func TestPrepareNames(t *testing.T) {
	all := Auto{Metrics: true, TagKs: true, TagVs: true}
	for _, c := range []struct {
		auto   Auto
		points [][]string // metric, then tags
		want   string
		read   int
	}{
		{all, [][]string{{"n1", "na", "nx"}, {"n2", "nb", "ny"}}, "[[n1 n2] [na nb] [nx ny]]", 1},
		{all, [][]string{{"n1", "a", "x"}, {"m", "na", "x"}, {"m", "nb", "nx"}}, "[[] [na nb] []]", 2},
		{all, [][]string{{"m", "a", "x"}, {"n1", "na", "nx"}, {"n2", "nb", "ny"}}, "[[] [] []]", 0},
		{all, [][]string{{"n1", "na", "x", "na", "y"}, {"n2", "nb", "y"}}, "[[] [] []]", 0}, // a tag key twice
		{all, [][]string{{"n1", "na", "x"}, {"n2", "nb", "x", "nb", "y"}, nil, {"n3", "nc", "z"}},
			"[[n1 n3] [na nc] []]", 3},
		{Auto{TagKs: true, TagVs: true}, [][]string{{"m", "na", "x"}, {"n1", "nb", "x"}, {"m", "nc", "x"}},
			"[[] [na nc] []]", 2},
		{Auto{Metrics: true, TagVs: true}, [][]string{{"n1", "a", "x"}, {"n2", "nb", "x"}, {"n3", "a", "x"}},
			"[[n1 n3] [] []]", 2},
		{Auto{Metrics: true, TagKs: true}, [][]string{{"n1", "a", "x"}, {"n2", "a", "nx"}, {"n3", "a", "x"}},
			"[[n1 n3] [] []]", 2},
	} {
		names := &prepared{}
		w := New(Config{Schema: encoding.DefaultSchema()}, &memory{},
			NewSeries(SeriesConfig{Schema: encoding.DefaultSchema(), Names: names, Auto: c.auto}))
		var points []*Point
		for _, words := range c.points {
			var p *Point
			if words != nil {
				p = &Point{Metric: words[0]}
			}
			for i := 1; i < len(words); i += 2 {
				p.Tags = append(p.Tags, Tag{words[i], words[i+1]})
			}
			points = append(points, p)
		}
		read := w.PrepareNames(t.Context(), points[0], slices.Values(points[1:]))
		if got := fmt.Sprint(names.names); got != c.want || read != c.read {
			t.Errorf("%v, %+v: got %s of %d more points, want %s of %d", c.points, c.auto, got, read, c.want, c.read)
		}
		w.Close()
	}
}
