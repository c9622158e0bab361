package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// line is the order of the five folders: a package imports only from its own folder or from one to
// the left. So nothing imports bench, which needs them all.
var line = []string{"encoding", "pushdown", "gateway", "integration", "bench"}

// forTests are the exceptions: process control, comparator and recordings import only encoding, and
// tests anywhere may use them.
var forTests = []string{"integration/e2e", "integration/compare", "integration/conformance"}

func place(dir string) int {
	return slices.IndexFunc(line, func(folder string) bool { return under(dir, folder) })
}

func direction(h *house) (found []string) {
	for _, r := range h.rooms() {
		for _, imported := range slices.Sorted(maps.Keys(both(r))) {
			dir, ours := h.ours(imported)
			switch {
			case !ours || place(r.dir) < 0:
			case underAny(dir, forTests):
				if r.imports[imported] && !underAny(r.dir, append(forTests, "bench", "integration")) {
					found = append(found, fmt.Sprintf("%s: imports %s, which is for tests and bench", r.dir, imported))
				}
			case underAny(r.dir, forTests) && place(dir) != 0:
				found = append(found, fmt.Sprintf("%s: imports %s, may import only encoding", r.dir, imported))
			case place(dir) > place(r.dir):
				found = append(found, fmt.Sprintf("%s: imports %s, to the right of its own folder", r.dir, imported))
			}
		}
	}
	return found
}

// harnesses reports product that imports a package for tests.
func harnesses(h *house) (found []string) {
	for _, r := range h.rooms() {
		for _, imported := range slices.Sorted(maps.Keys(r.imports)) {
			dir, ours := h.ours(imported)
			if ours && isForTests(dir) && !underAny(r.dir, []string{"integration", "bench"}) {
				found = append(found, fmt.Sprintf("%s: imports %s, which is for tests", r.dir, imported))
			}
		}
	}
	return found
}

func both(r *room) map[string]bool {
	all := maps.Clone(r.imports)
	maps.Copy(all, r.tests)
	return all
}

// outside is the part of the standard library that codecs and calculations do
// without: with it they could depend on a moment, a machine or a schedule.
var outside = []string{"context", "net", "os", "sync", "log", "syscall", "database/sql"}

// withoutOutside lists the packages that may not use it. The first three are
// standard library only, except that they may import each other.
var withoutOutside = []string{
	"encoding", "encoding/scanplan", "encoding/column", "pushdown/operator/downsample",
	"pushdown/operator/aggregate", "pushdown/operator/rate", "pushdown/operator/window", "pushdown/operator/histogram",
	"gateway/query/plan",
	"gateway/query/merge", "gateway/query/expression", "gateway/query/exp", "gateway/extra/gexp",
	"gateway/query/javahash", "gateway/extra/graph", "gateway/extra/graph/gnuformat",
	"gateway/extra/graph/picture", "gateway/extra/trees/tree", "gateway/extra/tools/fsck",
	"gateway/extra/retention/rules", "gateway/extra/disk/diskfill", "pushdown/store/hbase/sasl",
	"pushdown/store/hbase/jaas", "pushdown/process/login",
}

func standardOnly(h *house) (found []string) {
	for _, dir := range withoutOutside[:3] {
		r := h.packages[dir]
		if r == nil {
			continue
		}
		for _, imported := range slices.Sorted(maps.Keys(r.imports)) {
			of, ours := h.ours(imported)
			if !h.standard(imported) && !(ours && (of == "encoding" || of == "encoding/column")) {
				found = append(found, fmt.Sprintf("%s: imports %s, may import only the standard library",
					dir, imported))
			}
		}
	}
	return found
}

func purity(h *house) (found []string) {
	for _, dir := range withoutOutside {
		r := h.packages[dir]
		if r == nil {
			continue
		}
		for _, imported := range slices.Sorted(maps.Keys(r.imports)) {
			if h.standard(imported) && underAny(imported, outside) {
				found = append(found, fmt.Sprintf("%s: imports %s, must know no clock, network or system",
					dir, imported))
			}
		}
		if through, ok := h.reaches(r, "pushdown/store", nil); ok {
			found = append(found, fmt.Sprintf("%s: reaches %s/pushdown/store by way of %s, must know no store",
				dir, h.module, through))
		}
	}
	for _, f := range h.files {
		if f.test || !slices.Contains(withoutOutside, f.room.dir) {
			continue
		}
		for _, c := range callsOf(f, "time", "Now", "Since", "Until", "After", "Tick", "NewTimer", "NewTicker") {
			found = append(found, fmt.Sprintf("%s: calls time.%s, must know no clock, network or system",
				h.line(c), c.Sel.Name))
		}
	}
	return found
}

// reaches finds the first import of r that is, or leads to, the target.
func (h *house) reaches(r *room, target string, seen []string) (through string, ok bool) {
	for _, imported := range slices.Sorted(maps.Keys(r.imports)) {
		dir, ours := h.ours(imported)
		if !ours || slices.Contains(seen, dir) {
			continue
		}
		if under(dir, target) {
			return imported, true
		}
		if next := h.packages[dir]; next != nil {
			if _, ok := h.reaches(next, target, append(seen, dir)); ok {
				return imported, true
			}
		}
	}
	return "", false
}

