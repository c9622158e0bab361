package query

import (
	"fmt"
	"net/http"
)

// Error refuses a query. Its texts are OpenTSDB's where OpenTSDB has one, for
// clients compare them.
type Error struct {
	// Status is the HTTP status: 400, 413, or 500 where the reference fails so.
	Status  int
	Message string
	// Details says more, "" for nothing.
	Details string
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// bad is a 400 without details.
func bad(format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// Broken is a 500: the reference does not foresee the mistake.
func Broken(format string, args ...any) *Error {
	return &Error{Status: http.StatusInternalServerError, Message: fmt.Sprintf(format, args...)}
}

// TooMuch is a 413; its text is to name the limit.
func TooMuch(format string, args ...any) *Error {
	return &Error{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf(format, args...)}
}

// unreadable is the answer to every fault inside a JSON body; only the details
// tell the reason. Source: HttpJsonSerializer.parseQueryV1.
func unreadable(reason error) *Error {
	return &Error{Status: http.StatusBadRequest, Message: "Unable to parse the given JSON", Details: reason.Error()}
}

// nullPointer is what the reference answers where it trips over a missing value.
func nullPointer() *Error { return Broken("An internal null pointer exception was thrown") }

// UnknownName is the answer to a name without a UID. kind is "metrics", "tagk"
// or "tagv". Source: NoSuchUniqueName.
func UnknownName(kind fmt.Stringer, name string) *Error {
	e := bad("No such name for '%s': '%s'", kind, name)
	e.Details = e.Message
	return e
}

// RunFault is the answer to a fault that shows only when a query runs: a 400
// that says its message twice. Source: QueryRpc, its error callback.
func RunFault(format string, args ...any) *Error {
	e := bad(format, args...)
	e.Details = e.Message
	return e
}
