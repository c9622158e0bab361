package main

// ofUIDTools are faults of uid fsck, uid metasync, uid metapurge and uid reclaim.
var ofUIDTools = []mutant{
	{
		name: "uid-fsck-writes-unasked", file: "gateway/extra/tools/uidcheck/repair.go",
		old: "	case !c.Fix:\n", new: "	case false:\n",
		test: "TestRun_findings",
	}, {
		name: "uid-fsck-merges-unasked", file: "gateway/extra/tools/uidcheck/judge.go",
		old: "	case p == Merge && len(merged)", new: "	case len(merged)",
		test: "TestRun_findings",
	}, {
		name: "uid-fsck-deletes-names-of-rows", file: "gateway/extra/tools/uidcheck/judge.go",
		old: "	case row != nil:\n", new: "	case false:\n",
		test: "TestRun_usedUIDsStay",
	}, {
		name: "uid-fsck-deletes-when-either-may-be-right", file: "gateway/extra/tools/uidcheck/judge.go",
		old: "	case own != nil && string(s.back) != s.name:\n", new: "	case false:\n",
		test: "TestRun_findings",
	}, {
		name: "uid-fsck-does-not-wait-for-others", file: "gateway/extra/tools/uidcheck/repair.go",
		old: "	if c.Settle <= 0 {\n", new: "	if true {\n",
		test: "TestRun_awaitsOthers",
	}, {
		name: "uid-fsck-repairs-a-name-being-deleted", file: "gateway/extra/tools/uidcheck/repair.go",
		old: "	if !same(was.own, now.own) && ", new: "	if false && ",
		test: "TestRun_awaitsOthers",
	}, {
		name: "uid-fsck-overwrites-what-others-wrote", file: "gateway/extra/tools/uidcheck/repair.go",
		old: "		return c.Store.CompareAndPut(ctx, c.Table, at, s.old, s.value)\n",
		new: "		return true, c.Store.Apply(ctx, c.Table, []store.Mutation{{Row: at.Row, Family: " +
			"at.Family, Qualifier: at.Qualifier, Value: s.value}})\n",
		test: "TestRun_cellChangesLast",
	}, {
		name: "uid-fsck-reads-on-when-all-is-found", file: "gateway/extra/tools/uiduse/look.go",
		old: "		if f.missing == 0 {\n			break\n", new: "		if f.missing < 0 {\n			break\n",
		test: "gateway/extra/tools/uidcheck TestRun_usedUIDsEndTheSearch",
	}, {
		name: "uid-fsck-looks-for-metrics-it-has-found", file: "gateway/extra/tools/uiduse/look.go",
		old: " && f.found[k].Key == nil; bucket++", new: "; bucket++",
		test: "gateway/extra/tools/uidcheck TestRun_usedUIDsEndTheSearch",
	}, {
		name: "uid-fsck-without-the-parts-of-parts", file: "gateway/metadata/wholetable/share.go",
		old: "			err = half.Halves(read)\n", new: "			err = nil\n",
		test: "gateway/extra/tools/uidcheck TestRun_muchIsWrong",
	}, {
		name: "keys-in-several-shares", file: "gateway/metadata/wholetable/share.go",
		old: "%s.of == s.nth }", new: "%s.of <= s.nth }",
		test: "TestShare_Halves",
	}, {
		name: "look-up-of-the-first-rows-alone", file: "gateway/metadata/wholetable/rows.go",
		old: "slices.Chunk(keys, perGet)", new: "slices.Chunk(keys[:min(len(keys), perGet)], perGet)",
		test: "TestLookup",
	}, {
		name: "uid-metasync-from-the-last-hour", file: "gateway/extra/tools/metasync/sync.go",
		old: "	if _, ok := s.hours[string(k.Tags)]; ok || ", new: "	if ",
		test: "TestRun_random",
	}, {
		name: "uid-metasync-of-half-a-metric", file: "gateway/metadata/wholetable/share.go",
		old: "[]Share{{s.nth, 2 * of}, {s.nth + of, 2 * of}}", new: "[]Share{{s.nth, 2 * of}}",
		test: "gateway/extra/tools/metasync TestRun_many",
	}, {
		name: "uid-metasync-of-nameless-series", file: "gateway/extra/tools/metasync/write.go",
		old: "		y.uids[k].nameless = true\n", new: "",
		test: "TestRun_nameless",
	}, {
		name: "uid-metasync-overwrites-what-others-wrote", file: "gateway/extra/tools/metasync/write.go",
		old: "		ok, err := to.CompareAndPut(ctx, c.table, at, c.old, c.value)\n",
		new: "		ok, err := true, y.Store.Apply(ctx, c.table, []store.Mutation{{Row: at.Row, Family: " +
			"at.Family, Qualifier: at.Qualifier, Value: c.value}})\n",
		test: "TestRun_othersWrite",
	}, {
		name: "uid-metapurge-of-later-versions", file: "gateway/extra/tools/metapurge/purge.go",
		old: "					Timestamp: c.Timestamp,\n", new: "",
		test: "TestRun_writtenMeanwhile",
	}, {
		name: "uid-metapurge-before-what-is-pending", file: "gateway/extra/tools/uidwork.go",
		old: "	if x.Flush != nil {\n", new: "	if false {\n",
		test: "TestUIDWork_pending",
	}, {
		name: "uid-reclaim-without-waiting-for-others", file: "gateway/extra/tools/uiddeletion.go",
		old: "	return pause(ctx, d.KnownWithin)\n", new: "	return nil\n",
		test: "TestReclaim_waits",
	}, {
		name: "uid-reclaim-of-names-being-assigned", file: "gateway/extra/tools/uidreclaim.go",
		old: " || young || ", new: " || young && false || ",
		test: "TestReclaim_othersChange",
	}, {
		name: "uid-deleted-name-without-its-way-back", file: "gateway/extra/tools/uidmappings.go",
		old: "				add(0, n.reverse(), n.forward().Row)\n", new: "",
		test: "TestReclaim_killed",
	},
}
