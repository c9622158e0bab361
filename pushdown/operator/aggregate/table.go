package aggregate

// table has all traits of every aggregator: no other code compares names of functions.
// Interpolations and arithmetic are those of OpenTSDB 2.4.1; 2.4.0 differs in the value
// of MIN for doubles.
var table = [...]Function{
	{Name: "sum", Class: Distributive, Interpolation: LERP, arithmetic: sums, merging: mergeSums},
	{Name: "zimsum", Class: Distributive, Interpolation: ZIM, arithmetic: sums, merging: mergeSumsOverZeros},
	{Name: "pfsum", Class: Distributive, Interpolation: PREV, arithmetic: sums, merging: mergeSums},
	{Name: "min", Class: Distributive, Interpolation: LERP, arithmetic: minima, merging: mergeExtremes},
	{Name: "max", Class: Distributive, Interpolation: LERP, arithmetic: maxima, merging: mergeExtremes},
	{Name: "mimmin", Class: Distributive, Interpolation: MAX, arithmetic: minima, merging: mergeExtremes},
	{Name: "mimmax", Class: Distributive, Interpolation: MIN, arithmetic: maxima, merging: mergeExtremes},
	{Name: "mult", Class: Distributive, Interpolation: LERP, arithmetic: products, merging: mergeProducts},
	{
		Name:          "squareSum",
		Class:         Distributive,
		Interpolation: ZIM,
		arithmetic:    sumsOfSquares,
		merging:       mergeSumsOfSquares,
	},
	{
		Name:          "count",
		Class:         Distributive,
		Interpolation: ZIM,
		arithmetic:    counts,
		merging:       mergeCounts,
		gapsFixable:   true,
	},

	{Name: "avg", Class: Algebraic, Interpolation: LERP, arithmetic: averages, merging: mergeSums},
	{Name: "dev", Class: Algebraic, Interpolation: LERP, arithmetic: deviations, merging: mergeDeviations},

	{Name: "median", Class: Holistic, Interpolation: LERP, arithmetic: medians, merging: mergeResults},
	{Name: "p50", Class: Holistic, Interpolation: LERP, arithmetic: percentile(50, legacy), merging: mergeResults},
	{Name: "p75", Class: Holistic, Interpolation: LERP, arithmetic: percentile(75, legacy), merging: mergeResults},
	{Name: "p90", Class: Holistic, Interpolation: LERP, arithmetic: percentile(90, legacy), merging: mergeResults},
	{Name: "p95", Class: Holistic, Interpolation: LERP, arithmetic: percentile(95, legacy), merging: mergeResults},
	{Name: "p99", Class: Holistic, Interpolation: LERP, arithmetic: percentile(99, legacy), merging: mergeResults},
	{Name: "p999", Class: Holistic, Interpolation: LERP, arithmetic: percentile(99.9, legacy), merging: mergeResults},
	{Name: "ep50r3", Class: Holistic, Interpolation: LERP, arithmetic: percentile(50, r3), merging: mergeResults},
	{Name: "ep75r3", Class: Holistic, Interpolation: LERP, arithmetic: percentile(75, r3), merging: mergeResults},
	{Name: "ep90r3", Class: Holistic, Interpolation: LERP, arithmetic: percentile(90, r3), merging: mergeResults},
	{Name: "ep95r3", Class: Holistic, Interpolation: LERP, arithmetic: percentile(95, r3), merging: mergeResults},
	{Name: "ep99r3", Class: Holistic, Interpolation: LERP, arithmetic: percentile(99, r3), merging: mergeResults},
	{Name: "ep999r3", Class: Holistic, Interpolation: LERP, arithmetic: percentile(99.9, r3), merging: mergeResults},
	{Name: "ep50r7", Class: Holistic, Interpolation: LERP, arithmetic: percentile(50, r7), merging: mergeResults},
	{Name: "ep75r7", Class: Holistic, Interpolation: LERP, arithmetic: percentile(75, r7), merging: mergeResults},
	{Name: "ep90r7", Class: Holistic, Interpolation: LERP, arithmetic: percentile(90, r7), merging: mergeResults},
	{Name: "ep95r7", Class: Holistic, Interpolation: LERP, arithmetic: percentile(95, r7), merging: mergeResults},
	{Name: "ep99r7", Class: Holistic, Interpolation: LERP, arithmetic: percentile(99, r7), merging: mergeResults},
	{Name: "ep999r7", Class: Holistic, Interpolation: LERP, arithmetic: percentile(99.9, r7), merging: mergeResults},

	{Name: "diff", Class: Ordered, Interpolation: LERP, arithmetic: differences, merging: mergeDifferences},
	{Name: "first", Class: Ordered, Interpolation: ZIM, arithmetic: firsts, merging: mergeFirsts, gapsFixable: true},
	{Name: "last", Class: Ordered, Interpolation: ZIM, arithmetic: lasts, merging: mergeLasts, gapsFixable: true},
	{Name: "none", Class: Ordered, Interpolation: ZIM, arithmetic: firsts, identity: true},
}