// stores are the packages that bring a store with them; the last one opens
// either, as the settings say.
var stores = []string{"pushdown/store/hbase", "pushdown/store/pebble", "pushdown/store/open"}

// storeChoice reports packages that choose a store: only mains may, everything else is given one.
func storeChoice(h *house) (found []string) {
	for _, r := range h.rooms() {
		for _, imported := range slices.Sorted(maps.Keys(r.imports)) {
			dir, ours := h.ours(imported)
			if !ours {
				continue
			}
			if r.dir == "pushdown/store" {
				found = append(found, fmt.Sprintf("%s: imports %s, must import nothing of ours", r.dir, imported))
			}
			if underAny(dir, stores) && !underAny(r.dir, stores) && r.name != "main" {
				found = append(found, fmt.Sprintf("%s: imports %s, only mains and tests choose a store",
					r.dir, imported))
			}
		}
	}
	return found
}

// owner binds a dependency to the one place that knows it, so that it can be
// changed there. Tests may use a dependency to play a peer.
type owner struct {
	module string // import path without version
	within string // folder in which the rule holds; empty means everywhere
	dir    string // who may
	peer   string // a program of the tests that may, too
	who    string // how the message names that
}

var ownerTable = []owner{
	{module: "github.com/tsuna/gohbase", dir: "pushdown/store/hbase"},
	{module: "github.com/jcmturner", dir: "pushdown/store/hbase/kerberos"},
	{module: "github.com/cockroachdb/pebble", dir: "pushdown/store/pebble"},
	{module: "github.com/apache/arrow/go/v15/parquet", dir: "gateway/extra/tools/pointfile"},
	{module: "github.com/gorilla/websocket", dir: "gateway/api/ws"},
	{module: "github.com/prometheus/prometheus", dir: "gateway/extra/prometheus/promql",
		peer: "integration/promtsdb"},
	{module: "go.opentelemetry.io/collector/pdata", dir: "gateway/extra/otlp"},
	{module: "gonum.org/v1/plot", dir: "gateway/extra/graph/picture"},
	{module: "github.com/yuin/goldmark", dir: "gateway/extra/docsite"},
	{module: "github.com/caarlos0/env", dir: "main", who: "which only mains may"},
	{
		module: "github.com/apache/arrow/go",
		within: "encoding",
		dir:    "encoding/batch",
		who:    "which in encoding only encoding/batch may",
	},
}

func owners(h *house) (found []string) {
	for _, r := range h.rooms() {
		for _, imported := range slices.Sorted(maps.Keys(r.imports)) {
			for _, o := range ownerTable {
				if !under(imported, o.module) || o.within != "" && !under(r.dir, o.within) {
					continue
				}
				if under(r.dir, o.dir) || o.peer != "" && under(r.dir, o.peer) || o.dir == "main" && r.name == "main" {
					continue
				}
				who := o.who
				if who == "" {
					who = "which only " + o.dir + " may"
				}
				found = append(found, fmt.Sprintf("%s: imports %s, %s", r.dir, imported, who))
			}
		}
	}
	return found
}

// extraFolder has a folder for each extra; only the programs of extraUsers know extras.
const extraFolder = "gateway/extra"

var extraUsers = []string{"gateway/cmd", "integration", "bench"}

// extraImports are the extras that an extra may import, by their folders.
var extraImports = map[string][]string{
	"hostmetrics": {"dashboards"},                                                 // it has one
	"otlp":        {"prometheus"},                                                 // its names, and how it takes points
	"retention":   {"hostmetrics"},                                                // knows its metrics
	"rollups":     {"retention"},                                                  // none of rows that are past
	"tools":       {"dashboards", "hostmetrics", "opspage", "retention", "trees"}, // commands
}

// extras reports packages of the core that import an extra, in their tests or elsewhere, and extras
// that import one which they may not; their tests may. The list in gateway/extra itself imports
// all.
func extras(h *house) (found []string) {
	for _, r := range h.rooms() {
		of, all := extraOf(r.dir), both(r)
		if of != "" {
			all = r.imports
		}
		for _, imported := range slices.Sorted(maps.Keys(all)) {
			dir, ours := h.ours(imported)
			target := extraOf(dir)
			switch {
			case !ours || !under(dir, extraFolder) || r.dir == extraFolder || underAny(r.dir, extraUsers) ||
				target == of && of != "":
			case of == "":
				found = append(found, fmt.Sprintf("%s: imports %s, but the core knows no extra", r.dir, imported))
			case target == "" && strings.HasSuffix(r.dir, "/settingspage"): // a test's, of all settings
			case !slices.Contains(extraImports[of], target):
				found = append(found, fmt.Sprintf("%s: imports %s, which extraImports does not list", r.dir, imported))
			}
		}
	}
	return found
}

// extraOf returns the extra that a package belongs to, "" for none.
func extraOf(dir string) string {
	rest, _ := strings.CutPrefix(dir, extraFolder+"/")
	if rest == dir {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}
