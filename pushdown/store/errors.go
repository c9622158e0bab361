package store

import (
	"errors"
	"fmt"
)

// Errors are named by what the caller must do next.
var (
	// ErrUnavailable marks a fault that time or another attempt may heal: a
	// server that cannot be reached, a region that is moving. The wrapped
	// text says which.
	ErrUnavailable = errors.New("store unavailable")
	// ErrNoTable is returned for a table that does not exist; create it.
	ErrNoTable = errors.New("no such table")
	// ErrTableExists is returned by CreateTable.
	ErrTableExists = errors.New("table exists")
	// ErrLocked is returned when another process holds the embedded store's
	// directory.
	ErrLocked = errors.New("data directory is in use by another process")
	// ErrFull is returned for writes while the disk of the embedded store has no
	// room for them. Reads go on, and writes do once there is room.
	ErrFull = errors.New("no room on the disk")
	// ErrStalled is returned for writes while the embedded store cannot write or
	// compact its tables for another reason. Reads go on.
	ErrStalled = errors.New("the store takes no writes")
	// ErrDamaged is returned for rows that cannot be read because the file that
	// holds them is damaged; other rows can.
	ErrDamaged = errors.New("a file of the store is damaged")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("store is closed")
)

// ApplyError reports mutations of one Apply that failed while others may
// have been applied.
type ApplyError struct {
	Failed []int   // indexes into the mutations given to Apply
	Errs   []error // one for each failed mutation
}

// Error tells how many mutations failed and the first reason.
func (e *ApplyError) Error() string {
	if len(e.Errs) == 0 {
		return fmt.Sprintf("%d mutations failed", len(e.Failed))
	}
	return fmt.Sprintf("%d mutations failed, the first: %v", len(e.Failed), e.Errs[0])
}

// Unwrap gives the reasons, so that errors.Is sees them.
func (e *ApplyError) Unwrap() []error { return e.Errs }
