package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// apiError is an answer that is not data. Code is the HTTP status.
type apiError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Details string `json:"details,omitempty"`
	// Missing lists the key ranges, in hex, that an incomplete answer lacks.
	Missing [][2]string `json:"missing,omitempty"`
}

// Error is the message.
func (e *apiError) Error() string { return e.Message }

// bad is a 400 with a message.
func bad(format string, args ...any) *apiError {
	return &apiError{Code: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// notAllowed answers a wrong verb. Source: HttpRpc implementations.
func notAllowed(r *http.Request) *apiError {
	return &apiError{Code: http.StatusMethodNotAllowed, Message: "Method not allowed",
		Details: "The HTTP method [" + r.Method + "] is not permitted for this endpoint"}
}

// missingParameter words an absent query parameter.
// Source: HttpQuery.getRequiredQueryStringParam.
func missingParameter(name string) *apiError {
	return bad("Missing parameter <code>%s</code>", name)
}

// classify maps any error to an answer: the one place where a fault becomes an
// HTTP status.
func classify(err error) *apiError {
	var api *apiError
	var tooLarge *http.MaxBytesError
	var busy *uid.BusyError
	if e := classifyQuery(err); e != nil {
		return e
	}
	if e := classifyMeta(err); e != nil {
		return e
	}
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &tooLarge):
		return &apiError{Code: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("Request body of more than %d bytes", tooLarge.Limit)}
	case errors.Is(err, uid.ErrTooLong):
		return &apiError{Code: http.StatusRequestEntityTooLarge, Message: err.Error()}
	case errors.As(err, &busy):
		return &apiError{Code: http.StatusServiceUnavailable, Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return timedOut("the deadline passed before the answer was complete")
	case errors.Is(err, store.ErrNoTable):
		return &apiError{Code: http.StatusFailedDependency, Message: err.Error()}
	case errors.Is(err, store.ErrDamaged):
		return &apiError{Code: http.StatusInternalServerError, Message: err.Error()}
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrStalled):
		return &apiError{Code: http.StatusServiceUnavailable, Message: err.Error()}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		return &apiError{Code: http.StatusFailedDependency, Message: "HBase is not reachable: " + err.Error()}
	}
	// As the reference does, what fails while a query runs is the query's
	// fault: duplicates, infinities, corrupt rows.
	return &apiError{Code: http.StatusBadRequest, Message: err.Error(), Details: err.Error()}
}

// writeError answers with the error object.
func writeError(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	e := classify(err)
	// Mostly nobody listens to what ended because the client has left. But one that
	// has only closed its own side looks alike, and without a word from here it would
	// be told 200. A body that did not come in time ends the request in the same way.
	if r.Context().Err() == context.Canceled && e.Code != http.StatusRequestTimeout {
		e = &apiError{Code: http.StatusServiceUnavailable, Message: "The request was given up: the client closed the connection, or its own side of it, before the answer"}
	} else if e.Code >= 500 {
		log.Warn("request failed", "path", r.URL.Path, "status", e.Code, "err", err)
	}
	if e.Code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	body, _ := json.Marshal(map[string]*apiError{"error": e})
	writeBody(w, r, e.Code, body)
}

// writeBody sends a JSON body, wrapped for jsonp where asked for.
func writeBody(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=UTF-8")
	if name := r.URL.Query().Get("jsonp"); name != "" && validCallback(name) {
		h.Set("Content-Type", "application/javascript; charset=UTF-8")
		body = append(append([]byte(name+"("), body...), ')')
	}
	w.WriteHeader(code)
	w.Write(body)
}

// validCallback keeps scripts out of jsonp names.
func validCallback(name string) bool {
	for _, r := range name {
		if r != '_' && r != '.' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return len(name) <= 128
}

// writeJSON sends v.
func writeJSON(w http.ResponseWriter, r *http.Request, code int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	writeBody(w, r, code, body)
	return nil
}
