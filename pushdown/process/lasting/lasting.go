// Package lasting keeps what works in the background of a process from ending it.
package lasting

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"downpour/pushdown/process/wait"
)

// Pause is how long work pauses after a panic: its cause may last.
const Pause = time.Minute

// Run does some work until it returns. After a panic, which it logs, it does the work again, unless
// ctx has ended.
func Run(ctx context.Context, log *slog.Logger, name string, work func()) {
	for panics(log, name, work) && wait.For(ctx, Pause) == nil {
	}
}

// panics reports whether the work has panicked.
func panics(log *slog.Logger, name string, work func()) (yes bool) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("work in the background panicked, which is a fault of the program; it begins again in a minute",
				"work", name, "panic", v, "stack", string(debug.Stack()))
			yes = true
		}
	}()
	work()
	return false
}
