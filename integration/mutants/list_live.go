package main

// ofLiveQueries are faults of live queries.
var ofLiveQueries = []mutant{
	{
		name: "series-come-back-behind-the-seam", file: "gateway/live/incremental/older.go",
		old: "	if t.older == nil || !s.hasData {\n", new: "	if t.older == nil || s.hasData {\n",
		test: "gateway/live/changefeed TestLaw_olderHours",
	}, {
		name: "final-points-aggregated-again", file: "gateway/live/incremental/group.go",
		old: "w.From = max(w.From, g.cut); ", new: "",
		test: "gateway/live/changefeed TestLaw_olderHours",
	}, {
		name: "tails-left-out", file: "gateway/live/incremental/older.go",
		old: "	l.parts[sp] = append(l.parts[sp], p)\n", new: "",
		test: "gateway/live/changefeed TestLaw_olderHours",
	}, {
		name: "one-rate-is-settled", file: "gateway/live/incremental/watermark.go",
		old: "before < 2:", new: "before < 1:",
		test: "gateway/live/changefeed TestFinalBefore_values",
	}, {
		name: "merged-cells-unnoticed", file: "gateway/live/changefeed/kept.go",
		old: "				return row, true, true\n", new: "				return row, changed, false\n",
		test: "TestSplice",
	}, {
		name: "clocks-are-right", file: "gateway/live/changefeed/poller.go",
		old: "since.Add(-clockSkew-p.delay.longest())", new: "since.Add(-clockSkew)",
		test: "TestPoller_clockBehind",
	}, {
		name: "write-reported-late", file: "gateway/live/changefeed/writes.go", // after one that removed it
		old: "	s.alwaysRead[string(row)] = struct{}{}\n", new: "",
		test: "TestWatched_reportedLate",
	}, {
		name: "late-point-in-the-last-bucket", file: "gateway/live/incremental/extend.go",
		old: " || p.Time[0] <= open.last:", new: ":",
		test: "gateway/live/changefeed TestWatched_inOrder",
	}, {
		name: "value-of-a-bucket-taken-for-its-points", file: "gateway/live/incremental/extend.go",
		old: "		open.known = open.known && p.buckets.len() == 0\n", new: "",
		test: "TestExtend_lastBucket",
	}, {
		name: "edges-kept-when-a-series-joins",
		file: "gateway/live/incremental/view.go",
		old:  "g.members, g.edges = slices.Insert(g.members, i, s), nil",
		new:  "g.members = slices.Insert(g.members, i, s)",
		test: "gateway/live/changefeed TestLaw_watched",
	}, {
		name: "first-rate-forgotten-at-the-edge", file: "gateway/live/incremental/edge.go",
		old: "contributing(times, w, rates && e.complete)", new: "contributing(times, w, false)",
		test: "gateway/live/changefeed TestWatched_lateBeforeARate",
	}, {
		name: "edge-not-moved", file: "gateway/live/incremental/series.go",
		old: "		s.group.edges[s.index].set(c)\n", new: "		_ = c\n",
		test: "gateway/live/changefeed TestWatched_inOrder",
	}, {
		name: "idle-store-not-looked-at", file: "gateway/live/changefeed/probe.go",
		old: "		return unreadable(ctx, err)\n", new: "		return nil\n",
		test: "TestProbe",
	},
}
