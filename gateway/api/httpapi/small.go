package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"

	"downpour/encoding"
)

// Version is what /api/version answers; all values are strings, as there.
type Version struct {
	ShortRevision string `json:"short_revision"`
	Repo          string `json:"repo"`
	Host          string `json:"host"`
	Version       string `json:"version"`
	FullRevision  string `json:"full_revision"`
	RepoStatus    string `json:"repo_status"`
	User          string `json:"user"`
	Branch        string `json:"branch"`
	Timestamp     string `json:"timestamp"`
}

func (a *API) healthz(w http.ResponseWriter, _ *http.Request) error {
	w.Write([]byte("ok\n"))
	return nil
}

func (a *API) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := a.Ready(r.Context()); err != nil {
		return &apiError{Code: http.StatusServiceUnavailable, Message: "not ready: " + err.Error()}
	}
	w.Write([]byte("ready\n"))
	return nil
}

// suggest completes names in byte order. Source: SuggestRpc.
func (a *API) suggest(w http.ResponseWriter, r *http.Request) error {
	kindName, prefix, max, err := suggestParameters(w, r)
	if err != nil {
		return err
	}
	kind, ok := map[string]encoding.UIDKind{"metrics": encoding.UIDMetric, "tagk": encoding.UIDTagK, "tagv": encoding.UIDTagV}[kindName]
	if !ok {
		return bad("Invalid 'type' parameter:%s", kindName)
	}
	ctx, cancel := a.within(r)
	defer cancel()
	names, err := a.Names.Suggest(ctx, kind, prefix, max)
	if err != nil {
		return err
	}
	if names == nil {
		names = []string{}
	}
	return writeJSON(w, r, http.StatusOK, names)
}

const (
	defaultSuggestions = 25
	maxSuggestions     = 100_000
)

func suggestParameters(w http.ResponseWriter, r *http.Request) (kind, prefix string, max int, err error) {
	var in struct {
		Type string
		Q    string
		Max  scalar
	}
	switch r.Method {
	case http.MethodGet:
		q := r.URL.Query()
		in.Type, in.Q, in.Max = q.Get("type"), q.Get("q"), scalar(q.Get("max"))
	case http.MethodPost:
		body, err := readBody(w, r)
		if err != nil {
			return "", "", 0, err
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return "", "", 0, &apiError{Code: http.StatusBadRequest, Message: "Unable to parse the given JSON", Details: err.Error()}
		}
	default:
		return "", "", 0, notAllowed(r)
	}
	if in.Type == "" {
		return "", "", 0, missingParameter("type")
	}
	if in.Max == "" {
		return in.Type, in.Q, defaultSuggestions, nil
	}
	max, err = strconv.Atoi(string(in.Max))
	if err != nil || max < 1 {
		return "", "", 0, bad("Unable to parse 'max' as a number")
	}
	return in.Type, in.Q, min(max, maxSuggestions), nil
}

// aggregatorNames are all aggregators in the order of the reference, which is
// that of a Java hash map.
var aggregatorNames = []string{"mult", "p90", "zimsum", "mimmax", "sum", "p50", "none", "p95", "ep99r7", "pfsum", "p75", "p99",
	"ep99r3", "ep95r7", "min", "avg", "ep75r7", "dev", "ep95r3", "ep75r3", "ep50r7", "ep90r7", "mimmin", "p999", "ep50r3",
	"ep90r3", "ep999r7", "last", "max", "count", "diff", "median", "squareSum", "ep999r3", "first"}

func (a *API) aggregators(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return notAllowed(r)
	}
	return writeJSON(w, r, http.StatusOK, aggregatorNames)
}

func (a *API) config(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, r, http.StatusOK, a.Settings)
}

// filterHelp is what /api/config/filters tells of a filter type.
type filterHelp struct {
	Examples    string `json:"examples"`
	Description string `json:"description"`
}

var filterHelps = map[string]filterHelp{
	"literal_or":      {"host=literal_or(web01|web02)", "One or more exact values, separated by |."},
	"iliteral_or":     {"host=iliteral_or(web01|WEB02)", "One or more values, separated by |, in any case."},
	"not_literal_or":  {"host=not_literal_or(web01|web02)", "Any value but the exact ones listed. The tag must be there."},
	"not_iliteral_or": {"host=not_iliteral_or(web01|WEB02)", "Any value but those listed, in any case. The tag must be there."},
	"wildcard":        {"host=wildcard(web*)", "Values matching a pattern in which * stands for any text."},
	"iwildcard":       {"host=iwildcard(WEB*)", "As wildcard, in any case."},
	"regexp":          {"host=regexp(web[0-9]+)", "Values in which a regular expression (RE2) finds a match."},
}

func (a *API) filters(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, r, http.StatusOK, filterHelps)
}

func (a *API) version(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, r, http.StatusOK, a.Version)
}

func (a *API) serializers(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, r, http.StatusOK, []map[string]any{{
		"serializer": "json", "class": "HttpJsonSerializer",
		"request_content_type": "application/json", "response_content_type": "application/json; charset=UTF-8",
		"formatters": []string{"SuggestV1", "AggregatorsV1", "VersionV1", "QueryAsyncV1"},
		"parsers":    []string{"SuggestV1", "PutV1", "QueryV1"},
	}})
}

func (a *API) dropCaches(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodDelete {
		return notAllowed(r)
	}
	a.Names.Drop()
	a.Series.Drop()
	if err := a.Engine.DropCaches(r.Context()); err != nil {
		return &apiError{Code: http.StatusServiceUnavailable, Message: "Caches dropped here, but maybe not on all pushdown servers", Details: err.Error()}
	}
	return writeJSON(w, r, http.StatusOK, map[string]string{"status": "200", "message": "Caches dropped"})
}
