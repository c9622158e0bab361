package lasting

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Each round sets the pause before the next. An error is reported and ends nothing, but failures
// because the work has ended are not reported.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		began := time.Now()
		var at []time.Duration
		var failed []error
		away := errors.New("the store is away")
		Rounds(ctx, func(ctx context.Context) (time.Duration, error) {
			at = append(at, time.Since(began))
			switch len(at) {
			case 1:
				return time.Minute, away
			case 2:
				return time.Hour, nil
			}
			end()
			return time.Hour, ctx.Err()
		}, func(err error) { failed = append(failed, err) })

		if want := []time.Duration{0, time.Minute, time.Minute + time.Hour}; !slices.Equal(at, want) {
			t.Errorf("rounds at %v, want %v", at, want)
		}
		if !slices.Equal(failed, []error{away}) || time.Since(began) != at[2] {
			t.Errorf("reported %v, ended after %s; want %v, at once", failed, time.Since(began), away)
		}
	})
}
