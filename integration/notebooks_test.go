//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// hostMetrics puts half an hour of the metrics that the notebooks read, two types of
// CPU time and a load, up to now.
func hostMetrics(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	now := time.Now().Unix()
	var points []e2e.Point
	for at := now - 1800; at <= now; at += 10 {
		points = append(points, cpu(at, "user"), cpu(at, "system"),
			e2e.Point{
				Metric:    "proc.loadavg.1min",
				Timestamp: at,
				Value:     json.RawMessage("0.5"),
				Tags:      map[string]string{"host": "web01"},
			})
	}
	for part := range slices.Chunk(points, 50) {
		put(ctx, t, url, part)
	}
}

func cpu(at int64, kind string) e2e.Point {
	return e2e.Point{
		Metric:    "proc.stat.cpu",
		Timestamp: at,
		Value:     json.RawMessage(fmt.Sprint(3 * at)),
		Tags:      map[string]string{"host": "web01", "type": kind},
	}
}

// output is one output of a notebook's cell.
type output struct {
	Cell  int
	Kinds []string
	Text  string
}

func runNotebook(ctx context.Context, t *testing.T, name, url string) (outputs []output) {
	t.Helper()
	out := must[[]byte](t)(e2e.Python(ctx, "integration/notebooks/run.py",
		must[string](t)(e2e.Root())+"/integration/notebooks/"+name, url))
	for line := range bytes.Lines(out) {
		var o output
		if err := json.Unmarshal(line, &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		outputs = append(outputs, o)
	}
	return outputs
}

// The notebook explore.ipynb runs to its last cell, and its outputs show what was put: 181 points
// of each series, one every 10 s of half an hour.
func TestNotebooks_explore(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	ours := embedded(t, nil)
	hostMetrics(ctx, t, ours.URL)
	outputs := runNotebook(ctx, t, "explore.ipynb", ours.URL)
	f := func(cell int, kind string, words ...string) {
		t.Helper()
		for _, o := range outputs {
			if o.Cell == cell && (kind == "" || slices.Contains(o.Kinds, kind)) {
				for _, w := range words {
					if !strings.Contains(o.Text, w) {
						t.Errorf("cell %d lacks %q: %s", cell, w, o.Text)
					}
				}
				return
			}
		}
		t.Errorf("cell %d has no output of kind %q: %+v", cell, kind, outputs)
	}
	f(1, "text/plain", "category", "datetime64[ms, UTC]")
	f(2, "text/html", "user", "system", "3.0")
	f(3, "text/html", "proc.stat.cpu{host=web01,type=user}")
	f(4, "image/png")
	f(5, "text/html", "181")
	f(6, "text/plain", "('system', 181", "('user', 181")
	f(7, "text/plain", "362")
	f(8, "", "400 No such name for 'metrics': 'no.such.metric'")
	f(9, "text/plain", "(['proc.stat.cpu'],", "['host', 'type'],", "['system', 'user'])")
}

// The notebook follow.ipynb draws five frames of a live query, and then names both series.
func TestNotebooks_follow(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	ours := embedded(t, nil)
	hostMetrics(ctx, t, ours.URL)
	defer feed(ctx, t, ours.URL)()
	outputs := runNotebook(ctx, t, "follow.ipynb", ours.URL)
	last := outputs[len(outputs)-1]
	want := "(5, ['proc.stat.cpu{host=web01,type=system}', 'proc.stat.cpu{host=web01,type=user}'])"
	if strings.Join(strings.Fields(last.Text), " ") != want {
		t.Errorf("%s, want %s", last.Text, want)
	}
	if !slices.ContainsFunc(outputs, func(o output) bool { return slices.Contains(o.Kinds, "image/png") }) {
		t.Errorf("no output is a PNG, want one: %+v", outputs)
	}
}

// feed puts points of this moment until the returned function is called.
func feed(ctx context.Context, t *testing.T, url string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case at := <-tick.C:
				err := e2e.Put(ctx, url, []e2e.Point{cpu(at.Unix(), "user"), cpu(at.Unix(), "system")})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		}
	})
	return func() { cancel(); work.Wait() }
}
