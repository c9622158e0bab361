package exp

import "downpour/gateway/query"

// DataError is returned if the tables of groups cannot be computed: no series of an
// intersection belong together, or an expression has no result for a value. The same
// request may be answered when there are other points. It unwraps to the *query.Error that
// the API answers.
type DataError struct{ Message string }

// Error returns OpenTSDB's text where it has the same error.
func (e *DataError) Error() string { return e.Message }

// Unwrap returns the 400.
func (e *DataError) Unwrap() error { return query.RunFault("%s", e.Message) }
