package query

import (
	"fmt"
	"net/http"

	"downpour/encoding"
)

// Error is returned when a query is refused. Its texts are OpenTSDB's where OpenTSDB has
// the same error, because clients compare them.
type Error struct {
	// Status is the HTTP status: 400, 413, or 500 where OpenTSDB answers 500 to a mistake
	// of the client.
	Status  int
	Message string
	// Details explains the message, "" for nothing.
	Details string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Bad returns a 400 without details.
func Bad(format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// Broken returns a 500, for mistakes that OpenTSDB does not foresee.
func Broken(format string, args ...any) *Error {
	return &Error{Status: http.StatusInternalServerError, Message: fmt.Sprintf(format, args...)}
}

// TooMuch returns a 413. The text should name the limit.
func TooMuch(format string, args ...any) *Error {
	return &Error{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf(format, args...)}
}

// unreadable returns the 400 for any mistake inside a JSON body. Only its details give the
// reason. Source: HttpJsonSerializer.parseQueryV1.
func unreadable(reason error) *Error {
	return &Error{Status: http.StatusBadRequest, Message: "Unable to parse the given JSON", Details: reason.Error()}
}

// nullPointer returns the 500 that OpenTSDB answers where it does not check for a missing
// value.
func nullPointer() *Error { return Broken("An internal null pointer exception was thrown") }

// UnknownNameError is returned when a query names a metric, tag key or tag value that
// has no UID. The query may succeed later, because the next point that is put may
// assign one. It unwraps to the *Error that the API answers.
// Source: NoSuchUniqueName.
type UnknownNameError struct {
	Kind encoding.UIDKind
	Name string
	// Near are names that may be meant.
	Near []string
}

// Error returns OpenTSDB's text.
func (e *UnknownNameError) Error() string {
	return fmt.Sprintf("No such name for '%s': '%s'", e.Kind, e.Name)
}

// Unwrap returns the *Error that the API answers: a 400 that has its message twice.
func (e *UnknownNameError) Unwrap() error { return RunFault("%s", e.Error()) }

// RunFault returns the error of a mistake that shows only when a query runs: a 400 with
// the message in its details too. Source: QueryRpc, its error callback.
func RunFault(format string, args ...any) *Error {
	e := Bad(format, args...)
	e.Details = e.Message
	return e
}

// UnsupportedError is returned for a regular expression that OpenTSDB understands and the
// gateway does not.
type UnsupportedError struct{ What, Text string }

// Error names the construct and the expression.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("Unsupported regular expression '%s': it uses %s", e.Text, e.What)
}
