// Package promroutes is Prometheus' HTTP API, under /prometheus/api/v1: what Grafana's data source and other clients
// of Prometheus ask. It reads points and names as /api/query does, with its limits, deadline and log, and never
// writes. Errors have Prometheus' form.
// Source: Prometheus' web/api/v1.
package promroutes

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"downpour/gateway"
	"downpour/gateway/admin/activity"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/metaroutes"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra/prometheus/intake"
	"downpour/gateway/extra/prometheus/promql"
	"downpour/gateway/uid"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// New returns the routes.
func New() gateway.Extra { return gateway.Extra{Name: "prometheus", Open: open} }

// base is where the API is. OpenTSDB's own routes are also reached as /api/v1/….
const base = "prometheus/api/"

func open(_ context.Context, c *gateway.Core) (gateway.Parts, error) {
	h := &handlers{
		Handlers: c.Queries,
		engine:   promql.New(c.Queries.Timeout, maxPoints(c.Memory), c.Log),
		names:    c.Names,
		metadata: c.Metadata,
		log:      c.Log,
		intake:   intake.New(c, activity.RemoteWrite),
		twoKeys:  c.Config.SaltWidth > 0 || c.Config.AllowSpecialChars != "",
	}
	routes := map[string]httpio.Endpoint{}
	for path, serve := range map[string]func(http.ResponseWriter, *request) error{
		"v1/query":            h.instant,
		"v1/query_range":      h.ranged,
		"v1/series":           h.series,
		"v1/labels":           h.labels,
		"v1/metadata":         h.noMetadata,
		"v1/format_query":     h.format,
		"v1/status/buildinfo": h.buildInfo,
		"":                    h.below,
	} {
		routes[base+path] = httpio.Endpoint{
			Scope:   auth.Read,
			Serve:   h.Followed(h.enveloped(serve)),
			Reads:   httpio.GetOrPost,
			OwnTime: true,
			Absent:  httpio.WriteOnly,
		}
	}
	routes[base+"v1/read"] = httpio.Endpoint{
		Scope:   auth.Read,
		Serve:   h.Followed(h.remoteRead),
		Reads:   httpio.GetOrPost,
		OwnTime: true,
		Absent:  httpio.WriteOnly,
	}
	routes[base+"v1/write"] = httpio.Endpoint{
		Scope:  auth.Write,
		Serve:  h.remoteWrite,
		Reads:  httpio.NoVerb,
		Memory: memory.Write,
		Denied: h.intake.Denied,
		Absent: httpio.ReadOnly,
	}
	return gateway.Parts{Routes: routes}, nil
}

// Bounds of the points that one evaluation may have in memory.
const (
	leastPoints = 1_000_000
	mostPoints  = 50_000_000
)

// maxPoints returns how many points one evaluation may have in memory: what fits an eighth of the process's budget.
func maxPoints(pool *memory.Pool) int {
	total := pool.Total()
	if total == 0 {
		return mostPoints
	}
	return int(min(max(total/8/16, leastPoints), mostPoints))
}

// handlers answer the routes, with what answers queries.
type handlers struct {
	*queryroutes.Handlers
	engine   *promql.Engine
	names    *uid.Dictionary
	metadata metaroutes.Handlers
	log      *slog.Logger
	intake   *intake.Intake
	// twoKeys is set if one series may have two row keys: with two salts, or with a name in two spellings.
	twoKeys bool
}

// request is a request with its parameters, of the URL and of the body.
type request struct {
	*http.Request
	form  url.Values
	start time.Time
}

// get returns a parameter.
func (r *request) get(name string) string { return r.form.Get(name) }

// enveloped reads parameters, counts requests, and writes errors as Prometheus does.
func (h *handlers) enveloped(
	serve func(http.ResponseWriter, *request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		req := &request{Request: r, start: time.Now()}
		err := req.read(w)
		if err == nil {
			err = serve(w, req)
		}
		h.Count(err, req.start)
		if err != nil {
			h.writeError(w, r, err)
		}
		return nil
	}
}

// formBytes is about the memory of a decoded form, for each byte of its text.
const formBytes = 3

// read reads the parameters.
func (r *request) read(w http.ResponseWriter) error {
	method, err := httpio.Method(r.Request)
	if err != nil {
		return err
	}
	if method != http.MethodGet && method != http.MethodHead && method != http.MethodPost {
		return httpio.MethodNotAllowed(method)
	}
	if err := memory.Reserve(r.Context(), int64(len(r.URL.RawQuery))*formBytes); err != nil {
		return err
	}
	r.form = r.URL.Query()
	if r.Method != http.MethodPost {
		return nil
	}
	body, err := httpio.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	if err := memory.Reserve(r.Context(), int64(len(body))*formBytes); err != nil {
		return err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return badData("cannot read the form: %v", err)
	}
	for name, values := range form { // those of the body come first
		r.form[name] = append(values, r.form[name]...)
	}
	return nil
}

// below answers label/NAME/values, and refuses what there is not.
func (h *handlers) below(w http.ResponseWriter, r *request) error {
	// The route has no capitals, a label may.
	path := strings.Trim(r.URL.EscapedPath(), "/")
	words := strings.Split(path, "/")
	if len(words) == 6 && strings.EqualFold(words[3], "label") && strings.EqualFold(words[5], "values") {
		name, err := url.PathUnescape(words[4])
		if err != nil {
			return badData("invalid label name: %q", words[4])
		}
		return h.labelValues(w, r, name)
	}
	return newError(http.StatusNotFound, "not_found", "there is no "+r.URL.Path+" here")
}
