package main

// ofResultCache are answers that are given again although rows have changed, or to
// another question.
var ofResultCache = []mutant{
	{
		name: "identity-of-texts-run-together", file: "encoding/scanplan/identity.go",
		old: "append(b.number(int64(len(s))), s...)", new: "append(b, s...)",
		test: "TestIdentity_fieldsStayApart",
	}, {
		name: "marker-dropped-unseen", file: "pushdown/store/hbase/unchanged/storefiles.go",
		old: "	return kept\n", new: "	return kept || len(after) > 0\n",
		test: "TestStampedVersion_changes",
	}, {
		name: "bulk-load-unseen", file: "pushdown/store/hbase/unchanged/storefiles.go",
		old: "strings.Contains(f, \"_SeqId_\")", new: "strings.Contains(f, \"_SEQID_\")",
		test: "TestStampedVersion_changes",
	}, {
		name: "old-times-without-marker", file: "pushdown/store/hbase/replace.go",
		old: "Qualifier: changeMarker}", new: "Qualifier: changeMarker, Timestamp: 1}",
		test: "TestReplace_seenByTimestamps",
	}, {
		name: "slow-clock-trusted", file: "pushdown/store/hbase/unchanged/health.go",
		old: "	case lag > maxClockLag:\n", new: "	case lag > 100*maxClockLag:\n",
		test: "TestStampedVersion_conditions",
	}, {
		name: "unchecked-clock-dates-a-mark",
		file: "pushdown/store/hbase/unchanged/timestampproof.go",
		old:  "	if s.newMark = s.lastMark; s.lastMark.state == s.state {\n",
		new:  "	if s.newMark = s.lastMark; s.lastMark.state == s.state {\n		s.newMark.began = s.began\n",
		test: "TestStampedVersion_wrongClockAtRest",
	}, {
		name: "joins-an-execution-that-has-begun", file: "gateway/query/engine/stage/sharing.go",
		old: "	x.next.begun, x.next = true, nil\n", new: "	x.next.begun = true\n",
		test: "TestLaw_sharing",
	}, {
		name: "one-viewer-ends-all", file: "gateway/query/engine/stage/shared.go",
		old: "	if err != nil && ctx.Err() != nil && !dismissed {\n", new: "	if false {\n",
		test: "gateway/query/engine TestShared_leaderEnds",
	}, {
		name: "deleted-rows-shared", file: "gateway/query/engine/stage/shared.go",
		old: "	if q.Delete || q.AllowPartial", new: "	if q.AllowPartial",
		test: "gateway/query/engine TestShared_not",
	}, {
		name: "tail-without-the-rate-before", file: "gateway/query/merge/older.go",
		old: "			begin = t[i-1]\n", new: "			begin = t[i]\n",
		test: "TestStretch",
	}, {
		name: "older-hours-are-free", file: "gateway/query/engine/stage/split.go",
		old: "r.spend(ctx, &st.stats)", new: "r.spend(ctx, &dispatch.Stats{})",
		test: "gateway/query/engine TestStretch_budget",
	}, {
		name: "stretches-too-large-made-again", file: "gateway/query/engine/stage/split.go",
		old: "s.uncached.count(r.Plan, began) >= maxUncached", new: "false",
		test: "gateway/query/engine TestStretch_tooLarge",
	}, {
		name: "stretch-in-vain", file: "gateway/query/engine/stage/split.go",
		old: "!lookup.Wanted() || !lookup.Unchanged()", new: "!lookup.Wanted()",
		test: "gateway/query/engine TestStretch_notInVain",
	}, {
		name: "slow-arrow-reader-stays-heavy", file: "gateway/api/httpapi/queryroutes/arrow.go",
		old: "	entered.Computed()\n", new: "",
		test: "gateway TestFairness_slowReader",
	}, {
		name: "histograms-of-rollups", file: "gateway/query/plan/rollup.go",
		old: "	if c.sub.Histogram() {\n", new: "	if false {\n",
		test: "gateway TestHistogram_besideRollups",
	}, {
		name: "answers-are-free",
		file: "pushdown/resultcache/replay.go",
		old:  "r.opts.Budget.Spend(ctx, r.answer.stats.Points, r.answer.stats.Bytes)",
		new:  "r.opts.Budget.Spend(ctx, 0, 0)",
		test: "TestOpen_budget",
	}, {
		name: "data-time-overlooked", file: "pushdown/resultcache/timestamps.go",
		old: "equal > 0 && 2*equal >= r.cells.Load()", new: "equal > r.cells.Load()",
		test: "TestOpen_dataTime",
	}, {
		name: "shared-answer-held-unreserved",
		file: "gateway/query/engine/stage/shared.go",
		old:  "	if err := memory.Reserve(ctx, held); err != nil {\n",
		new:  "	if err := memory.Reserve(ctx, 0*held); err != nil {\n",
		test: "gateway/query/engine TestShared_reserves",
	}, {
		name: "whole-answer-of-changed-rows", file: "pushdown/resultcache/plan.go",
		old: "	if !same {\n", new: "	if !same && e.answer == nil {\n",
		test: "gateway/query/engine TestLaw_cached",
	}, {
		name: "mark-of-the-last-range",
		file: "pushdown/resultcache/plan.go",
		old:  "append(binary.AppendUvarint(all, uint64(len(v))), v...)",
		new:  "append(binary.AppendUvarint(all[:0], uint64(len(v))), v...)",
		test: "TestLookupPlan",
	}, {
		name: "whole-answer-unproven", file: "gateway/query/dispatch/resultcache.go",
		old: "s.CacheHits+s.CacheProven == int64(s.Parts)", new: "s.CacheHits+s.CacheProven <= int64(s.Parts)",
		test: "gateway/query/engine TestCached_dataTime",
	}, {
		name: "dear-mark-kept",
		file: "pushdown/store/hbase/unchanged/timestampproof.go",
		old:  "			p.marks.replace(s.key, s.lastMark, s.newMark)\n		}\n		return fmt",
		new: "			s.lastMark.nextScan = s.newMark.nextScan\n" +
			"			p.marks.replace(s.key, s.lastMark, s.lastMark)\n		}\n		return fmt",
		test: "TestStampedVersion_slow",
	}, {
		name: "whole-answers-are-free", file: "gateway/query/engine/stage/cached.go",
		old: "r.spend(ctx, &cached.stats)", new: "r.spend(ctx, &dispatch.Stats{})",
		test: "gateway/query/engine TestCached_budget",
	}, {
		name: "times-not-asked-for-fail", file: "gateway/query/engine/stage/cached.go",
		old: "return errors.As(err, &infinity) ||", new: "return infinity != nil ||",
		test: "gateway/query/engine TestCached_infinity",
	}, {
		name: "window-loses-its-end", file: "gateway/query/engine/stage/cached.go",
		old: "slices.BinarySearch(p.Time, end+1)", new: "slices.BinarySearch(p.Time, end)",
		test: "gateway/query/engine TestLaw_cached",
	}, {
		name: "one-bucket-untrimmed", file: "encoding/scanplan/plan.go",
		old: "if p.Downsample == nil || !p.Downsample.All {", new: "if p != nil {",
		test: "gateway/query/merge TestUntrimmedAnswersAll",
	}, {
		name: "token-during-a-change", file: "pushdown/store/pebble/changes.go",
		old: "	if running {\n", new: "	if running && ok && at == 0 {\n",
		test: "TestVersion_inProgress",
	}, {
		name: "mark-outlives-the-server", file: "pushdown/store/hbase/unchanged/version.go",
		old: "conn: c.ID, readPoint: n}", new: "conn: c.ID * 0, readPoint: n}",
		test: "TestVersion_regions",
	}, {
		name: "opening-ignored", file: "pushdown/store/hbase/unchanged/version.go",
		old: "opening: openings[i].number, ", new: "",
		test: "TestVersion_replaced",
	}, {
		name: "opening-read-once", file: "pushdown/store/hbase/unchanged/opening.go",
		old: "		if o.catalog != catalog {\n", new: "		if o.catalog.conn != catalog.conn {\n",
		test: "TestVersion_replaced",
	}, {
		name: "opening-of-before-or-after", file: "pushdown/store/hbase/unchanged/version.go",
		old: "return a.number == b.number", new: "return b.number != 0",
		test: "TestVersion_interleaved",
	}, {
		name: "first-byte-before-proven", file: "gateway/api/httpapi/queryroutes/etag.go",
		old: "	if err := p.proofs.Wait(); err != nil {\n", new: "	if err := error(nil); err != nil {\n",
		test: "gateway TestQuery_unproven",
	}, {
		name: "error-before-proven",
		file: "gateway/api/httpapi/queryroutes/query.go",
		old:  "err != nil && errors.Is(errors.Join(err, proofs.Wait()), resultcache.ErrUnproven)",
		new:  "errors.Is(err, resultcache.ErrUnproven)",
		test: "gateway TestQuery_unprovenError",
	}, {
		name: "unproven-is-failed", file: "gateway/query/dispatch/run.go",
		old: "		p.unproven = true\n		return\n", new: "		p.unproven = true\n",
		test: "TestRun_unproven",
	}, {
		name: "unproven-state-observed",
		file: "pushdown/store/hbase/unchanged/version.go",
		old:  "	if token, ok := p.history.lastToken(family, s.states); ok {\n",
		new:  "	if token, _, _ := p.history.observe(family, s.states); len(token) > 0 {\n",
		test: "TestVersion_expiring",
	}, {
		name: "fastest-error-wins", file: "gateway/query/engine/subqueries.go",
		old: "				for _, end := range ends[i+1:] {\n", new: "				for _, end := range ends {\n",
		test: "TestForEach_firstInOrder",
	}, {
		name: "servers-drop-nothing", file: "gateway/query/dispatch/executor.go",
		old: "	return e.servers.dropCaches(ctx)\n", new: "	return nil\n",
		test: "TestExecutor_dropCaches",
	}, {
		name: "mark-comes-back", file: "pushdown/store/hbase/unchanged/expiry.go",
		old: "epoch: epochs.Add(1)}", new: "epoch: state.readPoint}",
		test: "TestRegionHistory_order",
	},
}
