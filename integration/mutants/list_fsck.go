package main

// ofFsck are faults of the repair of rows: good points that it loses, and what others write
// meanwhile.
var ofFsck = []mutant{
	{
		name: "fsck-cut-repair-stays", file: "gateway/extra/tools/fsck/duplicates.go",
		old: "	if c.equalIntegers(group) {\n", new: "	if false && c.equalIntegers(group) {\n",
		test: "TestCheck_cutRepair",
	}, {
		name: "fsck-deletes-most-rows-as-orphans", file: "gateway/extra/tools/fsckorphans.go",
		old: "orphans*rowsPerOrphan > rows:", new: "false:",
		test: "TestFsck_manyOrphans",
	}, {
		name: "fsck-counts-orphans-of-a-part", file: "gateway/extra/tools/fsckorphans.go",
		old: "	if err := g.Wait(); err != nil {\n		return 0, 0, err\n	}\n", new: "	_ = g.Wait()\n",
		test: "TestFsck_countFails",
	}, {
		name: "fsck-counts-orphans-alone", file: "gateway/extra/tools/fsckorphans.go",
		old: "range min(cap(r.places), len(r.parts)) {", new: "range 1 {",
		test: "TestFsck_countsTogether",
	}, {
		name: "fsck-broken-value-drives-out-a-good-one", file: "gateway/extra/tools/fsck/duplicates.go",
		old: "		if p.bad || p.over {\n", new: "		if p.over {\n",
		test: "TestCheck_repairs",
	}, {
		name: "fsck-folds-a-row-with-errors", file: "gateway/extra/tools/fsck/plan.go",
		old: "!needed && !c.Options.Compact || !c.foldable()", new: "!needed && !c.Options.Compact",
		test: "TestCheck_repairs",
	}, {
		name: "fsck-writes-over-what-cannot-be-cut", file: "gateway/extra/tools/fsck/plan.go",
		old: "i >= 0 && c.cells[i].unread && !c.cells[i].remove", new: "i >= 0 && c.cells[i].unread && false",
		test: "TestCheck_overlap",
	}, {
		name: "fsck-drops-good-entries-behind-a-bad-one", file: "gateway/extra/tools/fsck/appended.go",
		old: "	return faults, first, len(value)\n", new: "	return faults, first, at\n",
		test: "TestCheck_kinds",
	}, {
		name: "fsck-two-values-in-one-place",
		file: "gateway/extra/tools/fsck/plan.go",
		old: "	taken := slices.ContainsFunc(c.result.Put, " +
			"func(x Cell) bool { return bytes.Equal(x.Qualifier, q) })\n",
		new:  "	taken := slices.ContainsFunc(c.result.Put, func(x Cell) bool { return false })\n",
		test: "TestCheck_repairs",
	}, {
		name: "fsck-newer-than-what-stays", file: "gateway/extra/tools/fsck/duplicates.go",
		old: "	if w != 0 && c.stuck {\n", new: "	if false {\n",
		test: "TestCheck_partly",
	}, {
		name: "fsck-hides-behind-the-old-cell", file: "gateway/extra/tools/fsck/plan.go",
		old: "		x.Timestamp = max(x.Timestamp, c.row.Cells[i].Timestamp)\n", new: "",
		test: "TestCheck_overlap",
	}, {
		name: "fsck-beyond-a-shorter-duplicate", file: "gateway/extra/tools/fsck/plan.go",
		old: "taken = taken || !c.cells[k].remove && !c.points[c.cells[k].first].drop", new: "taken = taken || false",
		test: "TestCheck_kinds",
	}, {
		name: "fsck-compact-tells-nothing-without-fix",
		file: "gateway/extra/tools/fsck/plan.go",
		old:  "		if c.Options.Compact && !c.needsFolding() && c.foldable() {\n",
		new:  "		if c.Options.Compact && c.needsFolding() && c.foldable() {\n",
		test: "TestCheck_uncompacted",
	}, {
		name: "fsck-young-rows", file: "gateway/extra/tools/fsckworker.go",
		old: "if last >= int64(w.checks.young) && !req.Young {", new: "if false {",
		test: "TestFsck_rows",
	}, {
		name: "scan-deletes-what-it-has-not-printed",
		file: "gateway/extra/tools/scan.go",
		old:  "		if len(printed) > 0 && bytes.Equal(printed[0].Qualifier, c.Qualifier) {\n",
		new:  "		if len(printed) > 0 {\n",
		test: "TestScan_delete",
	}, {
		name: "replace-without-comparing", file: "pushdown/store/pebble/replace.go",
		old: "	if err != nil || !same {\n", new: "	if err != nil || !same && false {\n",
		test: "TestConformance",
	}, {
		name: "replace-hidden-not-seen", file: "pushdown/store/hbase/replace.go",
		old: "	if err := r.compare(ctx, afterPut); err != nil {\n		return err\n	}\n", new: "",
		test: "TestReplace_others",
	}, {
		name: "replace-puts-into-any-row", file: "pushdown/store/hbase/replace.go",
		old: "	if err := r.put(ctx); err != nil {", new: "	if err := r.apply(ctx, store.Put); err != nil {",
		test: "TestReplace_others",
	}, {
		name: "replace-counts-no-columns", file: "pushdown/store/hbase/replace.go",
		old: "c := store.Condition{Columns: len(row.Cells)}", new: "c := store.Condition{}",
		test: "TestReplace_others",
	}, {
		name: "replace-within-the-millisecond", file: "pushdown/store/hbase/replace.go",
		old: "	if err := r.moment(ctx); err != nil {\n		return err\n	}\n", new: "",
		test: "TestReplace_others",
	}, {
		name: "replace-puts-at-the-servers-time", file: "pushdown/store/hbase/replace.go",
		old: "				Timestamp: x.Timestamp,\n", new: "",
		test: "TestReplace_others",
	},
}
