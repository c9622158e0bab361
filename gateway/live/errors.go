package live

import (
	"errors"
	"fmt"
)

// Error is a refusal as a client gets it. While a query is live, a temporary error leaves the
// subscription open, and the query is retried.
type Error struct {
	Code      int // the HTTP status of the same refusal over HTTP
	Message   string
	Temporary bool
	// Suggestions are names that may be meant by one that does not exist.
	Suggestions []string
}

// same reports whether clients would get the same, except for suggestions.
func (e *Error) same(o *Error) bool {
	return e.Code == o.Code && e.Message == o.Message && e.Temporary == o.Temporary
}

func (e *Error) Error() string { return fmt.Sprintf("live: %d %s", e.Code, e.Message) }

// ErrNoMemory is returned when there is no memory to encode a message in.
var ErrNoMemory = errors.New("live: other work holds the memory that the message takes")

// errInternal is the client's error of a panic.
var errInternal = &Error{Code: 500, Message: "Internal error"}
