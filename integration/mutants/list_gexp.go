package main

// ofGexp are faults of /api/query/gexp.
var ofGexp = []mutant{
	{
		name: "pairs-joined-to-the-shortest", file: "gateway/extra/gexp/pairs.go",
		old: "length = max(length, s.Points.Len())", new: "length = s.Points.Len()",
		test: "gateway/extra TestGexpConformance",
	}, {
		name: "division-by-zero-infinite", file: "gateway/extra/gexp/pairs.go",
		old: "	if b == 0 {\n		return 0\n	}\n", new: "",
		test: "TestEvaluate",
	}, {
		name: "window-includes-its-edge", file: "gateway/extra/gexp/window.go",
		old: "t-earlier >= w.ms", new: "t-earlier > w.ms",
		test: "TestEvaluate",
	}, {
		name: "highest-sees-nothing-behind-the-end", file: "gateway/extra/gexp/highest.go",
		old: "Inside(&all[i].Points, ev.Start, math.MaxInt64-1)", new: "Inside(&all[i].Points, ev.Start, ev.End)",
		test: "TestHighestCurrent_interpolates",
	}, {
		name: "cached-points-changed-in-place", file: "gateway/extra/gexp/series.go",
		old: "	if v.owned {\n", new: "	if v.owned || !v.owned {\n",
		test: "TestEvaluate_leavesData",
	}, {
		name: "shifted-rows-paired-with-others", file: "gateway/extra/gexp/series.go",
		old: "if ev.HasTimeShift {", new: "if false {",
		test: "gateway/extra TestGexp_timeShift",
	}, {
		name: "outer-shift-forgotten", file: "gateway/extra/gexp/shift.go",
		old: "shift += by", new: "shift = by",
		test: "gateway/extra TestGexp_timeShift",
	}, {
		name: "expressions-see-trimmed-points", file: "gateway/query/query.go",
		old: "e.Start, e.End, e.Untrimmed = q.Start-ms, q.End-ms, true", new: "e.Start, e.End = q.Start-ms, q.End-ms",
		test: "gateway/extra TestGexpConformance",
	}, {
		name: "gexp-column-not-reserved", file: "gateway/extra/gexp/series.go",
		old: "int64(n) * pointBytes", new: "0 * pointBytes",
		test: "TestEvaluate_isBounded",
	},
}
