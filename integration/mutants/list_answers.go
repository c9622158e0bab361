package main

// ofAnswers are faults of the forms in which answers leave the gateway.
var ofAnswers = []mutant{
	{
		name: "last-batch-not-sent",
		file: "encoding/batch/results.go",
		old:  "	if err := r.Flush(); err != nil {\n		return err\n	}\n	return r.stream.out.Close()",
		new:  "	return r.stream.out.Close()",
		test: "TestResultWriter_batches",
	}, {
		name: "gap-in-pairs", file: "gateway/api/httpapi/queryroutes/json.go",
		old: "AppendValue(o.buf, v, r.NaNIsNull)", new: "AppendValue(o.buf, v, r.NaNIsNull || o.q.Arrays)",
		test: "integration/story TestStories/query_forms",
	}, {
		name: "json-said-to-be-text",
		file: "gateway/api/httpapi/queryroutes/json.go",
		old:  `h.Set("Content-Type", "application/json; charset=UTF-8")`,
		new:  `h.Set("Content-Type", "text/plain; charset=UTF-8")`,
		test: "integration/story TestStories/query_forms",
	}, {
		name: "profiles-for-readers",
		file: "gateway/api/httpapi/adminroutes/handlers.go",
		old:  `routes["debug/pprof/"] = httpio.Endpoint{Scope: auth.All,`,
		new:  `routes["debug/pprof/"] = httpio.Endpoint{Scope: auth.Read,`,
		test: "gateway TestProfiles",
	},
}
