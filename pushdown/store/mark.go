package store

import (
	"context"
	"errors"
)

// Marker is a store that can prove that rows have not changed, also to another process and
// after a restart. The tokens of a Versioner are quicker, and end with their process.
type Marker interface {
	// Mark returns a mark of a range: it names the state that the rows of r, with their
	// cells of one family, have when the call returns. An error is the reason why
	// nothing can be proven of the rows; they can still be read.
	Mark(ctx context.Context, table, family string, r KeyRange) (Mark, error)
	// Unchanged returns nil if every scan of r that was opened after Mark had returned and
	// before this call was made has seen the same cells, and so would a scan that is opened
	// at some moment while this call runs. r is inside the range of the mark. The error is
	// ErrRowsChanged if a row of r has changed, so that a part of r may be unchanged; any
	// other is the reason why nothing can be proven.
	Unchanged(ctx context.Context, table, family string, r KeyRange, mark string) error
}

// Mark is a mark of rows. It may be kept anywhere.
type Mark struct {
	Text string // understood by the store alone
	// Resting is set if the mark holds only as long as nothing near the rows is written. A later
	// mark may not need that.
	Resting bool
}

// ErrRowsChanged is returned for rows that were written to after they were marked.
var ErrRowsChanged = errors.New("rows have changed")
