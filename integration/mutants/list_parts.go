package main

// ofTheWire are faults between gateway and pushdown server.
var ofTheWire = []mutant{
	{
		name: "other-layout-served", file: "pushdown/rpc/server/service.go",
		old: "got != want {", new: "got == want+`.` {",
		test: "pushdown/rpc/server TestDoGet_errors",
	}, {
		name: "token-of-the-start-sent", file: "pushdown/rpc/auth/auth.go",
		old: "	t.refresh(time.Now())\n	return t.sent\n", new: "	return t.sent\n",
		test: "TestTokens_Sends",
	}, {
		name: "silent-server-waited-for", file: "pushdown/rpc/client/remote.go",
		old: "func() { r.cancel(wire.ErrStalled) }", new: "func() {}",
		test: "pushdown/rpc/server TestDoGet_stall",
	}, {
		name: "length-in-a-message-believed", file: "pushdown/rpc/client/client.go",
		old: "	opts.Mem = cappedAllocator{opts.Mem}\n", new: "",
		test: "pushdown/rpc/server TestClient_badBatches",
	}, {
		name: "waiting-part-kept-at-the-end", file: "pushdown/rpc/server/slots.go",
		old: "	case <-stop:\n", new: "	case <-chan struct{}(nil):\n",
		test: "pushdown/rpc/server TestServe_drainRefuses",
	},
}

// ofTheCoverage are faults of cutting a plan and of adding up its parts.
var ofTheCoverage = []mutant{
	{
		name: "states-of-any-number-of-buckets", file: "gateway/query/dispatch/aggregation.go",
		old: ".Grid(plan.Downsample) > maxPartialBuckets:", new: ".Grid(plan.Downsample) < 0:",
		test: "gateway TestMode_manyBuckets",
	}, {
		name: "states-of-any-size", file: "pushdown/operator/grouping.go",
		old: "limit > 0 && need > limit {", new: "limit < 0 {",
		test: "gateway TestMode_manyBuckets",
	}, {
		name: "cut-at-any-hour", file: "gateway/query/dispatch/cumulative.go",
		old: "n > twos {", new: "twos < 0 {",
		test: "TestCut_movingWindow",
	}, {
		name: "refused-plan-ends-the-query", file: "gateway/query/dispatch/errors.go", // a server of another version
		old: "		return inProcess\n", new: "		return inProcess || true\n",
		test: "TestRun_chaos",
	},
}
