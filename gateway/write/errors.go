package write

import (
	"context"
	"errors"
	"fmt"

	"downpour/gateway/uid"
	"downpour/pushdown/store"
)

// Errors of validation, in OpenTSDB's words.
var (
	// ErrNoMetric is returned when a point has no metric.
	ErrNoMetric = errors.New("Metric name was empty")
	// ErrTimestamp is returned when a point's time is not positive, or more than a row
	// can hold, see CheckTime.
	ErrTimestamp = errors.New("Invalid timestamp")
	// ErrNoValue is returned when a point's value is an empty text.
	ErrNoValue = errors.New("Empty value")
	// ErrNoTags is returned when a point has no tag.
	ErrNoTags = errors.New("Missing tags")
	// ErrValue is returned when a point's value is not a finite number.
	ErrValue = errors.New("Unable to parse value to a number")
)

// ErrClosing is returned when a point comes after Close.
var ErrClosing = errors.New("the writer is closing")

// errAbandoned is returned when Abandon ended the wait for a store that does not
// answer.
var errAbandoned = fmt.Errorf("%w, and the store has not answered: the points may be stored, or not", ErrClosing)

// errOldNames is returned when a name may have changed since a series was
// resolved; the series is then resolved again.
var errOldNames = errors.New("cannot add a point to the batch: its series was resolved in an older generation of names")

// storageError marks a fault of the UID table.
type storageError struct{ err error }

// Error is the fault's text.
func (e *storageError) Error() string { return e.err.Error() }

// Unwrap is the fault.
func (e *storageError) Unwrap() error { return e.err }

// Reason returns the kind of an error by which a point is refused, one of few texts: points
// refused by the same reason are counted together.
func Reason(err error) string {
	var (
		unknown  *uid.NoSuchNameError
		full     *uid.FullError
		long     *uid.NameTooLongError
		conflict *uid.ConflictError
	)
	switch {
	case errors.Is(err, ErrNoMetric):
		return "no metric"
	case errors.Is(err, ErrTimestamp):
		return "time"
	case errors.Is(err, ErrNoValue), errors.Is(err, ErrValue):
		return "value"
	case errors.Is(err, ErrNoTags):
		return "no tags"
	case errors.As(err, &unknown):
		return "unknown name"
	case errors.As(err, &long):
		return "long name"
	case errors.As(err, &full):
		return "no UID is left"
	case errors.As(err, &conflict):
		return "UID conflict"
	case errors.Is(err, ErrClosing):
		return "the gateway is stopping"
	case errors.Is(err, context.Canceled):
		return "given up" // the client has left, or the gateway is stopping
	case IsStorage(err):
		return "storage"
	}
	return "illegal argument"
}

// IsStorage reports whether err is the fault of the store, or the end of the
// writer, and not of the point: the point may be sent again.
func IsStorage(err error) bool {
	var partial *store.ApplyError
	var names *storageError
	return errors.As(err, &names) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNoTable) ||
		errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrRefused) ||
		errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrStalled) || errors.Is(err, store.ErrDamaged) ||
		errors.Is(err, store.ErrClosed) || errors.Is(err, ErrClosing) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &partial)
}
