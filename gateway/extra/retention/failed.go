package retention

import (
	"context"
	"errors"
	"fmt"

	"downpour/pushdown/store"
)

// errNoneThatGoes says that a row does not go which was found where only such rows are.
var errNoneThatGoes = errors.New("a row is none that goes")

// fails notes an error of one table, which then has no part in the run. It returns one that ends the
// run for all tables: its time or turn is over, we lack a right, or this program is wrong.
func (p *past) fails(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil || errors.Is(err, store.ErrDenied) || errors.Is(err, errNoneThatGoes) {
		return err
	}
	p.err = err
	p.forget()
	return nil
}

// forget drops what was counted: it may be a part.
func (p *past) forget() {
	p.rows, p.bytes, p.impossible, p.impossibleRows = 0, 0, nil, 0
	for i := range p.metrics {
		p.metrics[i].rows, p.metrics[i].bytes = 0, 0
	}
}

// A tablesError says that the rows of some tables that are past are not all deleted. Those of the others are.
type tablesError struct {
	others int // number of these
	err    error
}

func (e *tablesError) Error() string {
	return fmt.Sprintf("%v (what is deleted is gone; run it again to go on)", e.err)
}

func (e *tablesError) Unwrap() error { return e.err }

// tablesFailed returns a *tablesError with what every table has failed with, nil if none has.
func tablesFailed(all []*past) error {
	var errs []error
	for _, p := range all {
		if p.err != nil {
			errs = append(errs, p.err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return &tablesError{others: len(all) - len(errs), err: errors.Join(errs...)}
}
