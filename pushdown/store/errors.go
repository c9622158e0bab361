package store

import (
	"errors"
	"fmt"
)

// The errors of both stores.
var (
	// ErrUnavailable is returned when time or another attempt may help: a server cannot
	// be reached, a region is moving. The text around it has the cause.
	ErrUnavailable = errors.New("store unavailable")
	// ErrNoTable is returned when a table does not exist; it must be created.
	ErrNoTable = errors.New("no such table")
	// ErrTableExists is returned when CreateTable is called for a table that exists.
	ErrTableExists = errors.New("table exists")
	// ErrDenied is returned when the store's access control lacks a right of ours. It
	// must be granted; another attempt ends the same way.
	ErrDenied = errors.New("access denied")
	// ErrRefused is returned when a server of the store answered a call with an exception,
	// such as one of a quota or a limit. The request is not at fault.
	ErrRefused = errors.New("refused by the store")
	// ErrClosed is returned when a method is called after Close.
	ErrClosed = errors.New("store is closed")
)

// The errors of the embedded store.
var (
	// ErrLocked is returned when a store is opened whose directory another process,
	// or another store of this one, has open.
	ErrLocked = errors.New("data directory is in use by another process")
	// ErrFull is returned when the disk has no space for a write. Reads continue, and writes resume
	// once there is space.
	ErrFull = errors.New("no room on the disk")
	// ErrStalled is returned when a write would have to wait because flushes or compactions fail
	// for another reason than a full disk. Reads continue.
	ErrStalled = errors.New("the store takes no writes")
	// ErrDamaged is returned when rows cannot be read because the file that holds
	// them is damaged, while other rows can, and when a store that has lost data is
	// opened; see DamageError.
	ErrDamaged = errors.New("a file of the store is damaged")
)

// ApplyError is returned when some mutations of an Apply failed while others may have
// been applied.
type ApplyError struct {
	Failed []int   // indexes into the mutations given to Apply
	Errs   []error // one for each failed mutation
}

// Error is the number of failed mutations, and the first one's error.
func (e *ApplyError) Error() string {
	if len(e.Errs) == 0 {
		return fmt.Sprintf("%d mutations failed", len(e.Failed))
	}
	return fmt.Sprintf("%d mutations failed, the first: %v", len(e.Failed), e.Errs[0])
}

// Unwrap returns the reasons, so that errors.Is finds them.
func (e *ApplyError) Unwrap() []error { return e.Errs }
