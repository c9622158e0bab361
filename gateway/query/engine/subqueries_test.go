package engine

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"downpour/pushdown/operator/aggregate"
)

// If several sub-queries fail, the error is that of the first one in order, even if it fails last:
// a failure ends the sub-queries after it, not those before it.
func TestForEach_firstInOrder(t *testing.T) {
	e := &Engine{cfg: Config{Log: slog.New(slog.DiscardHandler)}}
	first, second := errors.New("of the first"), errors.New("of the second")
	secondFails, secondFailed := make(chan struct{}), make(chan struct{})
	called := make([]bool, 5)
	err := e.forEach(t.Context(), 5, func(ctx context.Context, i int) error {
		called[i] = true
		switch i {
		case 0:
			close(secondFails)
			<-secondFailed
			if ctx.Err() != nil {
				t.Error("the first was ended by the failure of the second")
			}
			return first
		case 1:
			<-secondFails
			defer close(secondFailed)
			return second
		}
		return nil
	})
	if !errors.Is(err, first) {
		t.Errorf("got %v, want %v", err, first)
	}
	if called[4] {
		t.Error("the last was begun after the first two had failed")
	}

	infinity := &aggregate.InfinityError{}
	err = e.forEach(t.Context(), 3, func(ctx context.Context, i int) error {
		return []error{infinity, nil, second}[i]
	})
	if !errors.Is(err, second) {
		t.Errorf("an infinite value before another error: got %v, want %v", err, second)
	}
	if err := e.forEach(t.Context(), 2,
		func(context.Context, int) error { return infinity }); !errors.Is(err, infinity) {
		t.Errorf("infinite values alone: got %v, want %v", err, infinity)
	}

	if err := e.forEach(t.Context(), 2, func(_ context.Context, i int) error {
		if i == 1 {
			panic("a fault")
		}
		return nil
	}); err == nil {
		t.Error("a panic of a sub-query: got no error")
	}
}
