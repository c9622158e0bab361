package batch

import "errors"

// ErrCut is returned by ReadResults and ResultReader when a stream ends without its end mark: rows
// may be missing.
var ErrCut = errors.New("batch: results: the stream is cut")
