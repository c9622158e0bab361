package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
)

// Errors of a server or of the connection to it, not of the part. After any of them
// another server, or the same one later, may execute the part.
var (
	// ErrServer is returned when the server cannot be reached or has failed
	// internally.
	ErrServer = errors.New("pushdown server failed")
	// ErrMisfit is returned when the server is set up for another table or layout.
	ErrMisfit = errors.New("pushdown server is set up otherwise")
	// ErrIncomplete is returned when a stream has ended too early.
	ErrIncomplete = errors.New("stream is incomplete")
	// ErrStalled is returned when the server has sent neither a batch nor a
	// heartbeat for too long.
	ErrStalled = errors.New("pushdown server shows no sign of life")
	// ErrEnding is returned when the server finishes its last parts and takes no
	// new ones.
	ErrEnding = errors.New("pushdown server is ending and takes no more parts")
	// ErrBusy is returned when the server has too many parts, or too little memory.
	ErrBusy = errors.New("pushdown server has no room for the part")
)

// Kinds of errors, as the trailer names them.
const (
	kindPlan        = "plan"
	kindData        = "data"
	kindLimit       = "limit"
	kindUnavailable = "unavailable"
	kindNoTable     = "no-table"
	kindMisfit      = "misfit"
	kindEnding      = "ending"
	kindBusy        = "busy"
	kindUnproven    = "unproven"
	kindOffHour     = "crooked"
	kindPanic       = "panic"
)

// detail is the trailer of an error, JSON.
type detail struct {
	Kind  string            `json:"kind"`
	What  operator.Resource `json:"what,omitempty"`
	Limit int64             `json:"limit,omitempty"`
	Need  int64             `json:"need,omitempty"`
	Row   scanplan.HexBytes `json:"row,omitempty"`
}

// Status returns the status and the trailer that carry an operator's error. Error is
// its inverse.
func Status(err error) (*status.Status, metadata.MD) {
	var data *operator.DataError
	var limit *operator.LimitError
	var offHour *operator.OffHourError
	var fault *operator.PanicError
	switch {
	case errors.As(err, &fault):
		return failure(codes.Internal, fault.Value, detail{Kind: kindPanic})
	case errors.As(err, &offHour):
		return failure(codes.DataLoss, offHour.Text, detail{Kind: kindOffHour, Row: offHour.Row})
	case errors.As(err, &data):
		return failure(codes.DataLoss, data.Text, detail{Kind: kindData, Row: data.Row})
	case errors.As(err, &limit):
		return failure(codes.ResourceExhausted, err.Error(),
			detail{Kind: kindLimit, What: limit.What, Limit: limit.Limit, Need: limit.Need})
	case errors.Is(err, operator.ErrBadPlan):
		return failure(codes.InvalidArgument, err.Error(), detail{Kind: kindPlan})
	case errors.Is(err, ErrMisfit):
		return failure(codes.FailedPrecondition, err.Error(), detail{Kind: kindMisfit})
	case errors.Is(err, ErrEnding):
		return failure(codes.Unavailable, err.Error(), detail{Kind: kindEnding})
	case errors.Is(err, ErrBusy):
		return failure(codes.ResourceExhausted, err.Error(), detail{Kind: kindBusy})
	case errors.Is(err, resultcache.ErrUnproven):
		return failure(codes.Aborted, err.Error(), detail{Kind: kindUnproven})
	case errors.Is(err, store.ErrNoTable):
		return failure(codes.FailedPrecondition, err.Error(), detail{Kind: kindNoTable})
	// Before ErrUnavailable: where the end of a call is the cause, the store's error is only
	// what it led to.
	case errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, err.Error()), nil
	case errors.Is(err, context.DeadlineExceeded):
		return status.New(codes.DeadlineExceeded, err.Error()), nil
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		return failure(codes.Unavailable, err.Error(), detail{Kind: kindUnavailable})
	}
	return status.New(codes.Internal, err.Error()), nil
}

// failure returns a status with a trailer.
func failure(code codes.Code, text string, d detail) (*status.Status, metadata.MD) {
	b, _ := json.Marshal(d) // ASCII only
	return status.New(code, text), metadata.Pairs(TrailerError, string(b))
}

// Error returns the error that Status was given, from what a call ended with. An
// error without a kind is an ErrServer: a lost connection, a refused token, a
// message over the limit.
func Error(err error, trailer metadata.MD) error {
	s := status.Convert(err)
	var d detail
	if v := trailer.Get(TrailerError); len(v) == 1 {
		_ = json.Unmarshal([]byte(v[0]), &d) // no kind: ErrServer
	}
	switch d.Kind {
	case kindData:
		return &operator.DataError{Row: d.Row, Text: s.Message(), Err: errors.New(s.Message())}
	case kindPanic:
		return &operator.PanicError{Value: s.Message()}
	case kindOffHour:
		return &operator.OffHourError{Row: d.Row, Text: s.Message()}
	case kindLimit:
		return &operator.LimitError{What: d.What, Limit: d.Limit, Need: d.Need}
	case kindPlan:
		return remote(operator.ErrBadPlan, s)
	case kindMisfit:
		return remote(ErrMisfit, s)
	case kindEnding:
		return remote(ErrEnding, s)
	case kindBusy:
		return remote(ErrBusy, s)
	case kindUnproven:
		return remote(resultcache.ErrUnproven, s)
	case kindNoTable:
		return remote(store.ErrNoTable, s)
	case kindUnavailable:
		return remote(store.ErrUnavailable, s)
	}

	// The end of a context has no kind, because gRPC has a code for it.
	switch s.Code() {
	case codes.Canceled:
		return remote(context.Canceled, s)
	case codes.DeadlineExceeded:
		return remote(context.DeadlineExceeded, s)
	}
	return fmt.Errorf("%w: %s: %s", ErrServer, s.Code(), s.Message())
}

// remote returns an error with the server's text that is a sentinel for errors.Is.
func remote(sentinel error, s *status.Status) error { return &remoteError{sentinel, s.Message()} }

type remoteError struct {
	sentinel error
	text     string
}

// Error returns the text that the server has sent, which has the sentinel's already.
func (e *remoteError) Error() string { return e.text }

// Unwrap returns the sentinel.
func (e *remoteError) Unwrap() error { return e.sentinel }
