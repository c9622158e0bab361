package metaroutes

import (
	"net/http"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/metadata/lookup"
)

// mostValues bounds the values that are listed.
const mostValues = 10_000

// valuesAnswer are the values of a tag, and whether there are more. Since, in seconds, is there if they are those of
// rows from then on: the meta table knows no such series.
type valuesAnswer struct {
	Values []string `json:"values"`
	More   bool     `json:"more"`
	Since  int64    `json:"since,omitempty"`
}

// values answers with the values of the tag key of the parameter tagk in the series that a lookup
// finds, at most limit of them. OpenTSDB has no such route.
func (h *Handlers) values(w http.ResponseWriter, r *http.Request, body []byte) error {
	key, err := httpio.RequiredValue(r, "tagk")
	if err != nil {
		return err
	}
	in, err := parseLookup(r, body)
	if err != nil {
		return err
	}
	if in.Limit < 1 || in.Limit > mostValues {
		return httpio.BadRequest("limit: got %d, want 1 to %d", in.Limit, mostValues)
	}

	ctx, cancel := h.timeout(r)
	defer cancel()
	if err := h.AwaitRecorded(ctx); err != nil {
		return err
	}
	found, err := h.Lookup.Values(ctx, lookup.Query{Metric: in.Metric, Tags: in.Tags}, key, int(in.Limit))
	if err != nil {
		return lookupError(err)
	}
	return httpio.WriteJSON(w, r, http.StatusOK,
		valuesAnswer{Values: append([]string{}, found.Values...), More: found.More, Since: found.Since})
}
