package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"downpour/gateway/gatewaytest"
	"downpour/integration/e2e"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
)

// fourTables is a fake HBase with OpenTSDB's four tables, as OpenTSDB's own script leaves it, and one of rollups.
type fourTables struct {
	*testing.T
	cluster *hbasefake.Cluster
	st      *hbase.Store
	env     map[string]string
	state   string // the name of our own table
}

func newFourTables(t *testing.T, state string) *fourTables {
	cluster := hbasefake.For(t, hbasefake.Options{})
	for name, families := range map[string][]string{
		"tsdb": {"t"}, "tsdb-uid": {"id", "name"}, "tsdb-meta": {"name"}, "tsdb-tree": {"t"}, "pre": {"t"},
		"r1h": {"t"}, "r1h-pre": {"t"},
	} {
		cluster.CreateTable(name, families)
	}
	cluster.KeepVersions("tsdb")
	_, st := gatewaytest.HBase(t, cluster.Address())
	rules := filepath.Join(t.TempDir(), "rules.txt")
	if err := os.WriteFile(rules, []byte(". 400d\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := &fourTables{T: t, cluster: cluster, st: st, state: state}
	w.env = map[string]string{"DOWNPOUR_STORE": "hbase:" + cluster.Address(), "DOWNPOUR_SELF_METRICS": "0",
		"DOWNPOUR_RETENTION": rules,
		"DOWNPOUR_ROLLUPS": `auto:{"aggregationIds":{"sum":0,"count":1},"intervals":[
			{"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
			{"table":"r1h","preAggregationTable":"r1h-pre","interval":"1h","rowSpan":"1d"}]}`}
	if state != "downpour-state" {
		w.env["DOWNPOUR_TABLE_STATE"] = state
	}
	if w.run("uid", "assign", "metrics", "m"); w.made() {
		t.Fatal("the table is there before anybody needs it")
	}
	return w
}

// run runs a command of the gateway, which must succeed.
func (w *fourTables) run(args ...string) {
	w.Helper()
	status, out, err := e2e.Run(within(w.T, gatewaytest.Patience),
		program, e2e.ProgramOptions{Env: w.env, Args: args, Dir: w.TempDir()})
	if err != nil || status != 0 {
		w.Fatalf("%q: status %d, %v, %s", args, status, err, out)
	}
}

// made reports whether our own table is there.
func (w *fourTables) made() bool {
	w.Helper()
	ok, err := w.st.TableExists(w.Context(), w.state)
	if err != nil {
		w.Fatal(err)
	}
	return ok
}

// wantLease checks that our table has a lease, and that none of the others has anything of ours.
func (w *fourTables) wantLease(name string) {
	w.Helper()
	if !w.made() {
		w.Fatalf("no table %s", w.state)
	}
	if dump := w.cluster.Dump(w.state); !strings.Contains(dump, `"lease/`+name) {
		w.Errorf("table %s has\n%s, want the lease %s", w.state, dump, name)
	}
	for _, table := range []string{"tsdb", "tsdb-uid", "tsdb-meta", "tsdb-tree", "r1h"} {
		if dump := w.cluster.Dump(table); strings.Contains(dump, "lease") {
			w.Errorf("table %s has\n%s", table, dump)
		}
	}
}

// TestProgram_stateTable: where OpenTSDB has made its tables, and nobody ran -create-tables, each job makes our own
// table the first time that it needs it, by hand and in the background, and finds it the next time.
// What only looks makes none.
func TestProgram_stateTable(t *testing.T) {
	hands := map[string][]string{
		"compact/tsdb/":      {"compact", "2h-ago", "now", "m"},
		"rollup/tsdb/000001": {"rollup", "2d-ago", "now", "m"},
		"retention":          {"retention", "run"},
	}
	looks := [][]string{
		{"compact", "-dry-run", "2h-ago", "now", "m"},
		{"rollup", "-dry-run", "2d-ago", "now", "m"},
		{"retention", "plan"},
	}
	for lease, args := range hands {
		w := newFourTables(t, map[bool]string{true: "downpour-state", false: "elsewhere"}[lease == "retention"])
		for _, look := range looks {
			if w.run(look...); w.made() {
				t.Errorf("%q makes the table", look)
			}
		}
		for range 2 {
			w.run(args...)
			w.wantLease(lease)
		}
	}

	background := map[string]func(w *fourTables) (*e2e.Program, error){
		"compact/tsdb/": func(w *fourTables) (*e2e.Program, error) {
			env := map[string]string{
				"DOWNPOUR_STORE":       w.env["DOWNPOUR_STORE"],
				"DOWNPOUR_TABLE_STATE": w.state,
				"DOWNPOUR_COMPACT":     "20",
			}
			return e2e.StartPushdown(within(t, gatewaytest.Patience), e2e.ProgramOptions{Env: env, Dir: t.TempDir()})
		},
		"rollups": func(w *fourTables) (*e2e.Program, error) {
			env := maps.Clone(w.env)
			delete(env, "DOWNPOUR_RETENTION")
			return e2e.StartGateway(within(t, gatewaytest.Patience), e2e.ProgramOptions{Env: env, Dir: t.TempDir()})
		},
		"retention": func(w *fourTables) (*e2e.Program, error) {
			env := maps.Clone(w.env)
			env["DOWNPOUR_ROLLUP_RATE"] = "off"
			return e2e.StartGateway(within(t, gatewaytest.Patience), e2e.ProgramOptions{Env: env, Dir: t.TempDir()})
		},
	}
	for lease, start := range background {
		w := newFourTables(t, "elsewhere")
		p, err := start(w)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		err = e2e.Until(within(t, gatewaytest.Patience), 20*time.Millisecond, func(context.Context) error {
			if !w.made() || !strings.Contains(w.cluster.Dump(w.state), `"lease/`+lease) {
				return errors.New("no lease")
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v\n%s", lease, err, p.Process.LogTail(20))
		}
		w.wantLease(lease)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
