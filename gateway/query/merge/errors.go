package merge

import (
	"errors"
	"fmt"
)

// ErrOrder is returned when partial aggregates do not give the answer: something would
// have to be added to them in span order, or a point that is needed was not shipped.
// The same plan with per-series aggregation gives it.
var ErrOrder = errors.New("merge: partial aggregates do not add up to the same bits")

// MemoryError is returned when merging needs more memory than the plan's MaxBytes
// allows.
type MemoryError struct {
	Need, Limit int64 // bytes
}

// Error says how much is needed, at least, and how much is allowed.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("merge: the result takes %d bytes or more, want at most %d", e.Need, e.Limit)
}
