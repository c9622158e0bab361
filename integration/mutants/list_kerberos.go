package main

// ofKerberos are faults of connections to a secured HBase: servers that are believed,
// bytes that were changed, calls that are mixed up, tickets that end.
var ofKerberos = []mutant{
	{
		name: "keytab-beside-the-login-configuration", file: "pushdown/process/settings/hbase.go",
		old: `if s.Kerberos != "" && s.JAAS != "" {`, new: `if false {`,
		test: "TestCommon_Validate",
	}, {
		name: "kdc-reply-too-long-read", file: "pushdown/store/hbase/kerberos/network.go",
		old: "	if size > maxReply {\n", new: "	if size > maxReply+1 {\n",
		test: "TestNetwork_ask",
	}, {
		name: "silent-kdc-waited-for", file: "pushdown/store/hbase/kerberos/network.go",
		old: "			next.Reset(askNextAfter)\n", new: "			next.Reset(replyWithin)\n",
		test: "TestNetwork_ask",
	}, {
		name: "ticket-for-another-service-taken", file: "pushdown/store/hbase/kerberos/exchange.go",
		old: "case got.Equal(name):", new: "case got.Equal(name) || got.NameString[0] != \"krbtgt\":",
		test: "TestExchange_wrongAnswers",
	}, {
		name: "fault-of-zookeeper-taken-for-sasl",
		file: "pushdown/store/hbase/regions/zookeeper.go",
		old:  "if strings.HasSuffix(err.Error(), notAuthenticated) {",
		new:  "if strings.Contains(err.Error(), notAuthenticated) {",
		test: "TestZooKeeper_authenticated",
	}, {
		name: "kerberos-unsigned-words-believed-later", file: "pushdown/store/hbase/calls/wrappedconn.go",
		old: "if !c.opened && !sasl.IsWrap(c.frame) {", new: "if !sasl.IsWrap(c.frame) {",
		test: "TestWrappedConn_unsignedRefusal",
	}, {
		name: "kerberos-unsigned-class-believed",
		file: "pushdown/store/hbase/calls/wrappedconn.go",
		old:  `	return fmt.Errorf("%w: %s", errRefused, strings.ReplaceAll(e.Error(), javaPrefix, "HBase: "))`,
		new:  `	return fmt.Errorf("%w: %w%s", errRefused, e, strings.ReplaceAll("", "", ""))`,
		test: "TestWrappedConn_unsignedRefusal",
	}, {
		name: "reply-to-another-request-believed", file: "pushdown/store/hbase/kerberos/context.go",
		old: "if part.CTime.Unix() != x.auth.CTime.Unix() || part.Cusec != x.auth.Cusec {", new: "if false {",
		test: "TestContext_wrongServer",
	}, {
		name: "server-without-authentication-taken", file: "pushdown/store/hbase/calls/security.go",
		old: "case errors.Is(err, sasl.ErrSimple) && s.AllowSimple:", new: "case errors.Is(err, sasl.ErrSimple):",
		test: "pushdown/store/hbase TestSecured_errors",
	}, {
		name: "weaker-protection-taken", file: "pushdown/store/hbase/calls/security.go",
		old: "chosen := (offer.Protections & want).Strongest()", new: "chosen := offer.Protections.Strongest()",
		test: "pushdown/store/hbase TestSecured_errors",
	}, {
		name: "token-out-of-order-opened", file: "pushdown/store/hbase/sasl/wrap.go",
		old: "; !o.isNext(got) {", new: "; !o.isNext(got) && false {",
		test: "TestWrap_refused",
	}, {
		name: "ticket-used-to-its-end", file: "pushdown/store/hbase/kerberos/tickets.go",
		old: "if (!ready || aging(s.ticket, now)) &&", new: "if !ready &&",
		test: "TestTickets_renewed",
	}, {
		name: "refused-ticket-kept",
		file: "pushdown/store/hbase/kerberos/tickets.go",
		old:  "s.ticket, s.err, s.retry = nil, fmt.Errorf(\"%w: %s at %s\", errRefused,",
		new:  "s.err, s.retry = fmt.Errorf(\"%w: %s at %s\", errRefused,",
		test: "pushdown/store/hbase TestSecured_newKey",
	}, {
		name: "kdc-asked-all-the-time", file: "pushdown/store/hbase/kerberos/tickets.go",
		old: "	if now.Before(c.retryLogin) {", new: "	if false && now.Before(c.retryLogin) {",
		test: "TestTickets_refused",
	}, {
		name: "refused-ticket-granting-ticket-kept", file: "pushdown/store/hbase/kerberos/tickets.go",
		old: "!refused.refusal || refused.unknownServer {", new: "refused != nil {",
		test: "TestTickets_newKDCKey",
	}, {
		name: "refused-logins-not-paced", file: "pushdown/store/hbase/kerberos/tickets.go",
		old: "	c.retryRefused = now.Add(refusedAfter)\n", new: "",
		test: "TestTickets_refusedLogins",
	}, {
		name: "ticket-granting-ticket-not-kept-alive", file: "pushdown/store/hbase/kerberos/keep.go",
		old: "	if !aging(t, now) {\n", new: "	if true {\n",
		test: "TestKeep_login",
	}, {
		name: "ticket-of-a-service-not-kept-alive", file: "pushdown/store/hbase/kerberos/keep.go",
		old: "case now.Sub(s.used) < keepFor:", new: "case false:",
		test: "TestKeep",
	}, {
		name: "one-failing-service-stops-all-tickets", file: "pushdown/store/hbase/kerberos/keep.go",
		old: "k.stopped = isAway(err), isOfAll(err)", new: "k.stopped = isAway(err), err != nil",
		test: "TestKeep_others",
	}, {
		name: "locked-principal-asks-for-each-service", file: "pushdown/store/hbase/kerberos/keep.go",
		old: "k.stopped = isAway(err), isOfAll(err)", new: "k.stopped = isAway(err), false",
		test: "TestKeep_all",
	}, {
		name: "right-on-a-table-that-is-not-there-wanted", file: "pushdown/store/hbase/rights.go",
		old: "		if there {\n", new: "		if there || true {\n",
		test: "TestCheckReadable",
	}, {
		name: "refused-question-taken-for-lacking-right", file: "pushdown/store/hbase/rights.go",
		old: "	return errors.New(text)\n", new: "	return newJavaError(accessDenied, text)\n",
		test: "TestCheckReadable",
	}, {
		name: "rights-not-asked-for-again", file: "pushdown/store/guarded.go",
		old: "		c.unknown = !errors.Is(err, errors.ErrUnsupported)\n", new: "",
		test: "pushdown/store/hbase TestReadCheck",
	}, {
		name: "rights-asked-for-where-nobody-tells", file: "pushdown/store/hbase/rights.go",
		old: "if calls.LacksMethod(err) {", new: "if false {",
		test: "TestReadCheck_told",
	}, {
		name: "lacking-right-told-late-not-heeded", file: "gateway/fault.go",
		old: "	return s.fault.get()\n", new: "	return nil\n",
		test: "gateway/cmd/gateway TestServe_rights",
	}, {
		name: "short-answers-while-draining", file: "gateway/drain.go",
		old: "if wait <= 0 || s.fault.get() != nil {", new: "if wait <= 0 {",
		test: "TestRights",
	}, {
		name: "lacking-right-told-late-not-heeded-by-pushdown", file: "pushdown/cmd/pushdown/main.go",
		old: "			end(err)\n", new: "			end(nil)\n",
		test: "TestRun_rights",
	}, {
		name: "old-version-not-told", file: "pushdown/store/hbase/inspect.go",
		old: "if r.before(2, 4) {", new: "if r.before(1, 4) {",
		test: "TestInspect",
	},
}
