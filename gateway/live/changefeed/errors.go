package changefeed

import "errors"

// Errors of a tick. After each the sub-query's view is loaded again, with a new finder of changed
// rows; the answer stays right.
var (
	// errTooLarge is returned when a view and its finder hold more than
	// Config.ViewBytes. The sub-query is run in full from then on.
	errTooLarge = errors.New("changefeed: the view takes more memory than it may")

	// errLost is returned when a watched store has not kept all changes.
	errLost = errors.New("changefeed: more rows have changed than the store keeps")

	// errOffHour is returned when an off-hour row has changed, whose points belong to two hours. The
	// sub-query is run in full from then on.
	errOffHour = errors.New("changefeed: a row of no full hour has changed")

	// errTooManyRereads is returned when too many rows must be read whenever they
	// change; see subQuery.alwaysRead.
	errTooManyRereads = errors.New("changefeed: too many rows with changes that are no points")
)
