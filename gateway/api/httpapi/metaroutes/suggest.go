package metaroutes

import (
	"net/http"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/java"
)

// suggest handles /api/suggest: it returns names that begin with a prefix, in byte
// order. Source: SuggestRpc.
func (h *Handlers) suggest(w http.ResponseWriter, r *http.Request) error {
	kindName, prefix, max, err := suggestParameters(w, r)
	if err != nil {
		return err
	}
	kind, ok := map[string]encoding.UIDKind{"metrics": encoding.UIDMetric, "tagk": encoding.UIDTagK,
		"tagv": encoding.UIDTagV}[kindName]
	if !ok {
		return httpio.BadRequest("Invalid 'type' parameter:%s", kindName)
	}

	ctx, cancel := h.timeout(r)
	defer cancel()
	// One more than an answer may have shows that there are too many.
	names, err := h.Names.Suggest(ctx, kind, prefix, min(max, maxSuggestions+1))
	if err != nil {
		return err
	}
	if err := checkSuggestions(len(names)); err != nil {
		return err
	}
	if names == nil {
		names = []string{} // in JSON a list, not null
	}
	return httpio.WriteJSON(w, r, http.StatusOK, names)
}

// Numbers of suggestions.
const (
	defaultSuggestions = 25
	maxSuggestions     = 100_000
)

// checkSuggestions refuses an answer of more names than one may have. A list that is cut
// would look like all names.
func checkSuggestions(n int) error {
	if n <= maxSuggestions {
		return nil
	}
	return httpio.BadRequest("More than %d names begin with the prefix, ask for fewer by 'max' or for a longer prefix",
		maxSuggestions)
}

// suggestParameters reads the kind of names, the text that they begin with ("" is all)
// and how many are wanted, from the URL or from the body.
func suggestParameters(w http.ResponseWriter, r *http.Request) (kind, prefix string, max int, err error) {
	var in struct {
		Type string `json:"type"`
		Q    string `json:"q"`
		Max  string `json:"max"`
	}
	switch r.Method {
	case http.MethodGet:
		in.Type, in.Q, in.Max = httpio.LastValue(r, "type"), httpio.LastValue(r, "q"), httpio.LastValue(r, "max")
	case http.MethodPost:
		body, err := httpio.ReadBody(w, r)
		if err != nil {
			return "", "", 0, err
		}
		if err := httpio.ParseJSON(body, &in); err != nil {
			return "", "", 0, err
		}
	default:
		return "", "", 0, httpio.MethodNotAllowed(r.Method)
	}

	switch {
	case in.Type == "" && r.Method == http.MethodPost:
		return "", "", 0, httpio.BadRequest("Missing 'type' parameter")
	case in.Type == "":
		return "", "", 0, httpio.MissingParameter("type")
	}
	if in.Max == "" {
		return in.Type, in.Q, defaultSuggestions, nil
	}
	// OpenTSDB reads 32 bits, and takes what is not positive for no number at all.
	n, err := java.ParseInt(in.Max)
	switch {
	case err != nil:
		return "", "", 0, httpio.BadRequest("Unable to parse 'max' as a number")
	case n <= 0:
		n = defaultSuggestions
	}
	return in.Type, in.Q, int(n), nil
}
