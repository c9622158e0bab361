package metaroutes

import (
	"context"
	"net/http"
	"strconv"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/java"
)

// suggestion is what a request to /api/suggest wants.
type suggestion struct {
	kind  encoding.UIDKind
	text  string // "" is all names
	most  int
	parts bool // names that hold the text, not those that begin with it

	newest bool // of these the newest first
}

// suggest handles /api/suggest: it returns names that begin with a prefix, in byte order. Source: SuggestRpc. With
// match=substring, which OpenTSDB does not have, it returns those that hold the words of a text, and the header
// TotalHeader says how many do. The best come first, or with order=newest the newest.
func (h *Handlers) suggest(w http.ResponseWriter, r *http.Request) error {
	asked, err := readSuggestion(w, r)
	if err != nil {
		return err
	}

	ctx, cancel := h.timeout(r)
	defer cancel()
	var names []string
	if asked.parts {
		names, err = h.suggestParts(ctx, w, asked)
	} else {
		names, err = h.suggestPrefix(ctx, asked)
	}
	if err != nil {
		return err
	}
	if names == nil {
		names = []string{} // in JSON a list, not null
	}
	return httpio.WriteJSON(w, r, http.StatusOK, names)
}

// suggestPrefix returns the names that begin with a text.
func (h *Handlers) suggestPrefix(ctx context.Context, asked suggestion) ([]string, error) {
	// One more than an answer may have shows that there are too many.
	names, err := h.Names.Suggest(ctx, asked.kind, asked.text, min(asked.most, maxSuggestions+1))
	if err != nil {
		return nil, err
	}
	return names, checkSuggestions(len(names))
}

// TotalHeader is how many names match; an answer has the first of them.
const TotalHeader = "Downpour-Total"

// OrderHeader is "newest" if the names are in this order. UIDs that are drawn at random do not have it.
const OrderHeader = "Downpour-Order"

// suggestParts returns the names that hold the words of a text, and sets their number as a header.
func (h *Handlers) suggestParts(ctx context.Context, w http.ResponseWriter, asked suggestion) ([]string, error) {
	most := min(asked.most, maxSuggestions)
	if !asked.newest {
		names, total, err := h.Completion.Find(ctx, asked.kind, asked.text, most)
		if err == nil {
			w.Header().Set(TotalHeader, strconv.Itoa(total))
		}
		return names, err
	}
	names, total, ok, err := h.Completion.Newest(ctx, asked.kind, asked.text, most)
	if err == nil {
		w.Header().Set(TotalHeader, strconv.Itoa(total))
		if ok {
			w.Header().Set(OrderHeader, "newest")
		}
	}
	return names, err
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

// readSuggestion reads it from the URL or from the body.
func readSuggestion(w http.ResponseWriter, r *http.Request) (asked suggestion, err error) {
	var in struct {
		Type  string `json:"type"`
		Q     string `json:"q"`
		Max   string `json:"max"`
		Match string `json:"match"`
		Order string `json:"order"`
	}
	switch r.Method {
	case http.MethodGet:
		in.Type, in.Q, in.Max = httpio.LastValue(r, "type"), httpio.LastValue(r, "q"), httpio.LastValue(r, "max")
		in.Match, in.Order = httpio.LastValue(r, "match"), httpio.LastValue(r, "order")
	case http.MethodPost:
		body, err := httpio.ReadBody(w, r)
		if err != nil {
			return asked, err
		}
		if err := httpio.ParseJSON(body, &in); err != nil {
			return asked, err
		}
	default:
		return asked, httpio.MethodNotAllowed(r.Method)
	}

	switch {
	case in.Type == "" && r.Method == http.MethodPost:
		return asked, httpio.BadRequest("Missing 'type' parameter")
	case in.Type == "":
		return asked, httpio.MissingParameter("type")
	}
	if asked.most, err = parseMost(in.Max); err != nil {
		return asked, err
	}
	var ok bool
	asked.kind, ok = map[string]encoding.UIDKind{"metrics": encoding.UIDMetric, "tagk": encoding.UIDTagK,
		"tagv": encoding.UIDTagV}[in.Type]
	if !ok {
		return asked, httpio.BadRequest("Invalid 'type' parameter:%s", in.Type)
	}
	asked.text, asked.parts, asked.newest = in.Q, in.Match == "substring", in.Order == "newest"
	switch {
	case in.Match != "" && !asked.parts:
		return asked, httpio.BadRequest("Invalid 'match' parameter: %s, want substring", in.Match)
	case in.Order != "" && !(asked.newest && asked.parts):
		return asked, httpio.BadRequest("Invalid 'order' parameter: %s, want newest, with match=substring", in.Order)
	}
	return asked, nil
}

// parseMost reads how many names are wanted.
func parseMost(text string) (int, error) {
	if text == "" {
		return defaultSuggestions, nil
	}
	// OpenTSDB reads 32 bits, and takes what is not positive for no number at all.
	n, err := java.ParseInt(text)
	switch {
	case err != nil:
		return 0, httpio.BadRequest("Unable to parse 'max' as a number")
	case n <= 0:
		n = defaultSuggestions
	}
	return int(n), nil
}
