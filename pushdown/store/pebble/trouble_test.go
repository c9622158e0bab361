package pebble

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// Why background work has failed is kept until it succeeds, or turns out not to be needed.
func TestSetOutcome(t *testing.T) {
	var failure atomic.Pointer[error]
	first, second := errors.New("first"), errors.New("second")
	for i, step := range []struct{ outcome, want error }{
		{first, first},
		{second, second},
		{pebble.ErrCancelledCompaction, second},
		{nil, nil},
		{pebble.ErrCancelledCompaction, nil},
		{first, first},
		{errors.New("pebble: empty table"), nil},
	} {
		setOutcome(&failure, step.outcome)
		if got := failure.Load(); (got == nil) != (step.want == nil) || got != nil && *got != step.want {
			t.Errorf("step %d, after %v: got %v, want %v", i, step.outcome, got, step.want)
		}
	}
}
