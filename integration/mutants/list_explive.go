package main

// ofLiveExpressions are faults of expressions that are kept up to date.
var ofLiveExpressions = []mutant{
	{
		name: "times-not-passed-at-the-end", file: "gateway/live/changefeed/expressions.go",
		old: "between(r.Points.Time, x.end+1, now.End+1)", new: "between(r.Points.Time, x.end+1, now.End)",
		test: "TestExp_computesChanges",
	}, {
		name: "tables-not-computed-after-a-change", file: "gateway/live/changefeed/expressions.go",
		old: "whole = whole || !all[i].empty()", new: "whole = whole || all[i].all",
		test: "TestExpLaw",
	}, {
		name: "times-of-a-view-given-away", file: "gateway/live/changefeed/expressions.go",
		old: "Time: slices.Clone(times[:n])", new: "Time: times[:n]",
		test: "TestExp_answersStay",
	}, {
		name: "views-dropped-with-an-empty-intersection", file: "gateway/live/changefeed/changefeed.go",
		old: "		s.fresh = true // the views are as they should be\n", new: "		s.reset()\n",
		test: "TestExp_waitsForSeries",
	}, {
		name: "final-before-its-time", file: "gateway/live/changefeed/changefeed.go",
		old: "min(s.finalBefore(now), q.End)", new: "s.finalBefore(now)",
		test: "TestExpLaw",
	}, {
		name: "expressions-share-with-queries", file: "gateway/live/query.go",
		old: `fmt.Sprintf("%t %t %s", r.Exp, q.seconds, canonical)`, new: `fmt.Sprintf("%t %s", q.seconds, canonical)`,
		test: "TestExpressionsShareAnEvaluator",
	}, {
		name: "empty-intersection-ends-the-subscription",
		file: "gateway/live.go",
		old:  "errors.As(err, &unknown) || errors.As(err, &data) ||",
		new:  "errors.As(err, &unknown) || errors.As(err, &data) && false ||",
		test: "integration/story TestStories/live_expressions",
	}, {
		name: "group-tags-compare-all-of-a-filter", file: "gateway/query/exp/join.go",
		old: "(f.grouped || !j.UseGroupTags)", new: "(f.grouped || !j.UseGroupTags || f.key != \"\")",
		test: "integration/story TestStories/expressions",
	},
}
