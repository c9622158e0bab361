//go:build integration

package integration

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/e2e"
)

// The control of the exchange tests: two OpenTSDB processes give the same answers to all questions
// and store the same cells. If they did not, a difference between OpenTSDB and Downpour would prove
// nothing.
func TestControl_openTSDBAgreesWithItself(t *testing.T) {
	t.Parallel()
	ctx := within(t, 4*time.Minute)
	tsdsFor(t, 2)
	for _, l := range []layout{layouts[1], layouts[3]} {
		one, two := createTables(t), createTables(t)
		first, second := l.startTSD(t, one), l.startTSD(t, two)
		for _, url := range []string{first.URL, second.URL} {
			putOneByOne(ctx, t, url, introduce())
			put(ctx, t, url, dataset(7))
		}
		for _, pair := range [][2]string{{one.UID, two.UID}, {one.Data, two.Data}} {
			want := must[[]e2e.Cell](t)(hbase(t).Admin.Scan(ctx, pair[0]))
			got := must[[]e2e.Cell](t)(hbase(t).Admin.Scan(ctx, pair[1]))
			if d := cmp.Diff(cellLines(want), cellLines(got)); d != "" || len(want) < 20 {
				t.Errorf("%s: %d cells, want at least 20; -one +other\n%.2000s", l.name, len(want), d)
			}
		}
		askBoth(ctx, t, first.URL, second.URL, questions())
	}
}

// The questions must find data: a wrong metric name would make every comparison
// pass.
func TestControl_questionsFindData(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	tsd := layouts[0].openTSDB(t, createTables(t))
	put(ctx, t, tsd.URL, introduce())
	put(ctx, t, tsd.URL, dataset(7))
	empty := map[string]int{
		"no such metric":               400,
		"no such tag value":            400,
		"no such tag key":              400,
		"no such tag key of any value": 400,
		"no such aggregator":           400,
		"end before start":             400,
		"nothing there":                200,
	}
	for _, q := range questions() {
		ask(ctx, t, tsd.URL, q) // warms the TSD's names
		a := ask(ctx, t, tsd.URL, q)
		if status, ok := empty[q.name]; ok {
			if a.Status != status {
				t.Errorf("%s: status %d, want %d: %.300s", q.name, a.Status, status, a.Body)
			}
			continue
		}
		if a.Status != 200 || !bytes.Contains(a.Body, []byte(`"dps"`)) || bytes.Contains(a.Body, []byte(`"dps":{}`)) {
			t.Errorf("%s: status %d, want 200 and points: %.300s", q.name, a.Status, a.Body)
		}
	}
}
