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
		name: "plans-of-slow-queries-not-collected", file: "gateway/query/engine/engine.go",
		old: "	opts.Plans.add(plans)\n\n	groups", new: "	groups",
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
		old: "	}\n	g.Audit(r)\n	return nil\n", new: "	}\n	return nil\n",
		test: "gateway TestAudit",
	}, {
		name: "deleted-annotation-not-audited", file: "gateway/api/httpapi/access/access.go",
		old: "method == http.MethodDelete {", new: "method == http.MethodPatch {",
		test: "gateway TestAudit",
	}, {
		name: "drop-of-caches-not-audited",
		file: "gateway/api/httpapi/api.go",
		old:  "(e.Audited || e.Scope&auth.Admin == auth.Admin) && !e.Reads.Contains(r) {",
		new:  "e.Audited && !e.Reads.Contains(r) {",
		test: "gateway TestAudit",
	}, {
		name: "purged-tree-not-audited", file: "gateway/api/httpapi/api.go",
		old: "(e.Audited || e.Scope&auth.Admin == auth.Admin)", new: "e.Scope&auth.Admin == auth.Admin",
		test: "gateway/extra TestAudit_body",
	}, {
		name: "body-of-an-act-not-in-its-line", file: "gateway/api/httpapi/httpio/body.go",
		old: "		about.body = body\n", new: "",
		test: "gateway/extra TestAudit_body",
	}, {
		name: "beginning-of-a-token-in-the-log", file: "gateway/admin/audit/audit.go",
		old: "			text = withoutBeginning(text, s)\n", new: "			_ = withoutBeginning\n",
		test: "TestShown",
	}, {
		name: "rest-of-a-body-behind-its-beginning-lost", file: "gateway/api/httpapi/httpio/beginning.go",
		old: "	return p.ReadCloser.Read(b)\n", new: "	return 0, io.EOF\n",
		test: "TestBodyBeginning",
	}, {
		name: "failed-job-ends-as-a-success-in-the-log", file: "gateway/extra/tools/lines.go",
		old: "		audit.Of(r.Context()).Err = err\n", new: "		_ = audit.Of(r.Context())\n",
		test: "TestWriteLines",
	}, {
		name: "command-on-the-tables-not-audited", file: "gateway/extra/tools/connect.go",
		old: "	c.logIfItChanges()\n", new: "",
		test: "TestAudited",
	}, {
		name: "repair-of-names-not-audited", file: "gateway/extra/tools/audited.go",
		old: "len(c.args) > 1 // fix", new: "false",
		test: "TestAudited",
	}, {
		name: "name-of-the-last-token", file: "pushdown/rpc/auth/auth.go",
		old: "			name = cmp.Or(name, h.name)\n", new: "			name = h.name\n",
		test: "TestTokens_Name",
	},
}
