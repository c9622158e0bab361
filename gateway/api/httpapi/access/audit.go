package access

import (
	"net/http"

	"downpour/gateway/admin/audit"
	"downpour/gateway/api/httpapi/httpio"
)

// WithAudit returns a request of which AuditEnd knows whether Audit has logged it.
func WithAudit(r *http.Request) *http.Request {
	ctx, _ := audit.NewContext(r.Context())
	return r.WithContext(ctx)
}

// Audit logs a request that may change the gateway or remove data, before it does, with the
// name of its token and the beginning of its body, which need not be read yet. A request has
// this line once.
func (g *Guard) Audit(r *http.Request) {
	act := audit.Of(r.Context())
	if act.Logged {
		return
	}
	act.Logged = true
	// As much more as a token is long: one that is cut off would not be known as such.
	token := bearer(r)
	act.Body = audit.Shown(httpio.BodyBeginning(r, audit.Most+1+len(token)), token)
	g.Log.Info(audit.Begun, g.who(r, act)...)
}

// AuditEnd logs how a request that Audit has logged has ended: by the status of its answer, or
// "cut" if the answer was cut. A job that has failed behind the status has its error, too.
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

// who says what a request asks, and who sends it.
func (g *Guard) who(r *http.Request, act *audit.Act) []any {
	method, _ := httpio.Method(r) // an unknown one was refused
	token := bearer(r)
	attrs := []any{"method", method, "path", audit.Shown(r.URL.Path, token), "parameters", audit.Shown(r.URL.RawQuery, token)}
	if act.Body != "" {
		attrs = append(attrs, "body", act.Body)
	}
	return append(attrs, "token", g.Tokens.Name(token), "client", r.RemoteAddr, "request", httpio.RequestID(r.Context()))
}
