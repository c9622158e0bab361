package httpapi

import (
	"net/http"

	"downpour/pushdown/auth"
)

// toolRoutes are those that the binary's sub-commands ask while the gateway has
// an embedded store open.
func (a *API) toolRoutes(routes map[string]endpoint) {
	for route, scope := range map[string]auth.Scope{"export": auth.Read, "names": auth.Read, "remarks": auth.Write, "delete": auth.Admin} {
		routes["api/tools/"+route] = endpoint{scope, a.tool(scope)}
	}
}

// tool hands a request on, unless it comes from a page of another site and could
// change something.
func (a *API) tool(scope auth.Scope) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet {
			if err := a.mayChange(w, r, scope); err != nil {
				return err
			}
		}
		a.Tools.ServeHTTP(w, r)
		return nil
	}
}
