package stage

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"downpour/pushdown/process/memory"
)

// stageFunc answers nothing, with its error.
type stageFunc func() error

func (f stageFunc) Groups(context.Context, *Request) (Answer, error) { return Answer{}, f() }

// What was refused memory that others held is tried again, once nobody else has the turn; other
// errors are not, nor is a live query. A query that is refused again and again ends in time.
func TestInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := memory.New(memory.Least)
		busy := fmt.Errorf("part: %w", &memory.BusyError{Need: 1 << 20, Total: pool.Total()})
		f := func(class memory.Class, timeout time.Duration, tries int, errs ...error) {
			t.Helper()
			account := pool.Open(class)
			defer account.Close()
			ctx, cancel := context.WithTimeout(memory.With(t.Context(), account), timeout)
			defer cancel()
			n := 0
			stage := &inTurn{next: stageFunc(func() error {
				time.Sleep(time.Second) // simulated by synctest: a try takes a second
				n++
				return errs[min(n, len(errs))-1]
			})}
			_, err := stage.Groups(ctx, &Request{})
			if n != tries || !errors.Is(err, errs[len(errs)-1]) {
				t.Errorf("%s, %s: %d tries, %v; want %d, %v", class, timeout, n, err, tries, errs[len(errs)-1])
			}
		}
		other := errors.New("no such name")
		f(memory.Query, 30*time.Second, 1, nil)
		f(memory.Query, 30*time.Second, 1, other)
		f(memory.Query, 30*time.Second, 3, busy, busy, nil)
		f(memory.Query, 30*time.Second, 2, busy, other)
		f(memory.Live, 30*time.Second, 1, busy)
		f(memory.Query, 30*time.Second, 20, busy)       // until 10 s before its end
		f(memory.Query, 5500*time.Millisecond, 6, busy) // until its end

		// While another request has the turn nothing is tried.
		end, err := pool.Open(memory.Query).Turn(t.Context(), &memory.BusyError{}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		began, tries := time.Now(), 0
		account := pool.Open(memory.Query)
		defer account.Close()
		stage := &inTurn{next: stageFunc(func() error { tries++; return busy })}
		_, err = stage.Groups(memory.With(t.Context(), account), &Request{})
		if tries != 1 || !memory.Refused(err) || time.Since(began) != memory.Patience {
			t.Errorf("%d tries, %v after %s; want 1 and a refusal after %s", tries, err, time.Since(began),
				memory.Patience)
		}
		end()
	})
}
