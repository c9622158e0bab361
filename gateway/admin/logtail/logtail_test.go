package logtail

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// withoutTime cuts the time in seconds from the beginning of each line.
func withoutTime(t *testing.T, lines []string) (out []string) {
	t.Helper()
	for _, line := range lines {
		seconds, rest, ok := strings.Cut(line, "\t")
		if !ok || len(seconds) < 10 {
			t.Fatalf("no time in %q", line)
		}
		out = append(out, rest)
	}
	return out
}

func TestTail(t *testing.T) {
	var next strings.Builder
	tail := New(slog.NewTextHandler(&next, nil))
	log := slog.New(tail)
	log.Info("started", "port", 4242)
	log.With("part", "a\tb\x1bc\u009bd").WithGroup("g").Warn("two\nlines", "took", time.Second)
	log.Debug("not enabled")

	want := []string{
		"WARN\tmain\tdownpour\ttwo lines part=a b c d g.took=1s", "INFO\tmain\tdownpour\tstarted port=4242",
	}
	if diff := cmp.Diff(want, withoutTime(t, tail.Lines())); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
	if n := strings.Count(next.String(), "\n"); n != 2 {
		t.Errorf("%d lines were passed on, want 2", n)
	}
}

// Only the last MaxLines lines are kept, newest first, and a long line is cut.
func TestTail_isBounded(t *testing.T) {
	tail := New(slog.DiscardHandler)
	handle := func(message string) { slog.New(tail).Info(message) }
	for i := range MaxLines + 5 {
		handle(fmt.Sprint("line ", i))
	}
	lines := tail.Lines()
	if len(lines) != MaxLines || !strings.HasSuffix(lines[0], fmt.Sprint("line ", MaxLines+4)) ||
		!strings.HasSuffix(lines[MaxLines-1], "line 5") {
		t.Errorf("%d lines from %q to %q, want the last ones", len(lines), lines[0], lines[len(lines)-1])
	}
	handle(strings.Repeat("ü", MaxLineBytes))
	if got := tail.Lines()[0]; len(got) > MaxLineBytes || !strings.HasSuffix(got, "ü…") {
		t.Errorf("a long line has %d bytes and ends in %q", len(got), got[len(got)-8:])
	}
}
