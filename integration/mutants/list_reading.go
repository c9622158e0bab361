package main

// ofTheScan are faults of scans, most of them of HBase, and of what they cost.
var ofTheScan = []mutant{
	{
		name: "first-element-alone-indexed",
		file: "pushdown/store/pebble/elements.go",
		old:  "at < from+n; at += c.layout.width {",
		new:  "at < min(from+n, from+c.layout.width); at += c.layout.width {",
		test: "TestElements_sets",
	}, {
		name: "set-of-too-many-elements-taken-for-whole", file: "pushdown/store/pebble/elements.go",
		old: "	if len(c.hashes.all) <= maxElements {\n", new: "	if c.layout.width > 0 {\n",
		test: "TestElements_unknown",
	}, {
		name: "block-without-a-set-skipped",
		file: "pushdown/store/pebble/elements.go",
		old:  "		return true, nil\n	}\n	set = set[elementsHeader:]\n",
		new:  "		return len(set) != 0, nil\n	}\n	set = set[elementsHeader:]\n",
		test: "TestElements_skip",
	}, {
		name: "set-of-another-layout-believed", file: "pushdown/store/pebble/elements.go",
		old: " || int(set[0]) != f.layout.head || int(set[1]) != f.layout.width", new: "",
		test: "TestElements_unknown",
	}, {
		name: "deletions-not-indexed",
		file: "pushdown/store/pebble/elements.go",
		old:  "	if bytes.Equal(prefix, c.row) {\n",
		new:  "	if bytes.Equal(prefix, c.row) || key.Kind() == pebble.InternalKeyKindDelete {\n",
		test: "TestElements_deletion",
	}, {
		name: "blocks-not-skipped", file: "pushdown/store/pebble/scanner.go",
		old: "scan.Filter.Pattern); f != nil {", new: "scan.Filter.Pattern); f != nil && f.layout.width == 0 {",
		test: "TestElements_skip",
	}, {
		name: "no-next-call-seq", file: "pushdown/store/hbase/scanrequest.go",
		old: "		NextCallSeq:             proto.Uint64(s.server.seq),\n", new: "",
		test: "TestScan_cutEveryReply",
	}, {
		name: "resume-from-the-start", file: "pushdown/store/hbase/scan.go",
		old: "	s.resumeKey = append(lastKey, 0)\n", new: "	_ = lastKey\n",
		test: "TestScan_manyLostReplies",
	}, {
		name: "parent-of-a-split-taken-for-the-region", file: "pushdown/store/hbase/regions/locate.go",
		old: "		case info.Table != table || !info.split:\n", new: "		case true:\n",
		test: "pushdown/store/hbase TestLookUp_parentOfSplit",
	}, {
		name: "hole-taken-for-no-table",
		file: "pushdown/store/hbase/regions/locate.go",
		old:  "		case info.Table != table && skipped:\n",
		new:  "		case info.Table != table && skipped && row != nil:\n",
		test: "pushdown/store/hbase TestLookUp_hole",
	}, {
		name: "filter-set-late", file: "pushdown/store/hbase/cellblock/columns.go",
		old: "	for c.seen > recentBytes {\n", new: "	for c.seen > recentBytes<<20 {\n",
		test: "pushdown/store/hbase TestScan_otherColumnsLate",
	}, {
		name: "dropped-cells-charged", file: "pushdown/store/hbase/scan.go",
		old: "	s.stats.Bytes -= c.DroppedBytes() - before\n", new: "	_ = before\n",
		test: "TestScan_otherColumnsLate",
	}, {
		name: "moved-region-remembered",
		file: "pushdown/store/hbase/regions/router.go",
		old:  "	case calls.ClassRelocate, calls.ClassReopen, calls.ClassUnknown:\n		r.regions.forget(loc)\n",
		new:  "	case calls.ClassRelocate, calls.ClassReopen, calls.ClassUnknown:\n",
		test: "pushdown/store/hbase TestScan_changesBetweenBlocks",
	}, {
		name: "any-byte-but-newline", file: "pushdown/store/hbase/rowregex.go", // keys with 0A, 0D, 85 are lost
		old: `b.WriteString("(?s)^")`, new: `b.WriteString("^")`,
		test: "TestPattern",
	}, {
		name: "arena-for-each-thread", file: "pushdown/store/pebble/malloc.go", // memory freed in one serves no other
		old: "M_ARENA_MAX, processors < 16 ? 1 : processors / 8", new: "M_ARENA_MAX, 8 * processors",
		test: "TestFewArenas",
	},
}

