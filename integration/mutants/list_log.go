package main

// ofTheLog are faults of what is logged.
var ofTheLog = []mutant{
	{
		name: "refused-points-fill-the-log", file: "gateway/admin/putlog/putlog.go",
		old: "	t := l.held[k]\n	if t == nil && len", new: "	t := l.held[kind{}]\n	if t == nil && len",
		test: "TestLog_oneLineASecond",
	}, {
		name: "refused-points-held-at-the-end-lost", file: "gateway/admin/putlog/putlog.go",
		old: "		if t.first.Err != nil {\n			l.write", new: "		if false {\n			l.write",
		test: "TestLog_oneLineASecond",
	}, {
		name: "clients-of-refused-points-without-bound", file: "gateway/admin/putlog/putlog.go",
		old: "len(l.held) >= maxKinds {", new: "len(l.held) >= 1<<30 {",
		test: "TestLog_kinds",
	}, {
		name: "refused-by-telnet-not-logged", file: "gateway/api/telnet/put.go",
		old: "	c.logRefused(command, reason, err, 1, func() string { return latin1(c.line) })\n", new: "",
		test: "gateway TestPutLog",
	}, {
		name: "terminal-code-in-the-log", file: "gateway/admin/logtail/logtail.go",
		old: "		if !unicode.IsPrint(r) {\n", new: "		if r != '\\x1b' && !unicode.IsPrint(r) {\n",
		test: "TestTail",
	}, {
		name: "del-in-the-log-as-json", file: "pushdown/process/settings/log.go",
		old: "r >= '\\x7f' &&", new: "r > '\\x7f' &&",
		test: "TestLogConfig_hostileNames",
	}, {
		name: "failed-query-not-slow", file: "gateway/api/httpapi/querylog/slow.go",
		old: "took < l.Slow.From {", new: "took < l.Slow.From || e.status != http.StatusOK {",
		test: "gateway TestSlowQuery",
	}, {
		name: "plans-of-slow-queries-not-collected", file: "gateway/query/engine/resolve.go",
		old: "	PlansOf(ctx).add(out)\n", new: "",
		test: "gateway TestSlowQuery",
	}, {
		name: "any-id-of-a-request-taken", file: "gateway/api/httpapi/httpio/requestid.go",
		old: "		if !validRequestID(id) {\n", new: "		if id == \"\" {\n",
		test: "gateway TestRequestID",
	}, {
		name: "id-in-errors-of-opentsdb", file: "gateway/api/httpapi/httpio/errors.go",
		old: "		if !worded(err) {\n", new: "		if true {\n",
		test: "gateway TestRequestID",
	}, {
		name: "deletion-by-a-query-not-audited", file: "gateway/api/httpapi/access/access.go",
		old: "scope&auth.Admin == auth.Admin || method == http.MethodDelete {", new: "scope == 0 && method == http.MethodDelete {",
		test: "gateway TestAudit",
	}, {
		name: "drop-of-caches-not-audited", file: "gateway/api/httpapi/api.go",
		old: "e.Scope&auth.Admin == auth.Admin && !e.Reads.Contains(r) {", new: "e.Scope&auth.Admin == auth.Admin && e.Reads.Contains(r) {",
		test: "gateway TestAudit",
	}, {
		name: "name-of-the-last-token", file: "pushdown/rpc/auth/auth.go",
		old: "			name = cmp.Or(name, h.name)\n", new: "			name = h.name\n",
		test: "TestTokens_Name",
	},
}
