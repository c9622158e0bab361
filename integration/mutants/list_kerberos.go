package main

// ofKerberos are faults of connections to a secured HBase: servers that are believed,
// bytes that were changed, calls that are mixed up, tickets that end.
var ofKerberos = []mutant{
	{
		name: "reply-to-another-request-believed", file: "pushdown/store/hbase/kerberos/context.go",
		old: "if part.CTime.Unix() != x.auth.CTime.Unix() || part.Cusec != x.auth.Cusec {", new: "if false {",
		test: "TestContext_wrongServer",
	}, {
		name: "server-without-authentication-taken", file: "pushdown/store/hbase/security.go",
		old: "case errors.Is(err, sasl.ErrSimple) && s.AllowSimple:", new: "case errors.Is(err, sasl.ErrSimple):",
		test: "TestSecured_errors",
	}, {
		name: "weaker-protection-taken", file: "pushdown/store/hbase/security.go",
		old: "chosen := (offer.Protections & want).Strongest()", new: "chosen := offer.Protections.Strongest()",
		test: "TestSecured_errors",
	}, {
		name: "calls-mixed-up", file: "pushdown/store/hbase/conn.go",
		old: "if _, tcp := nc.(*net.TCPConn); !tcp {", new: "if false {",
		test: "TestSecured_calls",
	}, {
		name: "token-out-of-order-opened", file: "pushdown/store/hbase/sasl/wrap.go",
		old: "; !o.isNext(got) {", new: "; !o.isNext(got) && false {",
		test: "TestWrap_refused",
	}, {
		name: "changed-token-opened", file: "pushdown/store/hbase/sasl/wrap.go",
		old: "if !hmac.Equal(mac,", new: "if false && !hmac.Equal(mac,",
		test: "TestWrap_refused",
	}, {
		name: "ticket-used-to-its-end", file: "pushdown/store/hbase/kerberos/tickets.go",
		old: "if (!ready || aging(s.ticket, now)) &&", new: "if !ready &&",
		test: "TestTickets_renewed",
	}, {
		name: "refused-ticket-kept", file: "pushdown/store/hbase/kerberos/tickets.go",
		old: "s.ticket, s.err, s.retry = nil, fmt.Errorf(\"%w: %s at %s\", errRefused,", new: "s.err, s.retry = fmt.Errorf(\"%w: %s at %s\", errRefused,",
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
		name: "store-does-not-keep-tickets", file: "pushdown/store/hbase/store.go",
		old: "	if cfg.Security != nil {\n", new: "	if false {\n",
		test: "pushdown/store/hbase TestSecured_kept",
	}, {
		name: "right-that-is-lacking-taken-for-had", file: "pushdown/store/hbase/rights.go",
		old: "			if !has[i] {\n", new: "			if !has[i] && false {\n",
		test: "TestCheckReadable",
	}, {
		name: "right-on-a-table-that-is-not-there-wanted", file: "pushdown/store/hbase/rights.go",
		old: "		if there {\n", new: "		if there || true {\n",
		test: "TestCheckReadable",
	}, {
		name: "refused-question-taken-for-lacking-right", file: "pushdown/store/hbase/rights.go",
		old: `return fmt.Errorf("cannot ask the master for our rights: %v", withoutStack(err))`, new: `return fmt.Errorf("cannot ask the master for our rights: %w", newJavaError(accessDenied, err.Error()))`,
		test: "TestCheckReadable",
	}, {
		name: "state-that-is-missing-not-told", file: "pushdown/store/hbase/opening.go",
		old: "	case len(state.Value) == 0:", new: "	case false:",
		test: "TestInspect",
	}, {
		name: "old-version-not-told", file: "pushdown/store/hbase/inspect.go",
		old: "if r.before(2, 4) {", new: "if r.before(1, 4) {",
		test: "TestInspect",
	},
}
