package main

// ofLeases are faults by which two do the work of one, or none does it.
var ofLeases = []mutant{
	{
		name: "lease-takes-the-slow-for-dead", file: "pushdown/lease/keeper.go",
		old: "	return now.Sub(s.since) >= k.deadAfter() ||", new: "	return now.Sub(s.since) >= k.heartbeat() ||",
		test: "TestTry_living",
	}, {
		name: "lease-of-the-dead-is-never-taken",
		file: "pushdown/lease/keeper.go",
		old:  "	return now.Sub(s.since) >= k.deadAfter() ||",
		new:  "	return now.Sub(s.since) >= 100*k.deadAfter() ||",
		test: "TestTake_dead",
	}, {
		name: "lease-forgets-the-state", file: "pushdown/lease/keeper.go",
		old: "Turn: turn, state: old.state}", new: "Turn: turn}",
		test: "TestTake_dead",
	}, {
		name: "lease-outlives-its-renewal",
		file: "pushdown/lease/lease.go",
		old:  "began.Add(l.keeper.deadAfter() - l.keeper.heartbeat())",
		new:  "began.Add(l.keeper.deadAfter() + time.Hour)",
		test: "TestTake_dead",
	}, {
		name: "lease-stays-with-who-was-cut-off", file: "pushdown/lease/keeper.go",
		old: "			_ = l.Release(settle)\n", new: "			_ = l\n",
		test: "TestTake_ended",
	}, {
		name: "compaction-under-a-lease-of-ones-own", file: "pushdown/compaction/background/worker.go",
		old: "compaction.LeaseName(w.cfg.Table, r.Start)", new: "compaction.LeaseName(w.cfg.Leases.Holder, r.Start)",
		test: "TestWorker_two",
	}, {
		name: "compaction-sees-the-dead-late", file: "pushdown/compaction/background/leases.go",
		old: "		r.dead = s.Expired\n", new: "		r.dead = false\n",
		test: "TestWorker_killedOfMany",
	}, {
		name: "compaction-forgets-how-far-it-is", file: "pushdown/compaction/background/region.go",
		old: "l.Save(ctx, state)", new: "l.Save(ctx, state[:0])",
		test: "TestWorker_two",
	}, {
		name: "compaction-of-the-regions-of-others", file: "pushdown/compaction/background/servers.go",
		old: `return w.cfg.Beside == "" ||`, new: "return true ||",
		test: "TestWorker_ofServer",
	}, {
		name: "compact-without-a-lease",
		file: "gateway/extra/tools/compact.go",
		old: "		return leases.Do(ctx, name, func(ctx context.Context, " +
			"_ *lease.Lease) error { return work(ctx) })\n",
		new:  "		_ = leases\n		return work(ctx)\n",
		test: "TestCompact_waits",
	}, {
		name: "regions-of-the-dead-left", file: "pushdown/compaction/background/servers.go",
		old: "|| w.unattended[r.Server]", new: "",
		test: "TestWorker_ofKilledServer",
	},
}
