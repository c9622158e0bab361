package main

// ofMadeRollups are rollups that are read although the raw rows, or they themselves, have
// changed.
var ofMadeRollups = []mutant{
	{
		name: "made-token-after-reading",
		file: "pushdown/rollupjob/job.go",
		old:  "		pieces, err := w.rollUp(ctx, r)\n",
		new:  "		pieces, err := w.rollUp(ctx, r)\n		mark = w.rawMark(ctx, r)\n",
		test: "TestJob_changesWhileReading",
	}, {
		name: "made-proof-of-rollups-ignored",
		file: "pushdown/rollupjob/proof.go",
		old:  "					note(\"rollups: %v\", err)\n					continue\n",
		new:  "					note(\"rollups: %v\", err)\n",
		test: "gateway/extra TestMade_othersWrite",
	}, {
		name: "made-not-asked-after-reading",
		file: "gateway/query/engine/stage/rollups.go",
		old:  "	if err := c.proof.Holds(ctx); err != nil {\n",
		new:  "	if err := c.proof.Holds(ctx); err != nil && ctx.Err() != nil {\n",
		test: "gateway/extra TestMade_changesWhileRead",
	}, {
		name: "made-days-with-values-that-stay-read-again", file: "pushdown/rollupjob/prove.go",
		old: "			p.Digest = sums[i] // no query relies on it\n", new: "			_ = sums[i]\n",
		test: "TestJob_deletedRaw",
	}, {
		name: "made-not-read-back",
		file: "pushdown/rollupjob/prove.go",
		old:  "		if !bytes.Equal(p.Digest, sums[i]) {\n",
		new:  "		if bytes.Equal(p.Digest, nil) && sums[i] == nil {\n",
		test: "gateway/extra TestMade_othersWrite",
	}, {
		name: "made-of-open-hours",
		file: "pushdown/rollupjob/job.go",
		old:  "	sealed -= sealed % w.grain(w.Grain)\n",
		new:  "	sealed += w.grain(w.Grain) - sealed%w.grain(w.Grain)\n",
		test: "gateway/extra TestMade_sealed",
	}, {
		name: "made-old-values-stay", file: "pushdown/rollupjob/rows.go",
		old: "			out = append(out, change{Mutation: m, slotKey: slot})\n", new: "			_ = m\n",
		test: "gateway/extra TestMade_changes",
	}, {
		name: "made-buckets-twice", file: "gateway/query/merge/merger.go",
		old: "	j, _ := slices.BinarySearch(s.Time, to)\n", new: "	j := len(s.Time)\n",
		test: "gateway/extra TestMade_drawn",
	}, {
		name: "made-annotations-lost",
		file: "pushdown/rollupjob/unit.go",
		old:  "	if len(offsets) == 0 || u.decoder.Skipped() > 0 || len(u.decoder.Annotations()) > 0 {\n",
		new:  "	if len(offsets) == 0 || u.decoder.Skipped() > 0 {\n",
		test: "gateway/extra TestMade_onlyRaw",
	}, {
		name: "made-record-of-another-month",
		file: "pushdown/rollupjob/records.go",
		old:  "		for begin := first; begin <= last; begin += l.period() {\n",
		new:  "		for begin := first; begin < last || begin == first; begin += l.period() {\n",
		test: "TestRecords_periods",
	}, {
		name: "made-of-fewer-points", file: "pushdown/rollupjob/rows.go",
		old: "		case c.fewer && !fewer:\n", new: "		case c.fewer && !fewer && len(changes) < 0:\n",
		test: "TestJob_partlyDeletedDay",
	}, {
		name: "made-looked-for-before-the-first-row", file: "pushdown/rollupjob/background/metric.go",
		old: "of.walk && known && first >= of.to {", new: "of.walk && known && first >= of.to+1<<40 {",
		test: "TestWorker_months",
	}, {
		name: "made-looked-at-without-rollups",
		file: "pushdown/rollupjob/uptodate.go",
		old:  "				if err == nil {\n					keys := w.rolledKeys",
		new:  "				if err != nil {\n					keys := w.rolledKeys",
		test: "TestLook",
	}, {
		name: "made-looked-at-and-not-whole", file: "pushdown/rollupjob/uptodate.go",
		old: "	return at >= w.To\n", new: "	return at > w.From\n",
		test: "TestLook",
	}, {
		name: "made-values-before-their-count", file: "pushdown/rollupjob/job.go",
		old: "[][]store.Mutation{pointCounts, values}", new: "[][]store.Mutation{values, pointCounts}",
		test: "TestJob_killedWhileWriting",
	}, {
		name: "made-whole-days-of-half-of-them", file: "pushdown/rollupjob/prove.go",
		old: "					To:      days[day].To,\n", new: "					To:      days[day].To + 3600,\n",
		test: "TestJob_bitByBit",
	}, {
		name: "made-by-two", file: "pushdown/rollupjob/background/worker.go",
		old: "	if w.cfg.Alone {\n", new: "	if w.cfg.Alone || true {\n",
		test: "TestWorker_killed",
	}, {
		name: "made-from-the-begin-after-each-death", file: "pushdown/rollupjob/background/worker.go",
		old: "w.work(ctx, l.State(), l.Save)", new: "w.work(ctx, nil, l.Save)",
		test: "TestWorker_killed",
	}, {
		name: "made-in-vain-again-and-again", file: "pushdown/rollupjob/background/metric.go",
		old: "	leave := time.Now().Before(w.left[d.key()].until)\n", new: "	leave := false\n",
		test: "TestWorker_unprovable",
	}, {
		name: "made-where-retention-deletes", file: "pushdown/rollupjob/background/metric.go",
		old: "		d.from = max(d.from, m.From+2*w.piece)\n", new: "		d.from = max(d.from, 0)\n",
		test: "TestWorker_retained",
	}, {
		name: "mark-without-opening", file: "pushdown/store/hbase/unchanged/durablemark.go",
		old: "	case marked.Opening != openingID(s.before[i]):\n", new: "	case marked.Opening == \"\":\n",
		test: "TestMark_timestamps",
	}, {
		name: "mark-without-files",
		file: "pushdown/store/hbase/unchanged/durablemark.go",
		old:  "	if err == nil && !sameStore(marked.Files, fileNames(files)) {\n",
		new:  "	if err == nil && len(files) == 0 {\n",
		test: "TestMark_timestamps",
	},
}
