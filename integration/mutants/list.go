package main

import "slices"

// mutants are the faults that tests must catch. Each is what a careless change
// could do, and would make an answer wrong or short, or lose a point.
var mutants = slices.Concat(
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
	ofRetention,       // list_retention.go
	ofMadeRollups,     // list_made.go
	ofTheDocs,         // list_docs.go
)
