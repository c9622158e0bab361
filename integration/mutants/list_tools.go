package main

// ofTools are faults of tools: points that scan deletes and no import brings back, and work
// beside others in a gateway.
var ofTools = []mutant{
	{
		name: "scan-deletes-what-import-refuses", file: "gateway/extra/tools/scan.go",
		old: "if !taken || !whole {", new: "if !taken || !whole && false {",
		test: "TestScan_deleteThenImport",
	}, {
		name: "scan-deletes-names-that-import-refuses", file: "gateway/extra/tools/scan.go",
		old: "taken := named.noLine == nil && named.importable(&p.Settings)", new: "taken := named.noLine == nil",
		test: "TestScan_deleteThenImport",
	}, {
		name: "scan-deletes-times-that-import-misreads", file: "gateway/extra/tools/line.go",
		old: "&& milli == write.IsMillis(t)", new: "",
		test: "TestScan_deleteThenImport",
	}, {
		name: "scan-reads-a-row-for-each-sub-query",
		file: "gateway/extra/tools/selection.go",
		old:  "			if s.compiled != all[i].compiled {\n",
		new:  "			if s.compiled == all[i].compiled {\n",
		test: "TestScan",
	}, {
		name: "names-that-end-an-answer-of-lines", file: "gateway/extra/tools/lines.go",
		old: "		if unicode.IsControl(r) {\n", new: "		if unicode.IsControl(r) && r != '\\n' {\n",
		test: "TestVisible",
	}, {
		name: "treesync-without-its-memory", file: "gateway/extra/tools/uidtrees.go",
		old: "memory.Reserve(r.Context(), treeSyncBytes)", new: "memory.Reserve(r.Context(), 0)",
		test: "gateway/extra TestServedTools_memory",
	}, {
		name: "treesync-that-the-gateway-does-not-want", file: "gateway/extra/tools/uidtrees.go",
		old: "	case !x.Trees:\n", new: "	case false:\n",
		test: "gateway/extra TestServedTools_trees",
	}, {
		name: "treepurge-grows-the-tree-first", file: "gateway/extra/tools/uidtrees.go",
		old: "	if req.Purge == 0 {\n", new: "	if req.Purge >= 0 {\n",
		test: "gateway/extra TestServedTools_trees",
	}, {
		name: "uid-work-beside-uid-work", file: "gateway/extra/tools/uidwork.go",
		old: "	if !h.working.TryLock() {\n", new: "	if !h.working.TryLock() && false {\n",
		test: "gateway/extra TestServedTools_oneAtATime",
	}, {
		name: "dry-runs-that-write",
		file: "gateway/extra/tools/serve.go",
		old:  "	d.Store = drystore.New(x.Store, x.unread(forgotten...)...)\n",
		new:  "	_ = drystore.New(x.Store, x.unread(forgotten...)...)\n",
		test: "TestDryRun",
	}, {
		name: "dry-imports-that-write",
		file: "gateway/extra/tools/own.go",
		old:  "		st = drystore.New(st, c.unread(c.Tables.Meta, c.Tables.Tree)...)\n",
		new:  "		_ = drystore.New(st, c.unread(c.Tables.Meta, c.Tables.Tree)...)\n",
		test: "TestDryRun_others",
	}, {
		name: "scan-deletes-before-the-client-has-it", file: "gateway/extra/tools/scan.go",
		old: "	if err := p.printed(); err != nil {\n		return err\n	}\n", new: "",
		test: "TestScan_deleteUnprinted",
	}, {
		name: "imported-lines-sent-side-by-side", file: "gateway/extra/tools/import.go",
		old: "	case <-s.taken:\n	case <-s.ended:\n", new: "	default:\n",
		test: "TestImport_inTurn",
	}, {
		name: "dry-runs-that-forget", file: "pushdown/store/drystore/drystore.go",
		old: "		if !c.deleted && (family", new: "		if false && (family",
		test: "TestDryStore",
	},
}
