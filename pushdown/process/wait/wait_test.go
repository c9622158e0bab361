package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// It waits for the given time, not at all if that is not positive, and not beyond its context.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		check := func(name string, ctx context.Context, d, took time.Duration, want error) {
			t.Helper()
			began := time.Now()
			if err := For(ctx, d); !errors.Is(err, want) || time.Since(began) != took {
				t.Errorf("%s: %v after %s, want %v after %s", name, err, time.Since(began), want, took)
			}
		}
		check("a time", t.Context(), time.Minute, time.Minute, nil)
		check("no time", t.Context(), 0, 0, nil)
		check("less than none", t.Context(), -time.Second, 0, nil)
		check("an ended context", ended, time.Minute, 0, context.Canceled)
		check("an ended context and no time", ended, 0, 0, nil)

		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check("a context that ends first", soon, time.Minute, time.Second, context.DeadlineExceeded)
	})
}
