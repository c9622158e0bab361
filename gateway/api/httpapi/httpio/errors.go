package httpio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"downpour/gateway/query"
)

// Error is an answer that is not data. Code is the HTTP status.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Details string `json:"details,omitempty"`
	// Request is the id of the request in the log. Errors that OpenTSDB answers, too, have none:
	// their objects are the same.
	Request string `json:"request,omitempty"`
	// Missing lists the key ranges, in hex, that are missing from an incomplete
	// answer.
	Missing [][2]string `json:"missing,omitempty"`
	// Suggestions are names that may be meant by one that does not exist.
	Suggestions []string `json:"suggestions,omitempty"`
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// BadRequest returns a 400 with a message.
func BadRequest(format string, args ...any) *Error {
	return &Error{Code: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// InternalError returns a 500 with a message. It is for faults of a request that OpenTSDB answers
// with 500, because its code does not expect them there.
func InternalError(format string, args ...any) *Error {
	return &Error{Code: http.StatusInternalServerError, Message: fmt.Sprintf(format, args...)}
}

// MethodNotAllowed refuses a verb, which may come from method_override.
// Source: the classes that implement HttpRpc.
func MethodNotAllowed(method string) *Error {
	return &Error{Code: http.StatusMethodNotAllowed, Message: "Method not allowed",
		Details: "The HTTP method [" + method + "] is not permitted for this endpoint"}
}

// MissingParameter refuses a request in which a parameter is missing.
// Source: HttpQuery.getRequiredQueryStringParam.
func MissingParameter(name string) *Error {
	return BadRequest("Missing parameter <code>%s</code>", name)
}

// UnreadableJSON refuses a body that is not the JSON that the route expects.
func UnreadableJSON(err error) *Error {
	return &Error{Code: http.StatusBadRequest, Message: "Unable to parse the given JSON", Details: err.Error()}
}

// WriteError answers with the error object of err. Faults of the server are
// logged.
func WriteError(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	e := ErrorFor(w, r, log, err)
	body, _ := json.Marshal(map[string]*Error{"error": e})
	WriteBody(w, r, e.Code, body)
}

// ErrorFor returns the error that the answer to a request shows, and sets the headers
// that go with it. Faults of the server are logged.
func ErrorFor(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) *Error {
	e := Classify(err)

	// A canceled request usually means that the client has disconnected and will not read this. But
	// a client that has only closed its own side of the connection looks the same, and would get
	// 200 if nothing were written here. A body that did not come in time cancels the request in the
	// same way, and keeps its status. One that an operator has ended has its own cause.
	if context.Cause(r.Context()) == context.Canceled && e.Code != http.StatusRequestTimeout {
		e = &Error{
			Code: http.StatusServiceUnavailable,
			Message: "The request was given up: the client closed the connection, or its own side of it, before the " +
				"answer",
		}
	} else if e.Code >= 500 {
		id := RequestID(r.Context())
		log.Warn("request failed", "path", r.URL.Path, "status", e.Code, "request", id, "err", err)
		if !worded(err) {
			known := *e // others may be given the same error
			known.Request, e = id, &known
		}
	}

	if e.Code == http.StatusServiceUnavailable {
		SetRetryAfter(w)
	}
	return e
}

// SetRetryAfter makes the client of a 503 send its request again.
func SetRetryAfter(w http.ResponseWriter) { w.Header().Set("Retry-After", "1") }

// worded reports whether an error was made for the answer, most often in OpenTSDB's words, and
// does not come from the store, a pushdown server or the limits of the process.
func worded(err error) bool {
	var answer *Error
	var parse *query.Error
	return errors.As(err, &answer) || errors.As(err, &parse)
}

// WriteBody sends a JSON body, wrapped in a call of the function that the parameter
// jsonp names. A name that could be a script is ignored.
func WriteBody(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=UTF-8")
	if name := LastValue(r, "jsonp"); name != "" && ValidCallback(name) {
		h.Set("Content-Type", "application/javascript; charset=UTF-8")
		body = append(append([]byte(name+"("), body...), ')')
	}
	w.WriteHeader(code)
	w.Write(body)
}

// ValidCallback reports whether a jsonp name is a function's name and not a script.
func ValidCallback(name string) bool {
	for _, r := range name {
		if r != '_' && r != '.' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return len(name) <= 128
}

// WriteJSON answers with v.
func WriteJSON(w http.ResponseWriter, r *http.Request, code int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	WriteBody(w, r, code, body)
	return nil
}
