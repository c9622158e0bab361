package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// mutant is a fault of the rest: soak alone runs it, and it is found by its text. A change of the source that moves or
// rewrites the text loses it, which soak counts and names.
type mutant struct {
	name     string
	file     string // path in the module
	old, new string // old occurs in the file exactly once, markers of promise faults left out
	// test is the test that must fail, "TestName" of the file's own package or
	// "folder/package TestName".
	test string
}

// rest are faults that guard no promise by themselves, by the lists' files.
var rest = slices.Concat(
	ofTheScan, ofSeeking, ofOperators, // list_reading.go
	ofTheWire, ofTheCoverage, // list_parts.go
	ofStates, ofTheMerge, // list_merge.go
	ofPoints, ofNames, ofLiveQueries, ofResultCache, ofAnswers,
	ofTheDoors,            // list_doors.go
	ofTheLog,              // list_log.go
	ofOperations,          // list_ops.go
	ofWrites,              // list_writes.go
	ofExpressions, ofGexp, // list_expressions.go, list_gexp.go
	ofLiveExpressions, // list_explive.go
	ofHistograms,      // list_histogram.go
	ofGraph,           // list_graph.go
	ofRollups,         // list_rollups.go
	ofTrees,           // list_trees.go
	ofTreeBounds,      // list_treebounds.go
	ofUIDTools,        // list_uidtools.go
	ofFsck,            // list_fsck.go
	ofTools,           // list_tools.go
	ofBackups,         // list_backups.go
	ofColumns,         // list_columns.go
	ofRefusals,        // list_refusals.go
	ofAligned,         // list_aligned.go
	ofKerberos,        // list_kerberos.go
	ofTLS,             // list_tls.go
	ofDashboards,      // list_dashboards.go
	ofCompaction,      // list_compaction.go
	ofLeases,          // list_lease.go
	ofFound,           // list_found.go
	ofRetention,       // list_retention.go
	ofMadeRollups,     // list_made.go
	ofTheDocs,         // list_docs.go
)

// markers are those of all lines of a file.
var markers = regexp.MustCompile(`(?m)[ \t]*` + directive + `.*$`)

// findRest returns the rest with the places that are still in the tree, and why the others are lost.
func findRest(tree fs.FS, mutants []mutant) (found []fault, lost []error) {
	for _, m := range mutants {
		text, err := fs.ReadFile(tree, m.file)
		if err != nil {
			lost = append(lost, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		bare := markers.ReplaceAllString(string(text), "")
		if n := strings.Count(bare, m.old); n != 1 || m.old == m.new {
			lost = append(lost, fmt.Errorf("%s: its text occurs %d times in %s, want once", m.name, n, m.file))
			continue
		}
		f := fault{
			name:    m.name,
			file:    m.file,
			dir:     path.Dir(m.file),
			test:    m.test,
			changed: strings.Replace(bare, m.old, m.new, 1),
		}
		if dir, test, ok := strings.Cut(m.test, " "); ok {
			f.dir, f.test = dir, test
		}
		found = append(found, f)
	}
	return found, lost
}
