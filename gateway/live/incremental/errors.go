package incremental

import (
	"errors"
	"fmt"
)

// ErrStale is returned when rows have lost points. A table cannot tell what
// remains of them: a new one must be loaded.
var ErrStale = errors.New("incremental: rows lost points, the table must be loaded again")

// LimitError is returned when a table would take more memory than Bounds.Bytes.
type LimitError struct{ Limit int64 }

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("incremental: the table takes more than %d bytes", e.Limit)
}
