// Package dashboards is the dashboards as an extra: their routes (dashboardroutes), and the documents with their
// versions (dashboard).
package dashboards

import (
	"context"
	"net/http"

	"downpour/gateway"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/dashboards/dashboard"
	"downpour/gateway/extra/dashboards/dashboardroutes"
)

// Host are the dashboards of this host's metrics, which another extra provides.
type Host interface {
	// Dashboards returns the documents, by name, that are served as version 0 while none of their names are saved.
	Dashboards() map[string]func() []byte
	// StartDashboard returns the name of the dashboard to which the page at / leads, empty for none.
	StartDashboard(context.Context) (string, error)
}

// New returns the dashboards: their routes and pages.
func New() gateway.Extra { return gateway.Extra{Name: "dashboards", Open: open} }

func open(_ context.Context, c *gateway.Core) (gateway.Parts, error) {
	h := &dashboardroutes.Handlers{
		Store:    &dashboard.Store{Cells: c.Store, Table: c.Config.TableState, Now: c.Config.Now},
		ReadOnly: c.ReadOnly(),
		Guard:    c.Guard,
		Timeout:  c.Config.QueryTimeout,
	}
	if host, ok := gateway.Provided[Host](c); ok {
		h.BuiltIn, h.Start = host.Dashboards(), host.StartDashboard
	}
	routes := h.Endpoints()
	// The page lists them, and below it each has a page.
	routes["d"] = httpio.Endpoint{Serve: httpio.FromHandler(c.Page), Reads: httpio.Get}
	return gateway.Parts{Routes: routes, Pages: map[string]http.Handler{"d": c.Page}}, nil
}
