package main

// ofMadeRollups are rollups that are read although the raw rows, or they themselves, have
// changed.
var ofMadeRollups = []mutant{
	{
		name: "made-opening-out-of-date", file: "pushdown/store/hbase/durablemark.go",
		old: "&s); errors.Is(after, errReopened) {", new: "&s); errors.Is(after, errReopened) && false {",
		test: "TestMark_afterMove",
	}, {
		name: "made-token-after-reading", file: "pushdown/rollupjob/job.go",
		old: "		pieces, err := w.rollUp(ctx, r)\n", new: "		pieces, err := w.rollUp(ctx, r)\n		proof = w.rawMark(ctx, r)\n",
		test: "TestJob_changesWhileReading",
	}, {
		name: "made-proof-of-raw-rows-ignored", file: "pushdown/rollupjob/proof.go",
		old: "			if why != nil {\n", new: "			if kept = run.Pieces; why != nil {\n",
		test: "gateway TestMade_changes",
	}, {
		name: "made-proof-of-rollups-ignored", file: "pushdown/rollupjob/proof.go",
		old: "					note(\"rollups: %v\", err)\n					continue\n", new: "					note(\"rollups: %v\", err)\n",
		test: "gateway TestMade_othersWrite",
	}, {
		name: "made-not-asked-after-reading", file: "gateway/query/engine/made.go",
		old: "	if err := c.proof.Holds(ctx); err != nil {\n", new: "	if err := c.proof.Holds(ctx); err != nil && ctx.Err() != nil {\n",
		test: "gateway TestMade_changesWhileRead",
	}, {
		name: "made-not-read-back", file: "pushdown/rollupjob/prove.go",
		old: "		if !bytes.Equal(pieces[i].Digest, sums[i]) {\n", new: "		if bytes.Equal(pieces[i].Digest, nil) && sums[i] == nil {\n",
		test: "gateway TestMade_othersWrite",
	}, {
		name: "made-of-open-hours", file: "pushdown/rollupjob/job.go",
		old: "	sealed -= sealed % w.step()\n", new: "	sealed += w.step() - sealed%w.step()\n",
		test: "gateway TestMade_sealed",
	}, {
		name: "made-old-values-stay", file: "pushdown/rollupjob/rows.go",
		old: "			out = append(out, store.Mutation{Kind: store.DeleteCell, Row: bytes.Clone(key), Family: encoding.FamilyData, Qualifier: bytes.Clone(c.Qualifier)})\n", new: "",
		test: "gateway TestMade_changes",
	}, {
		name: "made-buckets-twice", file: "gateway/query/merge/merger.go",
		old: "	j, _ := slices.BinarySearch(s.Time, to)\n", new: "	j := len(s.Time)\n",
		test: "gateway TestMade_drawn",
	}, {
		name: "made-annotations-lost", file: "pushdown/rollupjob/unit.go",
		old: "	if len(offsets) == 0 || u.decoder.Skipped() > 0 || len(u.decoder.Annotations()) > 0 {\n", new: "	if len(offsets) == 0 || u.decoder.Skipped() > 0 {\n",
		test: "gateway TestMade_onlyRaw",
	}, {
		name: "mark-change-not-written", file: "pushdown/store/pebble/marks.go",
		old: "	return ok && w.first <= number && number <= w.last\n", new: "	return ok && w.first <= number && number < w.last\n",
		test: "TestMark_concurrent",
	}, {
		name: "mark-without-opening", file: "pushdown/store/hbase/durablemark.go",
		old: "	case marked.Opening != openingID(s.before[i]):\n", new: "	case marked.Opening == \"\":\n",
		test: "TestMark_timestamps",
	}, {
		name: "mark-without-files", file: "pushdown/store/hbase/durablemark.go",
		old: "	if err == nil && !sameStore(marked.Files, fileNames(files)) {\n", new: "	if err == nil && len(files) == 0 {\n",
		test: "TestMark_timestamps",
	}, {
		name: "deleted-range-leaves-marks", file: "pushdown/store/pebble/ranges.go",
		old: "	s.noteRanges(b, table, ranges)\n", new: "",
		test: "TestMark_deletedRange",
	},
}
