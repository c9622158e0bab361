package main

// ofStates are faults of partial aggregates.
var ofStates = []mutant{
	{
		name: "proof-of-a-sum-ignored", file: "gateway/query/merge/join.go",
		old: "return !j.sum.Exact(i)", new: "return false",
		test: "gateway/query/dispatch TestCutting_oneAnswer",
	}, {
		name: "highest-bit-for-the-lowest", file: "pushdown/operator/aggregate/proof.go",
		old: "	p.Low[i] = min(p.Low[i], o.Low[k])\n", new: "	p.Low[i] = max(p.Low[i], o.Low[k])\n",
		test: "TestProof_anyOrder",
	}, {
		name: "bound-sent-too-small", file: "pushdown/operator/aggregate/proof.go",
		old: "math.Ldexp(1, int(high[i]))", new: "math.Ldexp(1, int(high[i])-1)",
		test: "TestProof_shipped",
	}, {
		name: "several-addends-taken-for-one", file: "pushdown/operator/aggregate/proof.go",
		old: "case len(low) == 0 && live > 1:", new: "case len(low) == 0 && live > 2:",
		test: "TestProof_shipped",
	}, {
		name: "unknown-edge-taken-for-zero",
		file: "gateway/query/merge/join.go",
		old:  "if earlier && !a.knowsLast || later && !b.knowsFirst {",
		new:  "if earlier && a.last < 0 || later && b.first < 0 {",
		test: "gateway/query/dispatch TestCutting_oneAnswer",
	}, {
		name: "absent-series-not-filled", file: "gateway/query/merge/join.go",
		old: "n -= g.members", new: "n = 0",
		test: "gateway/query/dispatch TestCutting_oneAnswer",
	}, {
		name: "sign-of-zero-ignored", file: "gateway/query/merge/join.go",
		old: "} else if j.fn.Tie(j.sum, k, v) {", new: "} else if v > 0 && j.fn.Tie(j.sum, k, v) {",
		test: "gateway/query/dispatch TestCutting_oneAnswer",
	}, {
		name: "refusal-of-the-merge-ignored", file: "gateway/query/engine/stage/aggregation.go",
		old: "errors.Is(err, merge.ErrOrder) ||", new: "errors.Is(err, merge.ErrOrder) && r.Plan == nil ||",
		test: "gateway TestMode_fallsBack",
	}, {
		name: "uneven-times-sent-as-even", file: "encoding/batch/even.go",
		old: "		if t-times[i+1] != step {\n", new: "		if t-times[i+1] != step && i == 0 {\n",
		test: "TestSeries_roundTrip",
	}, {
		name: "byte-counted-from-the-wrong-name", file: "encoding/batch/names.go",
		old: "			if i < len(n) {\n				dst = append(dst, n[i]-last)\n" +
			"				last = n[i]\n			}\n",
		new: "			if i < len(n) {\n				dst = append(dst, n[i]-last)\n" +
			"				last = n[i]\n			} else {\n" +
			"				last = 0\n			}\n",
		test: "TestNames_roundTrip",
	},
}

// ofTheMerge are faults of merge and arithmetic.
var ofTheMerge = []mutant{
	{
		name: "spans-not-sorted",
		file: "gateway/query/merge/merger.go",
		old:  "	slices.SortFunc(m.kept, func(a, b *seriesData) int { return bytes.Compare(a.id, b.id) })\n",
		new:  "	slices.SortFunc(m.kept, func(a, b *seriesData) int { return bytes.Compare(b.id, a.id) })\n",
		test: "TestConformance",
	}, {
		name: "times-as-many-taken-for-the-same",
		file: "gateway/query/merge/memory.go",
		old:  "if !slices.Equal(s.last, times) {",
		new:  "if len(s.last) != len(times) || slices.Equal(s.last[:0], times) {",
		test: "TestTimes_shared",
	},
}
