package adminroutes

import (
	"net/http"

	"downpour/gateway/api/httpapi/httpio"
)

func (h *Handlers) healthz(w http.ResponseWriter, _ *http.Request) error {
	w.Write([]byte("ok\n"))
	return nil
}

// readyz handles /readyz: 503 with the reason while puts or queries would be refused.
func (h *Handlers) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := h.Ready(r.Context()); err != nil {
		return &httpio.Error{Code: http.StatusServiceUnavailable, Message: "not ready: " + err.Error()}
	}
	w.Write([]byte("ready\n"))
	return nil
}

// getOrPost refuses other verbs. Source: RpcUtil.allowedMethods.
func getOrPost(serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodPost {
			return httpio.MethodNotAllowed(r.Method)
		}
		return serve(w, r)
	}
}

// aggregatorNames are all aggregators in OpenTSDB's order, which is that of a Java
// hash map.
var aggregatorNames = []string{"mult", "p90", "zimsum", "mimmax", "sum", "p50", "none", "p95", "ep99r7", "pfsum",
	"p75", "p99",
	"ep99r3", "ep95r7", "min", "avg", "ep75r7", "dev", "ep95r3", "ep75r3", "ep50r7", "ep90r7", "mimmin", "p999",
	"ep50r3",
	"ep90r3", "ep999r7", "last", "max", "count", "diff", "median", "squareSum", "ep999r3", "first"}

func (h *Handlers) aggregators(w http.ResponseWriter, r *http.Request) error {
	return httpio.WriteJSON(w, r, http.StatusOK, aggregatorNames)
}

func (h *Handlers) config(w http.ResponseWriter, r *http.Request) error {
	return httpio.WriteJSON(w, r, http.StatusOK, h.Settings)
}

// filterHelp is the entry of a filter type in the answer of /api/config/filters.
type filterHelp struct {
	Examples    string `json:"examples"`
	Description string `json:"description"`
}

var filterHelps = map[string]filterHelp{
	"literal_or":  {"host=literal_or(web01|web02)", "One or more exact values, separated by |."},
	"iliteral_or": {"host=iliteral_or(web01|WEB02)", "One or more values, separated by |, in any case."},
	"not_literal_or": {"host=not_literal_or(web01|web02)",
		"Any value but the exact ones listed. The tag must be there."},
	"not_iliteral_or": {"host=not_iliteral_or(web01|WEB02)",
		"Any value but those listed, in any case. The tag must be there."},
	"wildcard":  {"host=wildcard(web*)", "Values matching a pattern in which * stands for any text."},
	"iwildcard": {"host=iwildcard(WEB*)", "As wildcard, in any case."},
	"regexp":    {"host=regexp(web[0-9]+)", "Values in which a regular expression of Java finds a match."},
}

func (h *Handlers) filters(w http.ResponseWriter, r *http.Request) error {
	return httpio.WriteJSON(w, r, http.StatusOK, filterHelps)
}

func (h *Handlers) version(w http.ResponseWriter, r *http.Request) error {
	return httpio.WriteJSON(w, r, http.StatusOK, h.Version)
}

// serializers handles /api/serializers. OpenTSDB 2.4 documents the route and does not have it:
// clients get JSON, the only one.
func (h *Handlers) serializers(w http.ResponseWriter, r *http.Request) error {
	return httpio.WriteJSON(w, r, http.StatusOK, []map[string]any{{
		"serializer": "json", "class": "HttpJsonSerializer",
		"request_content_type": "application/json", "response_content_type": "application/json; charset=UTF-8",
		"formatters": []string{"SuggestV1", "AggregatorsV1", "VersionV1", "QueryAsyncV1"},
		"parsers":    []string{"SuggestV1", "PutV1", "QueryV1"},
	}})
}

// dropCaches drops the caches of this process and of all pushdown servers. Other gateways check
// theirs.
// Source: RpcManager.DropCaches.
func (h *Handlers) dropCaches(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodDelete {
		return httpio.MethodNotAllowed(r.Method)
	}

	if err := h.DropCaches(r.Context()); err != nil {
		return &httpio.Error{
			Code:    http.StatusServiceUnavailable,
			Message: "Caches dropped here, but maybe not everywhere",
			Details: err.Error(),
		}
	}
	return httpio.WriteJSON(w, r, http.StatusOK, map[string]string{"status": "200", "message": "Caches dropped"})
}
