//go:build integration

package integration

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"downpour/integration/e2e"
)

// layout is one way in which OpenTSDB may have laid out its tables, and how
// both servers learn this.
type layout struct {
	name                   string
	saltWidth, saltBuckets int
	metric, tagK, tagV     int // UID widths, 0 for the default of 3
	appends                bool
	compacted              bool // rows are compacted by OpenTSDB before they are read
}

var layouts = []layout{
	{name: "plain"},
	{name: "salted", saltWidth: 1, saltBuckets: 4},
	{name: "wide", saltWidth: 1, saltBuckets: 4, metric: 4, tagK: 2, tagV: 4},
	{name: "appended", appends: true},
	{name: "compacted", compacted: true},
}

// short returns the layouts of these names, or all in the long form.
func short(names ...string) []layout {
	if *soak {
		return layouts
	}
	return slices.DeleteFunc(slices.Clone(layouts), func(l layout) bool { return !slices.Contains(names, l.name) })
}

// tsds bounds how many TSDs of openTSDB run at once: each is a Java of its own. A test that needs two
// takes both before it starts one, so that no two tests wait for each other.
var tsds = semaphore.NewWeighted(2)

// tsdsFor waits until n TSDs may be started, and has them until the test ends.
func tsdsFor(t *testing.T, n int64) {
	t.Helper()
	if err := tsds.Acquire(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tsds.Release(n) })
}

// openTSDB starts a real TSD on tables of this layout, which ends with the test. It compacts rows
// only where the layout says so, because its clock decides when.
func (l layout) openTSDB(t *testing.T, tables e2e.Tables) *e2e.OpenTSDB {
	t.Helper()
	tsdsFor(t, 1)
	return l.startTSD(t, tables)
}

// startTSD is openTSDB for a test that has waited for its turn.
func (l layout) startTSD(t *testing.T, tables e2e.Tables) *e2e.OpenTSDB {
	t.Helper()
	tsd, err := e2e.StartOpenTSDB(within(t, time.Minute), l.tsdOptions(t, tables, nil))
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, tsd)
	return tsd
}

// tsdOptions are those of a TSD on tables of this layout, with further keys of
// opentsdb.conf if given.
func (l layout) tsdOptions(t *testing.T, tables e2e.Tables, more map[string]string) e2e.OpenTSDBOptions {
	t.Helper()
	config := map[string]string{"tsd.storage.enable_compaction": strconv.FormatBool(l.compacted)}
	maps.Copy(config, more)
	return e2e.OpenTSDBOptions{
		Quorum: hbase(t).Quorum(), Tables: tables,
		SaltWidth: l.saltWidth, SaltBuckets: l.saltBuckets,
		UIDMetricWidth: l.metric, TagKWidth: l.tagK, TagVWidth: l.tagV,
		Appends: l.appends, Config: config, QuickStart: !*soak,
	}
}

// env holds the variables that tell our programs the layout and the tables.
func (l layout) env(t *testing.T, tables e2e.Tables) map[string]string {
	env := map[string]string{
		"DOWNPOUR_STORE":        "hbase:" + hbase(t).Quorum(),
		"DOWNPOUR_TABLE_DATA":   tables.Data,
		"DOWNPOUR_TABLE_UID":    tables.UID,
		"DOWNPOUR_TABLE_META":   tables.Meta,
		"DOWNPOUR_TABLE_TREE":   tables.Tree,
		"DOWNPOUR_AUTO_METRICS": "true",
	}
	for key, value := range map[string]int{
		"DOWNPOUR_SALT_WIDTH": l.saltWidth, "DOWNPOUR_SALT_BUCKETS": l.saltBuckets,
		"DOWNPOUR_UID_WIDTH_METRIC": l.metric, "DOWNPOUR_UID_WIDTH_TAGK": l.tagK, "DOWNPOUR_UID_WIDTH_TAGV": l.tagV,
	} {
		if value != 0 {
			env[key] = strconv.Itoa(value)
		}
	}
	return env
}

// gateway starts ours on the same tables, with further variables if given.
func (l layout) gateway(t *testing.T, tables e2e.Tables, more map[string]string) *e2e.Program {
	t.Helper()
	env := l.env(t, tables)
	if l.appends {
		// Appends are a setting of OpenTSDB, so they come by its own file.
		env["DOWNPOUR_OPENTSDB_CONF"] = writeFile(t, "opentsdb.conf", "tsd.storage.enable_appends = true\n")
	}
	maps.Copy(env, more)
	return startGateway(t, e2e.ProgramOptions{Env: env})
}

// embedded starts a gateway on an embedded store of its own, without metrics of
// this host.
func embedded(t *testing.T, more map[string]string) *e2e.Program {
	t.Helper()
	env := map[string]string{"DOWNPOUR_SELF_METRICS": "0"}
	maps.Copy(env, more)
	return startGateway(t, e2e.ProgramOptions{Env: env})
}

func startGateway(t *testing.T, o e2e.ProgramOptions) *e2e.Program {
	t.Helper()
	g, err := e2e.StartGateway(within(t, time.Minute), o)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, g)
	return g
}
