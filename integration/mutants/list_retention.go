package main

// ofRetention are faults of the deletion of old rows, each of which deletes younger ones, or lets
// deleted ones be answered.
var ofRetention = []mutant{
	{
		name: "retention-of-rollups-by-the-hour", file: "gateway/extra/retention/ranges.go",
		old: "m.age.Cut(now, t.Span)", new: "m.age.Cut(now, rules.Hour)",
		test: "TestRun_drawn",
	}, {
		name: "retention-of-rollups-as-of-points", file: "gateway/extra/retention/ranges.go",
		old: "n.rule.Age(t.Interval)", new: `n.rule.Age("")`,
		test: "TestRun_drawn",
	}, {
		name: "retention-by-any-name", file: "gateway/extra/retention/ranges.go",
		old: "rules.Longest(m.age, n.age) == n.age", new: "rules.Longest(m.age, n.age) != n.age",
		test: "TestRun_sharedUID",
	}, {
		name: "retention-beyond-what-is-allowed", file: "gateway/extra/retention/job.go",
		old: "		if rows > allowed {\n", new: "		if rows > allowed+100 {\n",
		test: "TestRun_guard",
	}, {
		name: "retention-of-hours-never-looked-at-again", file: "gateway/extra/retention/worker.go",
		old: "	if from == 0 {\n", new: "	if true {\n",
		test: "TestWorker",
	}, {
		name: "retention-unseen-by-timestamps",
		file: "gateway/extra/retention/delete.go",
		old:  "Family: encoding.FamilyData,\n		})",
		new:  "Family: encoding.FamilyData,\n			Timestamp: 1,\n		})",
		test: "TestRun_proofs",
	}, {
		name: "retention-by-two-at-once",
		file: "gateway/extra/retention/leased.go",
		old:  "	t, ok, err := l.leases.Try(ctx, l.name)\n",
		new:  "	t, ok, err := l.leases.Try(ctx, l.name+l.leases.Holder)\n",
		test: "TestWorker_leased",
	}, {
		name: "retention-takes-what-failed-for-done",
		file: "gateway/extra/retention/worker.go",
		old:  "	if err != nil && !errors.As(err, &place) {\n		return err\n",
		new:  "	if err != nil && report == nil {\n		return err\n",
		test: "gateway/extra/retention TestWorker_noWrites",
	}, {
		name: "retention-of-a-refused-run-believed", file: "gateway/extra/retention/worker.go",
		old: "		if refused.ahead == 0 {\n", new: "		if refused.ahead >= 0 {\n",
		test: "TestWorker_clockJumps",
	}, {
		name: "retention-believes-its-own-points", file: "gateway/extra/retention/clock.go",
		old: "if j.Own == nil || slices.ContainsFunc(", new: "if true || slices.ContainsFunc(",
		test: "TestRun_clockAhead",
	}, {
		name: "retention-ends-at-a-failing-table", file: "gateway/extra/retention/failed.go",
		old: "	p.err = err\n	p.forget()\n	return nil\n", new: "	return err\n",
		test: "TestRun_tables",
	}, {
		name: "retention-goes-on-without-the-right",
		file: "gateway/extra/retention/failed.go",
		old:  "ctx.Err() != nil || errors.Is(err, store.ErrDenied) ||",
		new:  "ctx.Err() != nil || errors.Is(err, store.ErrDenied) && false ||",
		test: "TestRun_tables",
	}, {
		name: "retention-of-the-dead-waits", file: "gateway/extra/retention/worker.go",
		old: "return heldEvery, nil", new: "return askEvery, nil",
		test: "TestWorker_leased",
	}, {
		name: "meta-of-series-with-rollups",
		file: "gateway/extra/retention/meta.go",
		old:  "		if i, ok := p.byUID[string(metric)]; ok && expired {\n",
		new: "		if p.table.Interval != \"\" {\n			continue\n		}\n" +
			"		if i, ok := p.byUID[string(metric)]; ok && expired {\n",
		test: "TestMeta",
	}, {
		name: "meta-of-those-who-put-meanwhile",
		file: "gateway/extra/retention/meta.go",
		old:  "		if hasNoRow && stored.Value(string(row.Key), encoding.MetaCounterQualifier) == nil {\n",
		new:  "		if hasNoRow || stored == nil {\n",
		test: "TestMeta_points",
	}, {
		name: "meta-known-for-ever", file: "gateway/metadata/meta/record.go",
		old: "	if age := now.Sub(k.since); age < 0 || age >= knownFor {\n", new: "	if k.since.IsZero() {\n",
		test: "gateway/extra/retention TestMeta_tracked",
	}, {
		name: "ranges-never-reclaimed", file: "pushdown/store/pebble/reclaim.go",
		old: "	return deleted >= max(reclaimLeast, all/reclaimPart), err\n", new: "	return deleted > all, err\n",
		test: "TestReclaim",
	}, {
		name: "reclaim-without-reserve", file: "pushdown/store/pebble/space.go",
		old: "	maxReserve  = reclaimStep + keepFree\n", new: "	maxReserve  = keepFree\n",
		test: "TestReclaim_whilePutsAreRefused",
	}, {
		name: "reclaim-in-one-step", file: "pushdown/store/pebble/reclaim.go",
		old: "		if n == 1 {\n", new: "		if n >= 1 {\n",
		test: "TestReclaim_steps",
	}, {
		name: "place-runs-anew",
		file: "gateway/extra/retention/worker.go",
		old:  "	if err != nil && !errors.As(err, &place) {\n		return err\n",
		new:  "	if err != nil {\n		return err\n",
		test: "TestWorker_place",
	}, {
		name: "place-forgotten", file: "gateway/extra/retention/worker.go",
		old: "	s.Place = s.Place || place != nil\n", new: "",
		test: "TestWorker_place",
	},
}
