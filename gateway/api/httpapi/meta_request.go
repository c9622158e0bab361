package httpapi

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"downpour/gateway/metadata/annotation"
	"downpour/gateway/metadata/last"
	"downpour/gateway/metadata/lookup"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/uid"
	"downpour/pushdown/rpc/auth"
)

// What the routes of metadata, annotations and searches have in common.

// apiMethod is the request's verb, or the one that a GET asks to be taken for.
// Source: HttpQuery.getAPIMethod.
func apiMethod(r *http.Request) (string, error) {
	values := r.URL.Query()
	if r.Method != http.MethodGet || !values.Has("method_override") {
		return r.Method, nil
	}
	switch method := strings.ToUpper(lastValue(r, "method_override")); method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete:
		return method, nil
	case "":
		return "", &apiError{Code: http.StatusMethodNotAllowed, Message: "Missing method override value"}
	}
	return "", &apiError{Code: http.StatusMethodNotAllowed, Message: "Unknown or unsupported method override value"}
}

// methodNotAllowed answers a verb that may come from an override.
func methodNotAllowed(method string) *apiError {
	return &apiError{Code: http.StatusMethodNotAllowed, Message: "Method not allowed",
		Details: "The HTTP method [" + method + "] is not permitted for this endpoint"}
}

// mayChange checks what a request needs that changes data, whatever its verb
// is: routes are open to readers. That no other site's page asks was checked by
// the verb (endpoint.reads), but not for what changes something by its
// parameters alone.
func (a *API) mayChange(w http.ResponseWriter, r *http.Request, scope auth.Scope) error {
	if err := a.authorize(r, scope); err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return err
	}
	if !a.Origins.allowsChange(r) {
		return errForeignChange
	}
	return nil
}

// errForeignChange refuses a page of another site.
var errForeignChange = &apiError{Code: http.StatusForbidden, Message: "CORS domain not allowed",
	Details: "Another site's page may not change data; list its origin in DOWNPOUR_ALLOW_ORIGINS if it may"}

// lastValue is a parameter's value, of a repeated one the last.
func lastValue(r *http.Request, name string) string {
	if v := r.URL.Query()[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// requiredValue is a parameter that must be there.
func requiredValue(r *http.Request, name string) (string, error) {
	if v := lastValue(r, name); v != "" {
		return v, nil
	}
	return "", missingParameter(name)
}

// given is a parameter's value if it is there.
func given(r *http.Request, name string) *string {
	if !r.URL.Query().Has(name) {
		return nil
	}
	v := lastValue(r, name)
	return &v
}

// broken is a fault of the request that OpenTSDB answers with status 500,
// because it is found in a place where none is expected.
func broken(format string, args ...any) *apiError {
	return &apiError{Code: http.StatusInternalServerError, Message: fmt.Sprintf(format, args...)}
}

// parseContent reads a JSON body; that it is empty is an error.
func parseContent(body []byte, into any) error {
	if len(body) == 0 {
		return &apiError{Code: http.StatusBadRequest, Message: "Missing message content",
			Details: "Supply valid JSON formatted data in the body of your request"}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &apiError{Code: http.StatusBadRequest, Message: "Unable to parse the given JSON", Details: err.Error()}
	}
	return nil
}

// integer is a JSON integer, as a number or as text; null is not given.
type integer int64

// UnmarshalJSON reads either spelling; a fraction is cut off.
func (i *integer) UnmarshalJSON(b []byte) error {
	var s scalar
	if err := s.UnmarshalJSON(b); err != nil || s == "" {
		return err
	}
	n, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		f, floatErr := strconv.ParseFloat(string(s), 64)
		if floatErr != nil || !(f > -1<<63 && f < 1<<63) {
			return err
		}
		n = int64(f)
	}
	*i = integer(n)
	return nil
}

// pointer is the number as the meta data packages take it.
func (i *integer) pointer() *int64 { return (*int64)(i) }

// texts makes a map of strings; clients also send numbers in it.
func texts(in map[string]scalar) map[string]string {
	if in == nil {
		return nil
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = string(v)
	}
	return out
}

// hexUID reads hex; a digit too few is a leading zero.
// Source: UniqueId.stringToUid.
func hexUID(text string) ([]byte, error) {
	if text == "" {
		return nil, errors.New("UID was empty")
	}
	if len(text)%2 != 0 {
		text = "0" + text
	}
	raw, err := hex.DecodeString(text)
	if err != nil {
		return nil, errors.New("contains illegal character for hexBinary: " + text)
	}
	return raw, nil
}

// parseSeries reads metric{k=v,…}. The error is a client's text.
// Source: Tags.parseWithMetric.
func parseSeries(text string) (metric string, tags map[string]string, err error) {
	metric, inner, err := cutBraces(text)
	tags = map[string]string{}
	if err != nil || inner == "" {
		return metric, tags, err
	}
	for tag := range strings.SplitSeq(inner, ",") {
		k, v, _ := strings.Cut(tag, "=")
		old, there := tags[k]
		switch {
		case k == "" || v == "" || strings.Contains(v, "="):
			return "", nil, fmt.Errorf("When parsing tag '%s': invalid tag: %s", tag, tag)
		case there && old != v:
			return "", nil, fmt.Errorf("When parsing tag '%s': duplicate tag: %s, tags={%s=%s}", tag, tag, k, old)
		}
		tags[k] = v
	}
	return metric, tags, nil
}

// cutBraces splits metric{inner}.
func cutBraces(text string) (metric, inner string, err error) {
	metric, inner, found := strings.Cut(text, "{")
	if !found {
		return text, "", nil
	}
	inner, closed := strings.CutSuffix(inner, "}")
	if !closed {
		return "", "", errors.New("Missing '}' at the end of: " + text)
	}
	return metric, inner, nil
}

// classifyMeta maps the errors of metadata, annotations and searches; nil for
// others.
func classifyMeta(err error) *apiError {
	var note *annotation.RefusedError
	var newest *last.RefusedError
	var width *meta.WidthError
	var many lookup.TooManyError
	var noID *uid.NoSuchIDError
	switch {
	case errors.As(err, &note), errors.As(err, &newest), errors.As(err, &width), errors.Is(err, annotation.ErrNoStart), errors.Is(err, meta.ErrNoTSMeta):
		return &apiError{Code: http.StatusBadRequest, Message: err.Error(), Details: err.Error()}
	case errors.As(err, &many):
		return &apiError{Code: http.StatusRequestEntityTooLarge, Message: err.Error()}
	case errors.As(err, &noID):
		return &apiError{Code: http.StatusNotFound, Message: "Could not find the requested UID", Details: err.Error()}
	}
	return nil
}

// flushMeta writes what puts have left to be recorded, so that a client finds
// what it has put. A fault shows in what is read afterwards.
func (a *API) flushMeta(ctx context.Context) {
	if a.FlushMeta != nil {
		_ = a.FlushMeta(ctx)
	}
}
