package access

import (
	"context"
	"net/http"

	"downpour/gateway/api/httpapi/httpio"
)

type auditKey struct{}

// WithAudit returns a request of which AuditEnd knows whether Audit has logged it.
func WithAudit(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), auditKey{}, new(bool)))
}

// Audit logs a request that may change the gateway or remove data, before it does, with the
// name of its token: a line is there whatever becomes of the process.
func (g *Guard) Audit(r *http.Request) {
	if audited, ok := r.Context().Value(auditKey{}).(*bool); ok {
		*audited = true
	}
	g.Log.Info("an administrative request", g.who(r)...)
}

// AuditEnd logs how a request that Audit has logged has ended: by the status of its answer, or
// "cut" if the answer was cut.
func (g *Guard) AuditEnd(r *http.Request, outcome string) {
	if audited, ok := r.Context().Value(auditKey{}).(*bool); ok && *audited {
		g.Log.Info("an administrative request ended", append(g.who(r), "outcome", outcome)...)
	}
}

// who says what a request asks, and who sends it.
func (g *Guard) who(r *http.Request) []any {
	method, _ := httpio.Method(r) // an unknown one was refused
	return []any{"method", method, "path", shown(r.URL.Path), "parameters", shown(r.URL.RawQuery),
		"token", g.Tokens.Name(bearer(r)), "client", r.RemoteAddr, "request", httpio.RequestID(r.Context())}
}

// mostShown bounds a path and parameters in a line, in bytes.
const mostShown = 300

// shown is a text of the client's as a line has it.
func shown(text string) string {
	if len(text) <= mostShown {
		return text
	}
	return text[:mostShown] + "…"
}
