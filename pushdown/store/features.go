package store

import (
	"context"
	"time"
)

// Features are what a store can do beyond the calls that every store has. A field is nil if the store
// cannot do it.
//
// A store that wraps another one decides on each field: it passes the inner store's on, which then
// bypasses the wrapper, it wraps it, or it leaves it nil. None of that may happen by oversight. So
// a rule of the house requires Features of every type that embeds a store and has calls of its own,
// and in the product the names of all fields in the literal that it returns; an empty literal
// refuses all.
type Features struct {
	Versioner    Versioner    // both stores; tokens end with the process
	Marker       Marker       // both stores
	Staged       Staged       // embedded
	RangeDeleter RangeDeleter // embedded
	Versioned    Versioned    // HBase

	// PutAbsent writes the value of each cell that does not exist, and reports for each
	// whether it has. The cells differ. After an error any of them may have been
	// written. Both stores have it; see the function PutAbsent.
	PutAbsent func(ctx context.Context, table string, cells []CellKey, values [][]byte) ([]bool, error)
	// IncrementAll is Increment of many counters, which differ, and returns their new values.
	// After an error nothing has changed. The embedded store has it.
	IncrementAll func(ctx context.Context, table string, cells []CellKey, deltas []int64) ([]int64, error)

	// Watch begins to collect what is written to rows in any of ranges, which may
	// be in any order and overlap. A write is collected once it can be read, and not
	// before. A write that could be read when Watch was called is not collected; one
	// that could be read when Watch returned need not be. changed, if not nil, is
	// called by a writer when there may be something to take: it must not block.
	// The embedded store has it, because all writes to its tables pass through it.
	Watch func(table string, ranges []KeyRange, changed func()) (Watch, error)

	// Writable returns why a write would be refused now, nil if it would not. The embedded
	// store has it.
	Writable func() error
	// DiskUsage returns the bytes that the store takes on its disk, and those that are free.
	// The embedded store has it.
	DiskUsage func() (used, free int64, err error)
	// Checkpoint makes a directory in the store's own, in which a copy of the store can
	// be read, while it is written to: everything that was visible when Checkpoint was
	// called, and nothing partial. It returns the directory's name, which cannot be
	// guessed, and the function that removes it. If the process is killed before, the
	// next opening of the store removes it. Until then files that the store no longer
	// needs take space. The embedded store has it.
	//
	// Errors: ErrClosed, ErrFull, ErrDamaged if a log cannot be read.
	Checkpoint func(ctx context.Context) (name string, remove func() error, err error)

	// Seal writes the append columns of a table's rows once more, in their sealed form (see encoding.Sealer), where
	// the hour of the row ended in [since, before); no answer changes by that. It goes over these rows once, and
	// calls pace after each few rows, which may wait, or end it by an error. After an error it may be called
	// again. Older releases refuse the store once one row is sealed. The embedded store has it.
	//
	// Errors: ErrClosed, ErrFull, ErrStalled, ErrDamaged if rows cannot be read.
	Seal func(ctx context.Context, table string, since, before time.Time,
		pace func(SealReport) error) (SealReport, error)

	// Inspect reads the servers' version, and tests, with a family of a table, abilities that show
	// without a change. It changes nothing. HBase has it.
	Inspect func(ctx context.Context, table, family string) (Inspection, error)
	// CheckReadable returns an ErrDenied unless we may read everything of families, now. Another
	// error means that this is unknown; it is an errors.ErrUnsupported if the servers do not know
	// the request. HBase has it: its servers may silently leave out cells that a user may not read,
	// where others refuse.
	CheckReadable func(ctx context.Context, of []Families) error
}

// SealReport says what Seal has done so far.
type SealReport struct {
	Rows          int64 // that were looked at
	Sealed        int64 // that were written in their sealed form
	Before, After int64 // bytes of their columns
}
