package main

// ofFound are pushdown servers that are found too late, or not forgotten.
var ofFound = []mutant{
	{
		name: "query-waits-for-a-new-server", file: "gateway/query/dispatch/registry.go",
		old: "		p.health.checking = true\n", new: "",
		test: "TestExecutor_SetServers",
	}, {
		name: "new-server-checked-by-the-next-query", file: "gateway/query/dispatch/executor.go",
		old: "e.servers.welcome(e.servers.set(servers))", new: "e.servers.set(servers)",
		test: "TestExecutor_SetServers",
	}, {
		name: "known-server-forgotten", file: "gateway/query/dispatch/registry.go",
		old: "			places[i] = r.mu.places[old]\n", new: "			places[i] = &place{server: s}\n",
		test: "TestExecutor_SetServers",
	}, {
		name: "announcement-hidden-by-a-clock", file: "pushdown/announce/announcer.go",
		old: "		Timestamp: int64(a.Of.Sequence),\n", new: "",
		test: "gateway TestFound",
	}, {
		name: "servers-age-while-nobody-looks", file: "pushdown/announce/watcher.go",
		old: "		since = now.Add(afterOutage)\n", new: "",
		test: "TestWatcher_afterOutage",
	}, {
		name: "withdrawn-server-counts", file: "pushdown/announce/watcher.go",
		old: "(s.seen != now || now.Sub", new: "(now.Sub",
		test: "TestWatcher",
	}, {
		name: "deletion-hides-a-server-that-goes-on", file: "pushdown/announce/announcer.go",
		old: "a.delete(ctx, r.Key, r.Cells[0].Timestamp)", new: "a.delete(ctx, r.Key, 0)",
		test: "TestAnnouncer_suspended",
	}, {
		name: "two-at-one-address-unsaid", file: "pushdown/announce/watcher.go",
		old: "			if s.since == w.read && fresh[s.Address] {\n", new: "			if false {\n",
		test: "TestWatcher_twoWithOneAddress",
	}, {
		name: "last-announcement-ages-at-once", file: "pushdown/announce/watcher.go",
		old:  "			s.Announcement, s.counts, s.since = a, true, since\n",
		new:  "			s.Announcement, s.counts, s.since = a, true, now\n",
		test: "TestWatcher_afterOutage",
	}, {
		name: "expired-announcement-counts", file: "pushdown/announce/watcher.go",
		old: " || now.Sub(s.since) >= goneAfter", new: "",
		test: "TestWatcher_killed",
	}, {
		name: "row-counts-at-first-sight", file: "pushdown/announce/watcher.go",
		old: "s = &server{Announcement: a}", new: "s = &server{Announcement: a, counts: true, since: since}",
		test: "TestWatcher_killed",
	}, {
		name: "proof-not-demanded", file: "gateway/found.go",
		old: "	if !certified {\n", new: "	if false {\n",
		test: "TestFound_stranger",
	}, {
		name: "signature-of-the-question-is-a-proof", file: "pushdown/rpc/proof/handshake.go",
		old:  "Signer(keys, []string{a.Signature}, answer, nonce, address)",
		new:  "Signer(keys, []string{a.Signature}, question, nonce, address)",
		test: "TestHandshake_replayed",
	}, {
		name: "server-that-has-left-used", file: "gateway/query/dispatch/registry.go",
		old:  "	r.mu.places, r.mu.placements = places, nil\n",
		new:  "	if len(places) >= len(r.mu.places) {\n		r.mu.places, r.mu.placements = places, nil\n	}\n",
		test: "TestExecutor_SetServers",
	},
}
