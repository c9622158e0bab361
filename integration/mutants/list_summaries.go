package main

// ofSummaries are answers that are given again although rows have changed, or to
// another question.
var ofSummaries = []mutant{
	{
		name: "answer-of-changed-rows", file: "pushdown/summary/cache.go",
		old: "	case e.mark != mark:\n", new: "	case e.mark != mark && e.answer == nil:\n",
		test: "TestLaw_embedded",
	}, {
		name: "answer-to-other-tags", file: "pushdown/summary/key.go",
		old: "	p.Plan.Ranges = nil\n", new: "	p.Plan.Ranges, p.Plan.Tags = nil, nil\n",
		test: "TestKey",
	}, {
		name: "open-edges-taken-for-closed", file: "pushdown/summary/key.go",
		old: "			from -= encoding.RowSeconds\n", new: "			from -= 0\n",
		test: "TestKey_sameAnswer",
	}, {
		name: "half-answer-kept", file: "pushdown/summary/operator.go",
		old:  "	case err == nil:\n",
		new:  "	case err == nil && len(o.kept.batches) == 1:\n		o.cache.put(o.id, o.mark, o.kept)\n	case err == nil:\n",
		test: "TestOpen_halfRead",
	}, {
		name: "answers-are-free", file: "pushdown/summary/replay.go",
		old: "r.spent.Spend(ctx, r.answer.stats.Points, r.answer.stats.Bytes)", new: "r.spent.Spend(ctx, 0, 0)",
		test: "TestOpen_budget",
	}, {
		name: "data-time-overlooked", file: "pushdown/summary/stamps.go",
		old: "s.equal > 0 && 2*s.equal >= s.cells", new: "s.equal > s.cells",
		test: "TestOpen_dataTime",
	}, {
		name: "change-not-counted", file: "pushdown/store/pebble/changes.go",
		old: "		g.last = c.last\n", new: "",
		test: "pushdown/summary TestLaw_embedded",
	}, {
		name: "mark-during-a-change", file: "pushdown/store/pebble/changes.go",
		old: "	if running {\n", new: "	if running && ok && at == 0 {\n",
		test: "TestMark_underWay",
	}, {
		name: "forgotten-is-unchanged", file: "pushdown/store/pebble/changes.go",
		old: "	c.crowded = c.last\n", new: "",
		test: "TestMark_forgets",
	}, {
		name: "read-point-ignored", file: "pushdown/store/hbase/mark.go",
		old: "			return v\n", new: "			return min(v, 1)\n",
		test: "pushdown/summary TestLaw_hbase",
	}, {
		name: "mark-of-the-first-region", file: "pushdown/store/hbase/mark.go",
		old: "if at = loc.stop; len(at) == 0 ||", new: "if at = loc.stop; len(at) >= 0 ||",
		test: "TestMark_regions",
	}, {
		name: "mark-outlives-the-server", file: "pushdown/store/hbase/mark.go",
		old: "regionState{string(loc.name), c.id, n}", new: "regionState{string(loc.name), 0, n}",
		test: "TestMark_regions",
	}, {
		name: "time-to-live-overlooked", file: "pushdown/store/hbase/lasting.go",
		old: `ttl != "" && ttl != forever`, new: `ttl == "" && ttl != forever`,
		test: "TestMark_mortal",
	}, {
		name: "mark-comes-back", file: "pushdown/store/hbase/lasting.go",
		old: "era: eras.Add(1)}", new: "era: state.readPoint}",
		test: "TestSeen_order",
	},
}
