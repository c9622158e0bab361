package dispatch

import (
	"context"
	"errors"
	"fmt"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/wire"
	"downpour/pushdown/store"
)

// Errors of Executor.Run, in addition to those of the operators (operator.ErrBadPlan,
// *operator.DataError, *operator.LimitError, store.ErrNoTable, store.ErrDenied, store.ErrDamaged)
// and those of the sink.
var (
	// ErrDeadline is returned when the context's deadline came while the work was
	// still in progress and no part had failed. The API answers HTTP 408.
	ErrDeadline = errors.New("the query took longer than allowed")
	// ErrUnreachable is returned when no part could be read because the store
	// could not be reached. The API answers HTTP 424.
	ErrUnreachable = errors.New("the store cannot be reached")
)

// IncompleteError is returned when the deadline came and some key ranges were missing
// because their parts had failed. All other ranges have been passed to the sink. The
// API answers HTTP 503.
type IncompleteError struct {
	Ranges []scanplan.KeyRange // the missing ranges, ascending; at least one
	Err    error               // the last failure
}

// Error names the number of missing ranges, the first of them and the last failure.
func (e *IncompleteError) Error() string {
	r := e.Ranges[0]
	return fmt.Sprintf("%d key ranges are missing, the first [%s, %s): %v", len(e.Ranges), r.Start, r.Stop, e.Err)
}

// Unwrap returns the last failure.
func (e *IncompleteError) Unwrap() error { return e.Err }

// isFinal reports whether an attempt's error ends the run, because every other
// attempt would end the same way.
func isFinal(err error, inProcess bool) bool {
	var data *operator.DataError
	var limit *operator.LimitError
	var offHour *operator.OffHourError
	var fault *operator.PanicError
	switch {
	case errors.As(err, &data), errors.As(err, &limit), errors.As(err, &offHour):
		return true
	case memory.Refused(err): // this process's memory, even if the part was executed elsewhere
		return true
	case errors.As(err, &fault):
		return inProcess // where another attempt would be, too, or this was that attempt
	case errors.Is(err, operator.ErrBadPlan), errors.Is(err, store.ErrNoTable), errors.Is(err, store.ErrDenied),
		errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrDamaged):
		// A plan that a server refuses may only be too new for it, and another place may reach what
		// this server could not. Only the refusal of this process is final.
		return inProcess
	}

	return false
}

// withoutPlace returns the error of an attempt as clients see it. Errors of a server or its
// connection name addresses, which are only for the log and the trace.
func withoutPlace(err error) error {
	for _, kind := range []error{wire.ErrServer, wire.ErrMisfit, wire.ErrIncomplete, wire.ErrStalled, wire.ErrEnding,
		wire.ErrBusy} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}

// deadlineError returns the error of a run whose context ended before all ranges
// were accepted. accepted is the number of accepted parts, failure the last failure
// of a missing part, nil if none failed.
func deadlineError(ctx context.Context, missing []scanplan.KeyRange, accepted int, failure error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case failure == nil:
		return fmt.Errorf("%w: %w", ErrDeadline, context.Cause(ctx))
	// With an accepted part the store was reachable, and the answer is only incomplete.
	case accepted == 0 && errors.Is(failure, store.ErrUnavailable):
		return fmt.Errorf("%w: %w", ErrUnreachable, failure)
	}
	return &IncompleteError{Ranges: missing, Err: failure} //fault:missing-ranges-not-told TestRun_missing
}
