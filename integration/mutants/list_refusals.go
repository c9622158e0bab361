package main

// ofRefusals are live requests that no data can answer and that cost all the same, and
// what is refused, left out or dropped without a word.
var ofRefusals = []mutant{
	{
		name: "rows-read-for-nothing", file: "gateway/live/changefeed/expressions.go",
		old: "return x.lastRead.Query, x.lastRead.Request.Joinable()", new: "return x.lastRead.Query, nil",
		test: "TestExp_refusesBeforeItReads",
	}, {
		name: "capital-letters-of-the-first-expression",
		file: "gateway/query/exp/evaluate.go",
		old:  "	for _, i := range r.order {\n		if err := r.Expressions[i].joinable()",
		new:  "	for _, i := range r.order[:min(1, len(r.order))] {\n		if err := r.Expressions[i].joinable()",
		test: "TestTables_errors",
	}, {
		name: "capital-letters-are-found",
		file: "gateway/query/exp/evaluate.go",
		old:  "	if err := e.joinable(); err != nil {\n",
		new:  "	if err := e.joinable(); err != nil && len(e.parsed.Variables) > 1 {\n",
		test: "TestTables_errors",
	}, {
		name: "refused-request-asked-again", file: "gateway/live.go",
		old: "errors.As(err, &data) ||", new: "errors.As(err, &data) || answer.Message[0] == 'M' ||",
		test: "integration/story TestStories/live_expressions",
	}, {
		name: "limit-of-a-bucket-for-all", file: "gateway/metadata/lookup/lookup.go",
		old: " || w.metric == nil: // one", new: ": // one",
		test: "TestFind_saltedLimit",
	}, {
		name: "dropped-uids-not-told", file: "gateway/metadata/meta/tracker.go",
		old: "		t.dropped++\n", new: "",
		test: "TestTracker_toldWhatIsDropped",
	},
}
