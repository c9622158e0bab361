package main

// ofHistograms are faults of histograms: their bytes, sums, percentiles and lines, and of
// keeping them apart from points.
var ofHistograms = []mutant{
	{
		name: "histogram-first-of-equal-bounds-kept",
		file: "encoding/histogram.go",
		old:  "if i+1 == len(h.Buckets) || b.CompareBounds(&h.Buckets[i+1]) != 0 {",
		new:  "if i == 0 || b.CompareBounds(&h.Buckets[i-1]) != 0 {",
		test: "TestHistogram_order",
	}, {
		name: "histogram-sum-of-others-buckets-lost", file: "encoding/histogram.go",
		old: "	h.Buckets = append(append(both, a...), b...)", new: "	h.Buckets = append(both, a...)",
		test: "TestHistogram_add",
	}, {
		name: "percentile-in-64-bits", file: "encoding/histogram.go",
		old: "return float64((b.Lower + b.Upper) / 2)", new: "return (float64(b.Lower) + float64(b.Upper)) / 2",
		test: "TestHistogram_percentile",
	}, {
		name: "histogram-group-overwrites", file: "pushdown/operator/histogram/sums.go",
		old: "	sum.Add(h)\n", new: "	*sum = encoding.Histogram{Buckets: slices.Clone(h.Buckets)}\n",
		test: "gateway/query/merge TestHistograms_anyCut",
	}, {
		name: "histogram-of-another-codec-read", file: "pushdown/operator/histograms.go",
		old: "int(got) != h.plan.Histograms.Codec {", new: "int(got) != h.plan.Histograms.Codec && false {",
		test: "gateway/query/merge TestHistograms_errors",
	}, {
		name: "histogram-first-inside-the-query-names-buckets", file: "gateway/query/merge/histogram.go",
		old: "bucketLines(g.At(times[0]))", new: "bucketLines(g.At(inside[0]))",
		test: "TestHistograms_lines",
	}, {
		name: "cached-histograms-of-another-codec",
		file: "pushdown/resultcache/key.go",
		old:  "p.Plan.Histograms = &scanplan.Histograms{Codec: h.Codec}",
		new:  "p.Plan.Histograms = &scanplan.Histograms{}",
		test: "TestKey_histograms",
	}, {
		name: "cached-histograms-for-points", file: "pushdown/resultcache/key.go",
		old: "p.Plan.Histograms = &scanplan.Histograms{Codec: h.Codec}", new: "p.Plan.Histograms = nil",
		test: "TestKey_histograms",
	}, {
		name: "histogram-negative-count-taken", file: "gateway/write/histogram.go",
		old: "	case b.Count < 0:\n", new: "	case b.Count < -1<<62:\n",
		test: "integration/story TestStories/histograms_refused",
	},
}
