package httpapi

import "downpour/pushdown/rpc/auth"

// toolRoutes are those that the binary's sub-commands ask while the gateway has
// an embedded store open.
func (a *API) toolRoutes(routes map[string]endpoint) {
	for route, e := range map[string]endpoint{
		"export":  {scope: auth.Read, reads: get},
		"names":   {scope: auth.Read, reads: get},
		"remarks": {scope: auth.Write, reads: nothing},
		"delete":  {scope: auth.Admin, reads: nothing},
	} {
		e.serve = handler(a.Tools)
		routes["api/tools/"+route] = e
	}
}
