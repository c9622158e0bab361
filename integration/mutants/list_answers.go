package main

// ofAnswers are faults of the forms in which answers leave the gateway.
var ofAnswers = []mutant{
	{
		name: "last-batch-not-sent", file: "encoding/batch/results.go",
		old: "	if err := r.Flush(); err != nil {\n		return err\n	}\n	return r.stream.out.Close()", new: "	return r.stream.out.Close()",
		test: "TestResultWriter_batches",
	}, {
		name: "gap-sent-as-nan", file: "encoding/batch/resultrows.go",
		old: "	if !nanIsNull {\n		return", new: "	if true {\n		return",
		test: "TestResultWriter_random",
	}, {
		name: "gap-in-pairs", file: "gateway/api/httpapi/queryroutes/json.go",
		old: "AppendValue(o.buf, v, r.NaNIsNull)", new: "AppendValue(o.buf, v, r.NaNIsNull || o.q.Arrays)",
		test: "gateway TestQuery_forms",
	}, {
		name: "json-said-to-be-text", file: "gateway/api/httpapi/queryroutes/json.go",
		old: `h.Set("Content-Type", "application/json; charset=UTF-8")`, new: `h.Set("Content-Type", "text/plain; charset=UTF-8")`,
		test: "gateway TestQuery_forms",
	}, {
		name: "last-group-left-out-of-a-delta", file: "gateway/live/update.go",
		old: "range d.upserts {", new: "range d.upserts[:max(0, len(d.upserts)-1)] {",
		test: "TestJSONOfUpdates",
	}, {
		name: "version-before-the-points", file: "gateway/api/telnet/lines.go", // which it acknowledges
		old: "	c.awaitCommits(everyBatch)\n", new: "	c.awaitCommits(doneBatches)\n",
		test: "TestAcknowledgement_waits",
	}, {
		name: "last-points-of-a-put-not-waited-for", file: "gateway/api/httpapi/putroutes/store.go",
		old: "range pending {", new: "range pending[:max(0, len(pending)-1)] {",
		test: "gateway TestPut_flags",
	}, {
		name: "profiles-for-readers", file: "gateway/api/httpapi/adminroutes/handlers.go",
		old: `routes["debug/pprof/"] = httpio.Endpoint{Scope: auth.All,`, new: `routes["debug/pprof/"] = httpio.Endpoint{Scope: auth.Read,`,
		test: "gateway TestProfiles",
	}, {
		name: "point-at-the-border-of-two-buckets", file: "pushdown/operator/downsample/bucketer.go",
		old: "		if o >= end {\n", new: "		if o > end {\n",
		test: "TestAppendHour",
	},
}
