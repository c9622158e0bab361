package regions

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// Who waits for an operation hears of each fault at once, and the error at its end has the last one.
func TestRetrier_told(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	c.StopZooKeeper()
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	errEnough := errors.New("enough is told")
	ctx = store.OnRetry(ctx, func(fault error) {
		if !errors.Is(fault, errZooKeeper) || !strings.HasPrefix(fault.Error(), `table "t": `) {
			t.Errorf("told of %v", fault)
		}
		cancel(errEnough)
	})
	err := c.r.get(ctx)
	if !errors.Is(err, errEnough) {
		t.Errorf("got %v, want %v", err, errEnough)
	}
	if !errors.Is(err, errZooKeeper) {
		t.Errorf("got %v, want %v", err, errZooKeeper)
	}
}

// The error of an operation has the refusal that made a region busy, and not that nothing was sent to it since. Without
// an earlier one it has that. Delays are drawn, as many clients meet the same fault at once.
func TestRetrier_busy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := start(t, hbasefake.Options{Network: new(networktest.Memory)}, func(cfg *Config) {
			cfg.Calls.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		refusal := errors.New("refused")
		for _, faults := range [][]error{{ErrRegionBusy}, {refusal, ErrRegionBusy}, {refusal, ErrMeta}} {
			var last error
			r := c.r.NewRetrier(store.OnRetry(c.ctx, func(fault error) { last = fault }), "t")
			for _, fault := range faults {
				if err := r.AfterFailure(fault); err != nil {
					t.Fatal(err)
				}
			}
			want := faults[len(faults)-1]
			if want == ErrRegionBusy {
				want = faults[0]
			}
			if !errors.Is(last, want) {
				t.Errorf("after %v: the last fault is %v", faults, last)
			}
			if !strings.Contains(log.String(), "trying again") {
				t.Errorf("logged %s, want that it is tried again", &log)
			}
		}

		retries := 0
		ctx, cancel := context.WithCancelCause(store.OnRetry(c.ctx, func(error) { retries++ }))
		r := c.r.NewRetrier(ctx, "t")
		if err := r.AfterFailure(refusal); err != nil {
			t.Fatal(err)
		}
		cancel(context.DeadlineExceeded)
		if err := r.AfterFailure(ErrRegionBusy); !errors.Is(err, refusal) || retries != 1 {
			t.Errorf("at the end: got %v after %d retries, want %v as its reason, after one", err, retries, refusal)
		}

		began := time.Now()
		r = c.r.NewRetrier(c.ctx, "t")
		for range 20 {
			if err := r.AfterFailure(ErrRegionBusy); err != nil {
				t.Fatal(err)
			}
		}
		// 10 ms to 640 ms, and 12 times a second.
		if took := time.Since(began); took < 6*time.Second || took > 13*time.Second {
			t.Errorf("20 attempts in %v, want between a half and all of the delays of 13.27 s", took)
		}
	})
}
