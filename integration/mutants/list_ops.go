package main

// ofOperations are faults of what operators see and end: others' queries that end, ended ones that
// look like faults of their clients, figures that are not those of the time that they are shown for.
var ofOperations = []mutant{
	{
		name: "balancer-not-told-of-the-end", file: "gateway/drain.go",
		old: "	s.draining.begun.Store(true)\n", new: "",
		test: "gateway TestDrain",
	}, {
		name: "connection-kept-open-at-the-end", file: "gateway/drain.go",
		old: "		if s.draining.begun.Load() {\n", new: "		if false {\n",
		test: "gateway TestDrain",
	}, {
		name: "query-cut-off-at-the-end",
		file: "gateway/close.go",
		old:  "max(10*time.Second, c.QueryTimeout+5*time.Second)",
		new:  "min(10*time.Second, c.QueryTimeout+5*time.Second)",
		test: "gateway TestDrain_times",
	}, {
		name: "another-live-query-ended", file: "gateway/live/list.go",
		old: "		if e.epoch == id {\n", new: "		if e.epoch != \"\" {\n",
		test: "TestHub_End",
	}, {
		name: "half-a-count-of-series-for-the-whole", file: "gateway/extra/opspage/seriescount/seriescount.go",
		old: "	c.out.Complete = err == nil\n", new: "	c.out.Complete = true\n",
		test: "TestRun_ends",
	}, {
		name: "query-ended-by-any-gateway's-id", file: "gateway/api/httpapi/querylog/running.go",
		old: "err != nil || instance != l.instance ||", new: "err != nil || instance == \"\" ||",
		test: "gateway/extra TestOps_ending",
	}, {
		name: "ended-query-answers-as-if-its-client-had-left", file: "gateway/api/httpapi/httpio/errors.go",
		old: "if context.Cause(r.Context()) == context.Canceled &&", new: "if r.Context().Err() == context.Canceled &&",
		test: "gateway/extra TestOps_ending",
	}, {
		name: "ended-query-is-at-fault", file: "gateway/api/httpapi/queryroutes/handlers.go",
		old: "ended != nil && *err != nil {", new: "ended != nil && *err == nil {",
		test: "gateway/extra TestOps_ending",
	}, {
		name: "queries-ended-by-readers", file: "gateway/extra/opspage/opsroutes/handlers.go",
		old: "\"api/ops/\":       {Scope: auth.Admin,", new: "\"api/ops/\":       {Scope: auth.Read,",
		test: "gateway/extra TestDoors",
	}, {
		name: "operations-told-to-readers", file: "gateway/api/ws/opsfeed.go",
		old: "	if !f.allows(token) {\n", new: "	if false {\n",
		test: "TestOpsFeed",
	}, {
		name: "operations-told-after-the-scope-is-lost", file: "gateway/api/ws/opsfeed.go",
		old: "	case !allowed:\n", new: "	case false && allowed:\n",
		test: "TestOpsFeed",
	}, {
		name: "report-made-while-nobody-looks", file: "gateway/api/ws/opsfeed.go",
		old: "len(f.mu.subs) == 0 && f.mu.stop != nil {", new: "len(f.mu.subs) < 0 && f.mu.stop != nil {",
		test: "TestOpsFeed",
	}, {
		name: "slow-queries-of-hours-ago", file: "gateway/admin/activity/queries.go",
		old: "m.at >= oldest {", new: "m.at >= min(0, oldest) {",
		test: "TestQueries",
	}, {
		name: "points-of-five-minutes-ago", file: "gateway/admin/activity/puts.go",
		old: "		if s.at != at {\n", new: "		if s.at == 0 {\n",
		test: "TestPuts",
	}, {
		name: "reasons-of-refusals-without-bound", file: "gateway/admin/activity/puts.go",
		old: "len(p.reasons) >= maxReasons {", new: "len(p.reasons) >= 1<<30 {",
		test: "TestPuts_refusals",
	}, {
		name: "cost-counts-parts-twice", file: "gateway/query/limit/cost.go",
		old: "	b.read.bytes.Add(-bytes)\n", new: "",
		test: "TestEntry_Cost",
	}, {
		name: "end-of-administrative-requests-not-logged", file: "gateway/api/httpapi/access/audit.go",
		old: "	act.Logged = true\n", new: "	act.Logged = false\n",
		test: "gateway TestAudit_hostile",
	}, {
		name: "probe-takes-a-no-for-a-yes", file: "pushdown/process/probe/probe.go",
		old: "answer.StatusCode == http.StatusOK {", new: "answer.StatusCode > 0 {",
		test: "TestAsk",
	}, {
		name: "probe-asks-without-tls", file: "pushdown/cmd/pushdown/main.go",
		old: "probe.URL(cfg.Listen, cfg.TLSCert != \"\")", new: "probe.URL(cfg.Listen, false)",
		test: "TestRun_serves",
	},
}
