package incremental

import (
	"errors"
	"fmt"
)

// ErrStale is returned when rows have lost points: a view cannot know what remains of them. A new
// one must be loaded.
var ErrStale = errors.New("incremental: rows lost points, the view must be loaded again")

// ErrOlderChanged is returned when rows change the merged older hours with which a view began. A new
// view must be loaded, of all rows.
var ErrOlderChanged = errors.New("incremental: rows change older hours, the view must be loaded again")

// LimitError is returned when a view would take more memory than Bounds.Bytes.
type LimitError struct{ Limit int64 }

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("incremental: the view takes more than %d bytes", e.Limit)
}