// ofSeeking are faults of the memory of seeking.
var ofSeeking = []mutant{
	{
		name: "unknown-prefixes-not-read", file: "pushdown/operator/access/prefixes.go",
		old: "if encoding.UIDNumber(p.tagk) > 1 {", new: "if encoding.UIDNumber(p.tagk) > 1<<40 {",
		test: "pushdown/operator TestSeek_changesBetweenAsks",
	}, {
		// The empty prefix lost.
		name: "known-prefixes-make-the-rest-unread", file: "pushdown/operator/access/prefixes.go",
		old: "prefixes: [][]byte{tagk}}", new: "prefixes: nil}",
		test: "TestPrefixes_anyRows",
	}, {
		name: "ranges-of-one-tag-forgotten",
		file: "pushdown/operator/access/prefixes.go",
		old:  "return len(b) == 0 || len(a) != 0 && bytes.Compare(a, b) <= 0",
		new:  "return len(b) == 0 || len(a) != 0 && bytes.Compare(a, b) >= 0",
		test: "TestIntersect",
	},
}

// ofOperators are faults of the work on a part.
var ofOperators = []mutant{
	{
		name: "hours-torn-apart", file: "pushdown/operator/sidebyside.go",
		old: "			case c == 0:\n				same = append(same, i)\n", new: "",
		test: "TestSideBySide",
	}, {
		name: "torn-series-unseen", file: "pushdown/operator/hourscan.go",
		old: "bytes.Compare(h.tags, tags) >= 0 {", new: "bytes.Compare(h.tags, tags) > 1 {",
		test: "TestSideBySide_order",
	}, {
		name: "failed-hour-taken-for-ended", file: "pushdown/operator/hourscan.go",
		old: "		case err != nil:\n			return withCause(ctx, fmt.Errorf(\"operator: cannot scan %s: " +
			"%w\", table, err))\n",
		new:  "		case err != nil:\n			return io.EOF\n",
		test: "TestSideBySide_ends",
	}, {
		name: "hours-side-by-side-or-not-at-all", file: "gateway/query/engine/stage/aggregation.go",
		old: "&large) && s.exec.SideBySide(p)", new: "&large) && !s.exec.SideBySide(p)",
		test: "gateway TestMemory_sideBySide",
	}, {
		name: "rows-read-before-their-memory", file: "pushdown/operator/part.go",
		old: "max(o.largest, o.scanner.NextBytes())", new: "max(o.largest, 0)",
		test: "TestMemory_beforeRows",
	}, {
		name: "hours-read-before-their-memory", file: "pushdown/operator/hourscan.go",
		old: "next, growth := s.NextBytes(), int64(1)", new: "next, growth := int64(0), int64(1)",
		test: "TestMemory_beforeRows",
	}, {
		name: "turns-for-all-at-once", file: "pushdown/process/memory/turn.go",
		old: "p.turn == nil && len(p.turns) > 0", new: "len(p.turns) > 0",
		test: "TestTurn_order",
	}, {
		name: "waits-for-turns-unseen", file: "pushdown/process/memory/account.go",
		old: "slices.Concat(p.queue, p.turns)", new: "slices.Concat(p.queue)",
		test: "TestTurn_deadlock",
	},
}
