package main

// ofLiveQueries are faults of live queries.
var ofLiveQueries = []mutant{
	{
		name: "final-before-the-gap", file: "gateway/live/standing/final.go", // which the next point fills
		old: "	return min(open, c.Time[before-1]+t.interval())\n", new: "	return open\n",
		test: "gateway/live/follow TestFinalBefore",
	}, {
		name: "one-rate-is-settled", file: "gateway/live/standing/final.go",
		old: "before < 2:", new: "before < 1:",
		test: "gateway/live/follow TestFinalBefore_values",
	}, {
		name: "merged-cells-unnoticed", file: "gateway/live/follow/kept.go",
		old: "				return row, true, true\n", new: "				return row, changed, false\n",
		test: "TestSplice",
	}, {
		name: "late-point-in-a-kept-row", file: "gateway/live/follow/poller.go",
		old: "		p.looked = now\n		p.rewind()\n", new: "		p.looked = now\n",
		test: "TestPoller_late",
	}, {
		name: "idle-store-not-looked-at", file: "gateway/live/follow/probe.go",
		old: "		return unreadable(ctx, err)\n", new: "		return nil\n",
		test: "TestProbe",
	},
}
