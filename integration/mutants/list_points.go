package main

// ofPoints are faults of points and their bytes, on the way in and back.
var ofPoints = []mutant{
	{
		name: "only-cell-caches-overwritten-times",
		file: "encoding/rowdecoder.go",
		old:  "d.cells, d.annotations, d.cachedQualifiers = d.cells[:0], d.annotations[:0], d.cachedQualifiers[:0]",
		new:  "d.cells, d.annotations = d.cells[:0], d.annotations[:0]",
		test: "TestOnlyCell_cachesQualifiers",
	}, {
		name: "appended-out-of-order-taken", file: "encoding/onlyappended.go",
		old: " | (z - y - 1)", new: "",
		test: "TestOnlyCell_refuses",
	}, {
		name: "even-sum-without-signs", file: "encoding/evenlyspaced.go",
		old: ") ^ sign) & mask", new: ") ^ 0*sign) & mask",
		test: "TestOnlyEven_equalsCellByCell",
	}, {
		name: "even-bucket-one-too-many", file: "pushdown/operator/downsample/evenlyspaced.go",
		old: "+e.Step-1)/e.Step", new: "+e.Step)/e.Step",
		test: "TestAppendEven",
	}, {
		name: "integer-typed-as-float", file: "gateway/write/point.go",
		old: "	q.Float, q.Width = p.Value.Float, len(value)\n", new: "	q.Float, q.Width = true, len(value)\n",
		test: "TestWriter_forms",
	}, {
		name: "log-left-to-lie", file: "pushdown/store/pebble/earlyflush.go",
		old: "(many || large) &&", new: "(many || large && many) &&",
		test: "TestIdleFlush",
	}, {
		name: "rows-of-a-shard-in-a-part-of-the-index",
		file: "gateway/write/rows.go",
		old:  "	return hash * spread >> (64 - bits.Len(uint(len(r.index)-1)))\n",
		new:  "	return hash * (spread - spread + 1) & uint64(1<<bits.Len(uint(len(r.index)-1))-1)\n",
		test: "TestRows_home",
	}, {
		name: "rows-of-the-batch-before", file: "gateway/write/rows.go",
		old: "	if r.batch++; r.batch == 0 {", new: "	if r.batch == 0 {",
		test: "TestRows_index",
	}, {
		name: "order-of-rows-by-eight-bytes", file: "gateway/write/rows.go",
		old: "		return bytes.Compare(r.list[a.row].key, r.list[b.row].key)\n", new: "		return 0\n",
		test: "TestRows_index",
	}, {
		name: "escape-not-seen", file: "gateway/api/httpapi/putroutes/scan.go",
		old: "zero(eight^'\\\\'*ones) | ", new: "",
		test: "TestFirstEscaped",
	}, {
		name: "member-twice-read", file: "gateway/api/httpapi/putroutes/scan.go",
		old: " || seen&(1<<member) != 0", new: "",
		test: "TestScanPoints_left",
	}, {
		name: "name-before-its-number", file: "gateway/uid/assign.go", // a forward mapping that a crash leaves alone
		old: "	written, err := s.CompareAndPut(ctx, table, reverse, nil, row)\n",
		new: "	early := store.CellKey{Row: row, Family: encoding.FamilyID, Qualifier: kind.Qualifier()}\n" +
			"	if _, err := s.CompareAndPut(ctx, table, early, nil, u); err != nil {\n		return err\n	}\n" +
			"	written, err := s.CompareAndPut(ctx, table, reverse, nil, row)\n",
		test: "TestAssign_crash",
	},
}
