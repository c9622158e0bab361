package main

// ofRollups are rollups that are written to wrong places, read from wrong tables, or mixed
// with other values.
var ofRollups = []mutant{
	{
		name: "rollup-month-of-thirty-days",
		file: "encoding/rollup.go",
		old:  "		return time.Unix(base, 0).UTC().AddDate(0, 1, 0).Unix()\n",
		new:  "		return base + 30*daySeconds\n",
		test: "TestRowSpan_rows",
	}, {
		name: "rollup-oldest-cell-counts", file: "encoding/rollup.go",
		old: "cmp.Compare(a.stamp, b.stamp)", new: "cmp.Compare(b.stamp, a.stamp)",
		test: "gateway TestRollup_writtenAgain",
	}, {
		name: "rollup-more-intervals-than-bits", file: "encoding/rollup.go",
		old: "const MaxRollupIntervals = 1 << 12\n", new: "const MaxRollupIntervals = 7774\n",
		test: "TestRollupLayout_Validate",
	}, {
		name: "rollup-counts-are-fractions", file: "pushdown/operator/rollup.go",
		old: "		f.doubles[i] = math.Trunc(n)\n", new: "		f.doubles[i] = math.Abs(n)\n",
		test: "TestRollup_model",
	}, {
		name: "rollup-parts-cut-buckets", file: "pushdown/operator/rollup.go",
		old: "	if f.overRows && !(part.Starts() && part.Ends()) {\n", new: "	if f.overRows && !part.Starts() {\n",
		test: "TestNew_rollupCut",
	}, {
		name: "rollup-rows-by-the-hour", file: "encoding/scanplan/rollup.go",
		old: "		return p.Rollup.Layout.Span.Next(base)\n", new: "		return base + encoding.RowSeconds\n",
		test: "pushdown/operator TestChooseAccess_rollupRows",
	}, {
		name: "rollup-of-any-divisor",
		file: "pushdown/rollup/config.go",
		old:  "cmp.Compare(b.Layout.Interval, a.Layout.Interval)",
		new:  "cmp.Compare(a.Layout.Interval, b.Layout.Interval)",
		test: "TestMatching",
	}, {
		name: "rollup-count-of-counts", file: "gateway/query/plan/rollup.go",
		old: "		d.Function = \"sum\"\n", new: "		d.Function = \"count\"\n",
		test: "TestCompile_rollups",
	}, {
		name: "rollup-raw-value-is-aggregated", file: "gateway/query/plan/rollup.go",
		old: " && f.Text != c.opt.Rollups.RawValue {", new: " {",
		test: "TestCompile_rollups",
	}, {
		name: "rollup-cut-inside-a-bucket", file: "gateway/query/plan/rollup.go",
		old: "max(b.BucketStart(max(sure, 0)), 1)", new: "max(sure, b.BucketStart(0), 1)",
		test: "TestCompile_split",
	}, {
		name: "rollup-times-twice",
		file: "gateway/query/engine/stage/tables.go",
		old:  "		g.Points = pointsBetween(&g.Points, cut, maxTime)\n",
		new:  "		g.Points = pointsBetween(&g.Points, 0, maxTime)\n",
		test: "TestJoinAt",
	}, {
		name: "rollup-deletes-raw-rows", file: "gateway/query/engine/delete.go",
		old: "	if err := refuseRollups(plans, \"deletes\"); err != nil {\n		return 0, err\n	}\n", new: "",
		test: "gateway TestRollup_delete",
	}, {
		name: "rollup-kept-up-to-date",
		file: "gateway/query/engine/prepare.go",
		old: "	if err := refuseRollups(plans, \"is kept up to date\"); err != nil {\n" +
			"		return nil, err\n	}\n",
		new:  "",
		test: "gateway TestRollup_live",
	}, {
		name: "rollup-among-raw-data", file: "gateway/write/rollups.go",
		old: "	if interval.Default {\n", new: "	if interval.Default && p.Grouped {\n",
		test: "gateway TestRollup_refused",
	}, {
		name: "rollup-two-cells-of-a-batch",
		file: "gateway/write/rollups.go",
		old:  "			made[slot] = len(c.out)\n",
		new:  "			made[slot+uint32(len(c.out))<<24] = len(c.out)\n",
		test: "TestCells_rollups",
	}, {
		name: "rollup-parts-go-anywhere",
		file: "gateway/query/dispatch/registry.go",
		old:  "		reads := !named || slices.Contains(e.rollups, table)\n",
		new:  "		reads := !named || table != \"\"\n",
		test: "gateway TestRollup_servers",
	}, {
		name: "rollup-old-cells-lost",
		file: "encoding/rollup.go",
		old:  "return [2][]byte{{c.ID}, []byte(c.Name + \":\")}",
		new:  "return [2][]byte{{c.ID}, []byte(c.Name + \"=\")}",
		test: "gateway TestRollup_oldCells",
	},
}
