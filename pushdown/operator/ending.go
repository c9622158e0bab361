package operator

import (
	"context"

	"downpour/encoding/batch"
)

// ending is how an operator has ended, if it has.
type ending struct {
	err    error // of the last Next, also io.EOF
	closed bool
}

// nextUnlessEnded calls next. After an error it calls release, and from then on returns that
// error; after Close it returns ErrClosed.
func (e *ending) nextUnlessEnded(ctx context.Context, next func(context.Context) (batch.Record, error),
	release func()) (batch.Record, error) {
	if e.err == nil && e.closed {
		e.err = ErrClosed
	}
	if e.err != nil {
		return nil, e.err
	}

	r, err := next(ctx)
	if err != nil {
		e.err = err
		release()
		return nil, err
	}
	return r, nil
}
