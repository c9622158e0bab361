package calls

import (
	"errors"
	"fmt"
)

// Errors of connections and their replies. Callers get them wrapped in a LostError or a dialError.
var (
	// errFrame is returned when the bytes of a connection are no reply that a
	// server sends. It ends the connection.
	errFrame = errors.New("malformed reply frame")
	// errRefused is returned when a server refuses the connection after its header.
	errRefused = errors.New("the server refuses the connection")
	// errUnanswered is returned when a server closes a plain connection before it has
	// answered anything on it.
	errUnanswered = errors.New(
		"the server has closed the connection without a reply, as one does that wants TLS " +
			"(DOWNPOUR_HBASE_TLS is off) or is being stopped")
	// errElsewhere is returned when hbase:meta names another server for the region
	// of a call whose server is silent.
	errElsewhere = errors.New("the region has left the server, which is silent")
)

// LostError is the error of a call that was sent, or may have been, and got no
// reply.
type LostError struct {
	addr     string
	CallOnly bool // the connection stays: other calls on it may still be answered
	err      error
}

func (e *LostError) Error() string { return fmt.Sprintf("no reply from %s: %v", e.addr, e.err) }
func (e *LostError) Unwrap() error { return e.err }

// dialError is the error of a call that was not sent because its server cannot be
// connected to.
type dialError struct {
	addr string
	err  error
}

func (e *dialError) Error() string { return fmt.Sprintf("cannot connect to %s: %v", e.addr, e.err) }
func (e *dialError) Unwrap() error { return e.err }
