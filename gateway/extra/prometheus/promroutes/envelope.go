package promroutes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra/prometheus/promql"
	"downpour/gateway/query"
)

// apiError is an error with Prometheus' type. Its status is that of the error inside.
type apiError struct {
	status *httpio.Error
	kind   string
}

// Error is the text.
func (e *apiError) Error() string { return e.status.Message }

// Unwrap returns the error with the status, by which the product counts it.
func (e *apiError) Unwrap() error { return e.status }

func newError(code int, kind, text string) *apiError {
	return &apiError{&httpio.Error{Code: code, Message: text}, kind}
}

// badData refuses a request that cannot be understood.
func badData(format string, args ...any) error {
	return newError(http.StatusBadRequest, "bad_data", fmt.Sprintf(format, args...))
}

// classified returns errors of package promql with what HTTP and Prometheus say of them, and others as they are.
func classified(err error) error {
	var bad *promql.BadDataError
	var timeout *promql.TimeoutError
	var evaluation *promql.EvaluationError
	switch {
	case errors.As(err, &bad):
		return newError(http.StatusBadRequest, "bad_data", bad.Error())
	case errors.As(err, &timeout):
		return newError(http.StatusServiceUnavailable, "timeout", timeout.Error())
	case errors.As(err, &evaluation):
		return newError(http.StatusUnprocessableEntity, "execution", evaluation.Error())
	}
	return err
}

// translated returns an error of the product in Prometheus' terms: of those that it has, the type whose meaning
// is next to the status.
func translated(e *httpio.Error) *apiError {
	text := e.Message
	if e.Details != "" && e.Details != e.Message {
		text += ": " + e.Details
	}
	switch e.Code {
	case http.StatusRequestTimeout:
		return newError(http.StatusServiceUnavailable, "timeout", text)
	case http.StatusRequestEntityTooLarge:
		return newError(http.StatusUnprocessableEntity, "execution", text)
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType:
		return newError(e.Code, "bad_data", text)
	case http.StatusServiceUnavailable, http.StatusFailedDependency:
		return newError(http.StatusServiceUnavailable, "unavailable", text)
	}
	return newError(e.Code, "internal", text)
}

// writeError answers with an error.
func (h *handlers) writeError(w http.ResponseWriter, r *http.Request, err error) {
	err = classified(err)
	var a *apiError
	if !errors.As(err, &a) {
		a = translated(httpio.ErrorFor(w, r, h.log, err))
	}
	body, _ := json.Marshal(struct {
		Status string `json:"status"`
		Kind   string `json:"errorType"`
		Error  string `json:"error"`
	}{"error", a.kind, a.Error()})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status.Code)
	_, _ = w.Write(body)
}

// writeData answers with data.
func writeData(w http.ResponseWriter, data any, warnings ...string) error {
	body, err := json.Marshal(struct {
		Status   string   `json:"status"`
		Data     any      `json:"data"`
		Warnings []string `json:"warnings,omitempty"`
	}{"success", data, warnings})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(body)
	return queryroutes.Abort(err)
}

// unknownName reports whether an error says that a query names what there is not, and which kind.
func unknownName(err error) (*query.UnknownNameError, bool) {
	var unknown *query.UnknownNameError
	return unknown, errors.As(err, &unknown)
}
