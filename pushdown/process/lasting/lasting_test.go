package lasting

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Work that panics begins again after a pause, and the process continues; the log has the panic.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		began, times := time.Now(), 0
		Run(t.Context(), slog.New(slog.NewTextHandler(&text, nil)), "counting", func() {
			if times++; times < 3 {
				panic("miscounted")
			}
		})
		if got := time.Since(began); times != 3 || got != 2*Pause {
			t.Errorf("worked %d times in %s, want 3 times in %s", times, got, 2*Pause)
		}
		if got := text.String(); strings.Count(got, "work=counting panic=miscounted") != 2 ||
			!strings.Contains(got, "lasting_test.go") {
			t.Errorf("logged %s, want two panics and where they were", got)
		}

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		Run(ctx, slog.New(slog.DiscardHandler), "ended", func() { panic("again") })
	})
}
