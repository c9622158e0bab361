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
	},
}
