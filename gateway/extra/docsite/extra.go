package docsite

import (
	"context"
	"io/fs"
	"net/http"
	"strings"
	"sync"

	"downpour"
	"downpour/gateway"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/openapi"
	"downpour/gateway/web"
)

// New returns the documentation, which is served below /docs.
func New() gateway.Extra { return gateway.Extra{Name: "documentation", Open: open} }

func open(context.Context, *gateway.Core) (gateway.Parts, error) {
	h := Handler()
	return gateway.Parts{
		Routes: map[string]httpio.Endpoint{"docs": {Serve: httpio.FromHandler(h), Reads: httpio.Get}},
		Pages:  map[string]http.Handler{"docs": h},
	}, nil
}

// Handler serves "/docs" and "/docs/NAME", also in capitals. The site is made at the first request:
// it is larger than all other pages, and few ask for it.
func Handler() http.Handler {
	site := sync.OnceValue(site)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, name, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
		site().Serve(w, r, "/docs/"+strings.ToLower(name))
	})
}

// site returns the files of the site, by their addresses.
func site() web.Files {
	built, err := Build(downpour.Pages)
	if err != nil {
		panic("docsite: " + err.Error()) // cannot happen: a test builds the same
	}
	all := web.Files{}
	all.Add("/docs/openapi.json", "openapi.json", openapi.JSON)
	for name, content := range built {
		all.Add("/docs/"+strings.TrimSuffix(strings.TrimSuffix(name, ".html"), "index"), name, content)
	}
	drawn, err := fs.Sub(downpour.Pages, strings.TrimSuffix(pictures, "/"))
	if err != nil {
		panic("docsite: " + err.Error()) // cannot happen: it is a path
	}
	all.AddTree(drawn, func(name string) string { return "/docs/" + name })
	return all
}
