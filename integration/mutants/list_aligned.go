package main

// ofAligned are faults of aligned aggregation, by which series are aggregated row by row that
// should be interpolated, or in another type or order.
var ofAligned = []mutant{
	{
		name: "aligned-other-times-taken", file: "pushdown/operator/aligned.go",
		old: "!slices.Equal(g.offsets, offsets)", new: "len(g.offsets) != len(offsets)",
		test: "gateway/query/engine/stage TestAligned_isPerSeries",
	}, {
		name: "aligned-over-a-hole", file: "pushdown/operator/aligned.go",
		old: "	case m.lastHour != g.hours-1:\n", new: "	case m.lastHour > g.hours-1:\n",
		test: "gateway/query/engine/stage TestAligned_everyHole",
	}, {
		name: "aligned-integers-and-floats-of-a-part", file: "pushdown/operator/aligned.go",
		old: "(float != nil || g.hours > 0 && g.floats != isFloat)", new: "float != nil",
		test: "gateway/query/engine/stage TestAligned_isPerSeries",
	}, {
		name: "aligned-integers-and-floats-of-a-row", file: "pushdown/operator/aligned.go",
		old: "(float != nil || g.hours > 0 && g.floats != isFloat)", new: "g.hours > 0 && g.floats != isFloat",
		test: "gateway/query/engine/stage TestAligned_isPerSeries",
	}, {
		name: "aligned-integers-and-floats-of-two-parts",
		file: "gateway/query/merge/aligned.go",
		old:  "		if n > 0 && rows[n-1].floats != row.floats {\n",
		new:  "		if n > 0 && rows[n-1].floats && !row.floats {\n",
		test: "gateway/query/engine/stage TestAligned_everyType",
	}, {
		name: "aligned-rate-between-parts-left-out", file: "gateway/query/merge/aligned.go",
		old: "			row.bits[0] = a.ratesBetween(rows[n-1], row)\n", new: "			from = 1\n",
		test: "gateway/query/engine/stage TestAligned_takes",
	}, {
		name: "aligned-rate-between-parts-from-the-first-point", file: "gateway/query/merge/aligned.go",
		old: "before.members[k].last, bits", new: "before.members[k].first, bits",
		test: "gateway/query/engine/stage TestAligned_takes",
	}, {
		name: "aligned-rate-between-hours-from-the-first-point",
		file: "pushdown/operator/aligned.go",
		old:  "	m.last = encoding.Value{Float: isFloat, Bits: bits[n-1]}\n",
		new:  "	m.last = encoding.Value{Float: isFloat, Bits: bits[0]}\n",
		test: "gateway/query/engine/stage TestAligned_takes",
	}, {
		name: "aligned-infinity-answered", file: "gateway/query/merge/aligned.go",
		old: "row.floats && math.IsInf(v, 0)", new: "row.floats && math.IsInf(v, 1)",
		test: "gateway/query/engine/stage TestAligned_isPerSeries",
	}, {
		name: "aligned-annotations-of-others", file: "pushdown/operator/aligned.go",
		old: "append(row.NoteSpan, int32(i))", new: "append(row.NoteSpan, int32(i*0))",
		test: "gateway/query/engine/stage TestAligned_takes",
	}, {
		name: "aligned-drops-resets",
		file: "pushdown/operator/aggregate/aligned.go",
		old:  "		(p.Rate == nil || !p.Rate.Counter || !p.Rate.DropResets)\n",
		new:  "		(p.Rate == nil || true)\n",
		test: "gateway/query/engine/stage TestAligned_isPerSeries",
	}, {
		name: "small-groups-forgotten", file: "gateway/query/engine/stage/aggregation.go",
		old: "a.Stats.Partial > 0 || s.small", new: "a.Stats.Partial > 1<<20 || s.small",
		test: "TestAggregation_smallGroups",
	}, {
		name: "small-groups-only-where-shipped", file: "gateway/query/engine/stage/aggregation.go",
		old: "a.Stats.Remote == 0 && series > maxSmallGroups", new: "a.Stats.Remote == 0",
		test: "gateway/query/engine TestSmallGroups_inProcess",
	}, {
		name: "few-rows-as-partial-aggregates", file: "gateway/query/dispatch/aggregation.go",
		old: "	case at.path.Few:\n", new: "	case at.path.Few && at.sideBySide:\n",
		test: "TestExplain_fewRows",
	}, {
		name: "aligned-seam-from-the-first-part", file: "gateway/query/merge/aligned.go",
		old: "a.ratesBetween(rows[n-1], row)", new: "a.ratesBetween(rows[0], row)",
		test: "gateway/query/engine/stage TestAligned_takes",
	}, {
		name: "aligned-seam-of-another-series",
		file: "gateway/query/merge/aligned.go",
		old:  "		for before.members[k].span != member.span {\n			k++\n		}\n",
		new:  "		k = i\n",
		test: "gateway/query/engine/stage TestAligned_everyHole",
	}, {
		name: "aligned-annotations-alone-lost", file: "pushdown/operator/aligned.go",
		old: "		if sp.aligned != nil || len(sp.annotations) == 0 {\n", new: "		if true {\n",
		test: "gateway/query/engine/stage TestAligned_isPerSeries",
	}, {
		name: "regions-known-for-ever", file: "gateway/query/dispatch/regionlist.go",
		old: "age >= regionsAtMost", new: "age >= 1000*regionsAtMost",
		test: "TestRegionLists",
	}, {
		name: "bits-past-the-end", file: "encoding/onlybits.go",
		old: "	return isTrailer(value[at:])\n", new: "	return true\n",
		test: "TestOnlyBits_equalsCellByCell",
	},
}
