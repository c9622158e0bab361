package metaroutes

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/metadata/lookup"
	"downpour/gateway/uid"
)

// searches are the search types for which OpenTSDB needs a search plugin.
var searches = []string{"tsmeta", "tsmeta_summary", "tsuids", "uidmeta", "annotation"}

// search handles /api/search. Source: SearchRpc.execute.
func (h *Handlers) search(w http.ResponseWriter, r *http.Request) error {
	method, err := httpio.Method(r)
	if err != nil {
		return err
	}
	if method != http.MethodGet && method != http.MethodPost {
		return httpio.BadRequest("Unsupported method: %s", method)
	}
	body, err := httpio.ReadBody(w, r)
	if err != nil {
		return err
	}

	kind, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(httpio.Path(r), "api/search"), "/"), "/")
	switch {
	case kind == "lookup":
		return h.lookup(w, r, body)
	case kind == "values":
		return h.values(w, r, body)
	case kind == "":
		return &httpio.Error{
			Code:    http.StatusBadRequest,
			Message: "Invalid search query type supplied",
			Details: "Type provided was null or empty",
		}
	case !slices.Contains(searches, kind):
		return &httpio.Error{
			Code:    http.StatusBadRequest,
			Message: "Invalid search query type supplied",
			Details: "Unknown type: " + kind,
		}
	}

	if err := checkSearch(r, body); err != nil {
		return err
	}
	return &httpio.Error{
		Code:    http.StatusBadRequest,
		Message: "Searching is not enabled",
		Details: "Searching has not been enabled on this TSD",
	}
}

// checkSearch checks the parameters of a search, in OpenTSDB's order, so that the
// same error comes first.
func checkSearch(r *http.Request, body []byte) error {
	if len(body) > 0 {
		return httpio.ParseJSON(body, &lookupRequest{})
	}
	if _, err := httpio.RequiredValue(r, "query"); err != nil {
		return err
	}
	for _, name := range []string{"limit", "start_index"} {
		if _, err := httpio.IntValue(r, name, 0); err != nil {
			return err
		}
	}
	return nil
}

// lookupRequest is a lookup as clients send it. Source: SearchQuery.
type lookupRequest struct {
	Metric     *string      `json:"metric"`
	Tags       []lookup.Tag `json:"tags"`
	Limit      int32        `json:"limit"`
	StartIndex int32        `json:"startIndex"`
	UseMeta    bool         `json:"useMeta"`
}

// lookupAnswer is the answer to a lookup; time is in ms.
type lookupAnswer struct {
	Type         string              `json:"type"`
	Metric       *string             `json:"metric,omitempty"`
	Tags         *[]lookup.Tag       `json:"tags,omitempty"`
	Limit        int                 `json:"limit"`
	Time         encoding.JSONDouble `json:"time"`
	Results      []lookup.Series     `json:"results"`
	StartIndex   int                 `json:"startIndex"`
	TotalResults int                 `json:"totalResults"`
}

// defaultLookups is the limit of a lookup that gives none.
const defaultLookups = 25

// lookup finds series. Source: SearchRpc.processLookup.
func (h *Handlers) lookup(w http.ResponseWriter, r *http.Request, body []byte) error {
	start := time.Now()
	in, err := parseLookup(r, body)
	if err != nil {
		return err
	}
	if in.Metric == nil && len(in.Tags) == 0 {
		return httpio.BadRequest("Missing metric and tags. Please supply at least one value.")
	}

	q := lookup.Query{Metric: in.Metric, Tags: in.Tags, Limit: int(in.Limit), Meta: in.UseMeta}
	ctx, cancel := h.timeout(r)
	defer cancel()
	if q.Meta {
		if err := h.AwaitRecorded(ctx); err != nil {
			return err
		}
	}

	found, err := h.Lookup.Find(ctx, q)
	if err != nil {
		return lookupError(err)
	}

	// StartIndex is only repeated: a lookup has no pages.
	answer := lookupAnswer{
		Type:         "LOOKUP",
		Metric:       in.Metric,
		Limit:        int(in.Limit),
		Time:         encoding.JSONDouble(time.Since(start).Milliseconds()),
		Results:      found,
		StartIndex:   int(in.StartIndex),
		TotalResults: len(found),
	}
	if in.Tags != nil {
		answer.Tags = &in.Tags
	}
	return httpio.WriteJSON(w, r, http.StatusOK, answer)
}

// lookupError is the answer to a lookup that failed.
func lookupError(err error) error {
	var unknown *uid.NoSuchIDError
	if errors.As(err, &unknown) {
		return &httpio.Error{
			Code:    http.StatusNotFound,
			Message: "Unable to resolve one or more TSUIDs",
			Details: err.Error(),
		}
	}
	return nameNotFound(err, "Unable to resolve one or more UIDs")
}

// parseLookup reads a lookup from the body, or from the parameters m and limit if there
// is no body. Without a metric, any matches.
func parseLookup(r *http.Request, body []byte) (in lookupRequest, err error) {
	any := lookup.Any
	in = lookupRequest{Metric: &any, Limit: defaultLookups, UseMeta: true}
	if len(body) > 0 {
		err = httpio.ParseJSON(body, &in)
		return in, err
	}

	text, err := httpio.RequiredValue(r, "m")
	if err != nil {
		return in, err
	}
	if in.Metric, in.Tags, err = parseLookupSeries(text); err != nil {
		return in, &httpio.Error{Code: http.StatusBadRequest, Message: "Unable to parse query", Details: err.Error()}
	}

	n, err := httpio.IntValue(r, "limit", defaultLookups)
	in.Limit = int32(n)
	return in, err
}

// parseLookupSeries reads metric{k=v,k=,=v,k=*}. The metric is nil, which means any,
// if there are only tags.
// Source: Tags.parseWithMetric, its form with a list.
func parseLookupSeries(text string) (*string, []lookup.Tag, error) {
	tags := []lookup.Tag{}
	metric, inner, err := cutBraces(text)
	if err != nil {
		return nil, nil, err
	}

	if inner == "" {
		if metric == "" {
			return nil, nil, errors.New("Missing metric and tags: " + text)
		}
		return &metric, tags, nil
	}

	for text := range strings.SplitSeq(inner, ",") {
		tag, err := parseLookupTag(text)
		if err != nil {
			return nil, nil, errors.New("When parsing tag '" + text + "': " + err.Error())
		}
		tags = append(tags, tag)
	}

	if metric == "" {
		return nil, tags, nil
	}
	return &metric, tags, nil
}

// parseLookupTag reads k=v. A key without a value finds all series with that tag key
// ("k="), a value without a key all with that tag value ("=v").
func parseLookupTag(text string) (t lookup.Tag, err error) {
	if len(text) < 2 {
		return t, errors.New("Missing tag pair")
	}
	if v, ok := strings.CutPrefix(text, "="); ok {
		return lookup.Tag{Value: &v}, nil
	}
	if k, ok := strings.CutSuffix(text, "="); ok {
		return lookup.Tag{Key: &k}, nil
	}
	k, v, ok := strings.Cut(text, "=")
	if !ok || strings.Contains(v, "=") {
		return t, errors.New("invalid tag: " + text)
	}
	return lookup.Tag{Key: &k, Value: &v}, nil
}
