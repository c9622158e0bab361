package main

// ofCompaction are faults of the compaction of rows on HBase, each of which loses points, or
// brings some back.
var ofCompaction = []mutant{
	{
		name: "compaction-deletes-columns",
		file: "pushdown/store/hbase/changeif.go",
		old:  "v.Qualifier, nil, v.Timestamp, cellblock.Delete)",
		new:  "v.Qualifier, nil, cellblock.ServerTime, cellblock.DeleteColumn)",
		test: "pushdown/compaction TestOrders",
	}, {
		name: "compaction-asks-not-for-the-merged-cell", file: "pushdown/compaction/job.go",
		old: "Stamps: w.plan.Stamps, Cell: &w.plan.Merged}", new: "Stamps: w.plan.Stamps}",
		test: "TestJob_hidden",
	}, {
		name: "replace-is-done-whatever-a-compaction-put", file: "pushdown/store/hbase/replace.go",
		old: "return x.Timestamp <= newest && !", new: "return x.Timestamp < 0 && !",
		test: "TestReplace_compacted",
	}, {
		name: "compaction-puts-whatever-came", file: "pushdown/store/hbase/changeif.go",
		old: "filter.NewSkipFilter(filter.NewTimestampsFilter(c.Stamps))", new: "filter.NewTimestampsFilter(c.Stamps)",
		test: "pushdown/compaction TestJob_writtenInBetween",
	}, {
		name: "compaction-deletes-what-a-tsd-relies-on", file: "pushdown/store/hbase/changeif.go",
		old: "		all = append(all, there)\n", new: "		all = []filter.Filter{there}\n",
		test: "pushdown/compaction TestJob_anotherCell",
	}, {
		name: "compaction-relies-on-markers", file: "pushdown/compaction/plan.go",
		old: "	for _, v := range h.puts {\n", new: "	for _, v := range h.unhidden {\n",
		test: "TestDecide_reasons",
	}, {
		name: "compaction-of-cells-of-half-the-margin", file: "pushdown/compaction/job.go",
		old: "j.Now().Add(-j.Margin).UnixMilli()", new: "j.Now().Add(-j.Margin / 2).UnixMilli()",
		test: "pushdown/compaction TestOrders_clocks",
	}, {
		name: "compaction-newer-than-its-parts",
		file: "pushdown/compaction/points.go",
		old:  "		merged.Timestamp = max(merged.Timestamp, p.stamp)\n",
		new:  "		merged.Timestamp = max(merged.Timestamp, p.stamp+1000)\n",
		test: "TestOrders",
	}, {
		name: "compaction-hidden-by-an-old-marker", file: "pushdown/compaction/plan.go",
		old: "	if h.hides(store", new: "	if false && h.hides(store",
		test: "TestDecide_reasons",
	}, {
		name: "compaction-keeps-deleted-cells", file: "pushdown/store/hbase/versions.go",
		old: `[]string{"KEEP_DELETED_CELLS", "NEW_VERSION_BEHAVIOR"}`, new: `[]string{"NEW_VERSION_BEHAVIOR"}`,
		test: "pushdown/compaction TestJob_refused",
	}, {
		name: "compaction-unseen-by-timestamps",
		file: "pushdown/store/hbase/changeif.go",
		old:  "changeMarker, nil, cellblock.ServerTime, cellblock.DeleteColumn)",
		new:  "changeMarker, nil, 1, cellblock.DeleteColumn)",
		test: "TestChangeIf_seenByTimestamps",
	},
}
