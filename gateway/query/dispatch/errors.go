package dispatch

import (
	"context"
	"errors"
	"fmt"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Errors of Run that are not the operators' own (operator.ErrBadPlan,
// *operator.DataError, *operator.LimitError, store.ErrNoTable, store.ErrDamaged) or the sink's.
var (
	// ErrDeadline says that the work was going on when the context's deadline
	// came: HTTP 408.
	ErrDeadline = errors.New("the query took longer than allowed")
	// ErrUnreachable says that nothing could be read, because the store could
	// not be reached: HTTP 424.
	ErrUnreachable = errors.New("the store cannot be reached")
)

// IncompleteError says which key ranges could not be read before the deadline,
// while others could: HTTP 503. Everything else has been given to the sink.
type IncompleteError struct {
	Ranges []scanplan.KeyRange
	Err    error // the last failure
}

// Error tells the first missing range and the last failure.
func (e *IncompleteError) Error() string {
	r := e.Ranges[0]
	return fmt.Sprintf("%d key ranges are missing, the first [%s, %s): %v", len(e.Ranges), r.Start, r.Stop, e.Err)
}

// Unwrap is the last failure.
func (e *IncompleteError) Unwrap() error { return e.Err }

// final tells whether an attempt's error ends the run: another attempt would
// end the same way. A plan that a server refuses may be too new for it; only
// this process's own refusal is final.
func final(err error, inProcess bool) bool {
	var data *operator.DataError
	var limit *operator.LimitError
	switch {
	case errors.As(err, &data), errors.As(err, &limit):
		return true
	case memory.Refused(err): // this process's memory, wherever the part was executed
		return true
	case errors.Is(err, operator.ErrBadPlan), errors.Is(err, store.ErrNoTable), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrDamaged):
		return inProcess
	}
	return false
}

// ended is the error of a run whose context ended before all was accepted.
// failure is the last failure of a part that is missing, nil if none failed.
func ended(ctx context.Context, missing []scanplan.KeyRange, accepted int, failure error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case failure == nil:
		return fmt.Errorf("%w: %w", ErrDeadline, context.Cause(ctx))
	case accepted == 0 && errors.Is(failure, store.ErrUnavailable):
		return fmt.Errorf("%w: %w", ErrUnreachable, failure)
	}
	return &IncompleteError{Ranges: missing, Err: failure}
}
