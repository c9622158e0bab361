package aggregate

// table is every aggregator. Interpolations and arithmetic are those of
// OpenTSDB 2.4.1; 2.4.0 differs in what MIN gives for doubles.
var table = [...]Function{
	{"sum", Distributive, LERP, sumScalar, sumDouble, sumLong},
	{"zimsum", Distributive, ZIM, sumScalar, sumDouble, sumLong},
	{"pfsum", Distributive, PREV, sumScalar, sumDouble, sumLong},
	{"min", Distributive, LERP, minScalar, minDouble, minLong},
	{"max", Distributive, LERP, maxScalar, maxDouble, maxLong},
	{"mimmin", Distributive, MAX, minScalar, minDouble, minLong},
	{"mimmax", Distributive, MIN, maxScalar, maxDouble, maxLong},
	{"mult", Distributive, LERP, multScalar, multDouble, multLong},
	{"squareSum", Distributive, ZIM, squareScalar, squareDouble, squareLong},
	{"count", Distributive, ZIM, countScalar, countDouble, countLong},

	{"avg", Algebraic, LERP, avgScalar, avgDouble, avgLong},
	{"dev", Algebraic, LERP, devScalar, devDouble, devLong},

	{"median", Holistic, LERP, medianScalar, medianDouble, medianLong},
	percentile("p50", 50, legacy), percentile("p75", 75, legacy), percentile("p90", 90, legacy),
	percentile("p95", 95, legacy), percentile("p99", 99, legacy), percentile("p999", 99.9, legacy),
	percentile("ep50r3", 50, r3), percentile("ep75r3", 75, r3), percentile("ep90r3", 90, r3),
	percentile("ep95r3", 95, r3), percentile("ep99r3", 99, r3), percentile("ep999r3", 99.9, r3),
	percentile("ep50r7", 50, r7), percentile("ep75r7", 75, r7), percentile("ep90r7", 90, r7),
	percentile("ep95r7", 95, r7), percentile("ep99r7", 99, r7), percentile("ep999r7", 99.9, r7),

	{"diff", Ordered, LERP, diffScalar, diffDouble, diffLong},
	{"first", Ordered, ZIM, firstScalar, firstDouble, firstLong},
	{"last", Ordered, ZIM, lastScalar, lastDouble, lastLong},
	// none is the identity: a group of it has one member.
	{"none", Ordered, ZIM, firstScalar, firstDouble, firstLong},
}
