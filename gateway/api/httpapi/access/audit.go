package access

import (
	"net/http"

	"downpour/gateway/admin/audit"
	"downpour/gateway/api/httpapi/httpio"
)

// WithAudit returns a request that records for AuditEnd whether Audit has logged it.
func WithAudit(r *http.Request) *http.Request {
	ctx, _ := audit.NewContext(r.Context())
	return r.WithContext(ctx)
}

// Audit logs a request that may change the gateway or remove data, before it does, with the name of
// its token and the beginning of its body, which may still be unread. It logs a request once.
func (g *Guard) Audit(r *http.Request) {
	act := audit.Of(r.Context())
	if act.Logged {
		return
	}
	act.Logged = true
	// Longer by the length of a token: a truncated token would not be recognized.
	token := bearer(r)
	act.Body = audit.Shown(httpio.BodyBeginning(r, audit.Most+1+len(token)), token)
	g.Log.Info(audit.Begun, g.who(r, act)...)
}

// AuditEnd logs the end of a request that Audit has logged: the status of its answer, or "cut" if
// the answer was cut. A job that has failed after the status has its error, too.
func (g *Guard) AuditEnd(r *http.Request, outcome string) {
	act := audit.Of(r.Context())
	if !act.Logged {
		return
	}
	attrs := append(g.who(r, act), "outcome", outcome)
	if act.Err != nil {
		attrs = append(attrs, "err", audit.Shown(act.Err.Error(), bearer(r)))
	}
	g.Log.Info(audit.Ended, attrs...)
}

// who returns the log's attributes of a request and its sender.
func (g *Guard) who(r *http.Request, act *audit.Act) []any {
	method, _ := httpio.Method(r) // an unknown one was refused
	token := bearer(r)
	attrs := []any{"method", method, "path", audit.Shown(r.URL.Path, token), "parameters",
		audit.Shown(r.URL.RawQuery, token)}
	if act.Body != "" {
		attrs = append(attrs, "body", act.Body)
	}
	return append(attrs, "token", g.Tokens.Name(token), "client", r.RemoteAddr, "request",
		httpio.RequestID(r.Context()))
}
