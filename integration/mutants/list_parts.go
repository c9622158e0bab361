package main

// ofTheWire are faults between gateway and pushdown server.
var ofTheWire = []mutant{
	{
		name: "rollup-parts-that-are-empty", file: "gateway/query/dispatch/cut.go",
		old: "if key := hourKey(plan, r, hour); strictlyInside(r, key) {", new: "if key := hourKey(plan, r, hour); strictlyInside(r, key) || true {",
		test: "TestCut_property",
	}, {
		name: "end-of-stream-error-ignored", file: "pushdown/rpc/client/remote.go",
		old: "	if err != nil {\n		return r.client.named(err)\n	}\n	shipped", new: "	_ = err\n	shipped",
		test: "pushdown/rpc/server TestClient_incomplete",
	}, {
		name: "lost-batch-not-counted", file: "pushdown/rpc/wire/wire.go",
		old: "if c.Batches != batches {", new: "if false {",
		test: "TestComplete",
	}, {
		name: "other-layout-served", file: "pushdown/rpc/server/service.go",
		old: "got != want {", new: "got == want+`.` {",
		test: "pushdown/rpc/server TestDoGet_errors",
	}, {
		name: "unknown-field-ignored", file: "encoding/scanplan/codec.go",
		old: "	dec.DisallowUnknownFields()\n", new: "",
		test: "TestParseTicket_refusesText",
	}, {
		name: "token-of-the-start-sent", file: "pushdown/rpc/auth/auth.go",
		old: "	t.refresh(time.Now())\n	return t.sent\n", new: "	return t.sent\n",
		test: "TestTokens_Sends",
	}, {
		name: "token-of-an-administrator-sent", file: "pushdown/rpc/auth/auth.go",
		old: "token, fewest = e.token, bits.OnesCount8(uint8(scope))", new: "token, fewest = e.token, 0",
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
		name: "borders-in-a-message-believed", file: "pushdown/rpc/client/validate.go",
		old: "if b < last || int(b) > length {", new: "if b < last && int(b) > length {",
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
		name: "attempt-merged-twice", file: "gateway/query/dispatch/coverage.go",
		old: "		c.holes = slices.Replace(c.holes, i, i+1, rest...)\n		return true\n", new: "		if len(rest) == 0 {\n			c.holes = slices.Delete(c.holes, i, i+1)\n		}\n		return true\n",
		test: "TestCoverage",
	}, {
		name: "interval-accepted-unwanted", file: "gateway/query/dispatch/coverage.go",
		old: "|| !stopsBy(r.Stop, hole.Stop)", new: "",
		test: "TestCoverage",
	}, {
		name: "hole-not-issued-again", file: "gateway/query/dispatch/coverage.go",
		old: "return len(c.holes) == 0 }", new: "return len(c.holes) <= 1 }",
		test: "TestRun_chaos",
	}, {
		name: "failed-attempt-kept", file: "gateway/query/dispatch/run.go", // its late batches are accepted
		old: "	if a.err == nil {\n		return r.accept(a)\n", new: "	if a.err == nil || len(a.records) > 0 {\n		return r.accept(a)\n",
		test: "TestRun_chaos",
	}, {
		name: "missing-ranges-not-told", file: "gateway/query/dispatch/errors.go",
		old: "	return &IncompleteError{Ranges: missing, Err: failure}\n", new: "	return nil\n",
		test: "TestRun_missing",
	}, {
		name: "salt-bucket-left-out", file: "gateway/query/plan/compile.go",
		old: "	for b := range s.Buckets() {\n", new: "	for b := range max(1, s.Buckets()-1) {\n",
		test: "TestGolden",
	}, {
		name: "cut-loses-a-row", file: "gateway/query/dispatch/cut.go",
		old: "		start = b\n", new: "		start = append(bytes.Clone(b), 0)\n",
		test: "TestCut_property",
	}, {
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
		name: "cut-by-size-behind-the-end", file: "gateway/query/dispatch/cumulative.go",
		old: "if float64(h) >= to {", new: "if false {",
		test: "TestCut_bytesFromBorders",
	}, {
		name: "refused-plan-ends-the-query", file: "gateway/query/dispatch/errors.go", // a server of another version
		old: "		return inProcess\n", new: "		return inProcess || true\n",
		test: "TestRun_chaos",
	},
}
