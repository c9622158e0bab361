package hbase

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// The gaps of a version are reported, and the alternatives are right: written cells are
// read, nothing is proven that is not, and of cells that must not exist each is written
// once.
func TestInspect(t *testing.T) {
	for version, want := range map[string][]string{
		"1.0.3":           {lacksReadPoint, lacksConditions, lacksTrial},
		"1.2.6":           {lacksReadPoint, lacksConditions},
		"1.7.2":           {lacksState, lacksConditions},
		"2.1.0-cdh6.3.4":  {lacksConditions},
		"2.4.18":          nil,
		"2.5.11-hadoop3":  nil,
		"3.0.0-beta-1":    nil,
		"10.0.0-SNAPSHOT": nil,
	} {
		t.Run(version, func(t *testing.T) {
			c := start(t, hbasefake.Options{Version: version})
			lines := c.fill(40, "r0013", "r0026")
			got, err := c.st.Inspect(c.ctx, "t", "t")
			if diff := cmp.Diff(store.Inspection{Version: version, Lacks: want}, got); diff != "" || err != nil {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
			if got, want := c.st.appendResults.Load(), version[:2] == "1."; got != want {
				t.Errorf("appends return their cells: %t, want %t", got, want)
			}

			c.mustRead(store.Scan{}, lines)
			c.mustRead(store.Scan{MaxRows: 2}, lines[:3]) // the second row has two cells
			for range 2 {
				if _, err = storetest.Version(c.ctx, c.st, "t", "t", store.KeyRange{}); err != nil {
					break
				}
			}
			if proven := !slices.Contains(want, lacksReadPoint) &&
				!slices.Contains(want, lacksState); proven != (err == nil) {
				t.Errorf("version token: error %v, want a token %v", err, proven)
			}
			cells := []store.CellKey{{Row: []byte("r0007"), Family: "t", Qualifier: []byte("q1")},
				{Row: []byte("s"), Family: "t", Qualifier: []byte("q")}}
			wrote, err := c.st.PutAbsent(c.ctx, "t", cells, [][]byte{[]byte("x"), []byte("y")})
			if err != nil || fmt.Sprint(wrote) != "[false true]" {
				t.Errorf("put of absent cells: %v, %v, want the second alone", wrote, err)
			}
			c.mustRead(store.Scan{}, append(lines, "s q y"))
			err = c.st.CheckVersions(c.ctx, "t", "t")
			if lacks := slices.Contains(want, lacksConditions); lacks != (err != nil) {
				t.Errorf("compaction of rows: %v, want it refused %v", err, lacks)
			}
		})
	}
}

// Nodes of a cluster before 2.5 must be masters.
func TestInspect_nodes(t *testing.T) {
	for version, want := range map[string][]string{"2.4.18": {lacksNodes}, "2.5.0": nil} {
		c := start(t, hbasefake.Options{Version: version})
		c.fill(1)
		st, err := Open(Config{Nodes: c.Nodes()[:1]})
		if err != nil {
			t.Fatal(err)
		}
		got, err := st.Inspect(c.ctx, "t", "t")
		if diff := cmp.Diff(want, got.Lacks); diff != "" || err != nil {
			t.Errorf("%s: %v, (-want +got):\n%s", version, err, diff)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A region that moves does not keep us from finding out, and a master that does not say its version is named.
func TestInspect_faults(t *testing.T) {
	c := start(t, hbasefake.Options{Version: "1.2.6"})
	c.fill(1)
	must(c.st.Regions(c.ctx, "t", nil, nil))
	c.MoveRegion("t", nil)
	if got, err := c.st.Inspect(c.ctx, "t", "t"); err != nil || len(got.Lacks) != 2 {
		t.Errorf("moved: %+v, %v, want what is lacking", got, err)
	}
	c.disturb("GetClusterStatus", 1, hbasefake.Fault{Kind: hbasefake.Refuse, Exception: doNotRetry})
	if _, err := c.st.Inspect(c.ctx, "t", "t"); err == nil || !strings.Contains(err.Error(), "for its version: ") {
		t.Errorf("refused: %v, want that the version is not known", err)
	}
}

// One line of the log says it. What could not be found out is no reason not to run.
func TestTell(t *testing.T) {
	for name, tc := range map[string]struct {
		version, table string
		want           []string
	}{
		"lacks":   {"1.7.2", "t", []string{"level=WARN", "version=1.7.2", lacksState, lacksConditions}},
		"has all": {"2.6.4", "t", []string{"level=INFO", "version=2.6.4"}},
		"strange": {"trunk", "t", []string{"level=WARN", "version=trunk", "want MAJOR.MINOR"}},
		"unknown": {"2.6.4", "none", []string{"level=WARN", "version=2.6.4", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, hbasefake.Options{Version: tc.version})
			c.fill(1)
			var b bytes.Buffer
			store.Tell(c.ctx, c.st, tc.table, "t", slog.New(slog.NewTextHandler(&b, nil)))
			for _, want := range tc.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("got %q, want %q in it", b.String(), want)
				}
			}
			if n := strings.Count(b.String(), "\n"); n != 1 {
				t.Errorf("got %d lines, want 1: %s", n, b.String())
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c := start(t, hbasefake.Options{})
	var b bytes.Buffer
	store.Tell(ended, c.st, "t", "t", slog.New(slog.NewTextHandler(&b, nil)))
	if b.Len() > 0 {
		t.Errorf("of a process that ends: %s", b.String())
	}
}
