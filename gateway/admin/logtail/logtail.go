// Package logtail keeps the last lines of a program's log in memory, for /logs. It knows no
// file and no clock: lines have the times that the logger gave them.
package logtail

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Bounds of what is kept.
const (
	// MaxLines is how many lines are kept, as OpenTSDB's logback.xml says.
	MaxLines = 1024
	// MaxLineBytes bounds a line. A longer one is cut, and ends in "…".
	MaxLineBytes = 1 << 10
)

// keptLevel is the least level of a line that is kept.
const keptLevel = slog.LevelInfo

// Tail is a slog.Handler that passes records on and keeps the last ones as lines. It may be
// used from many goroutines.
type Tail struct {
	next  slog.Handler
	attrs string // of With, as text
	group string // of WithGroup, with a dot at its end
	kept  *ring
}

// ring is shared by all handlers that were made from one.
type ring struct {
	mu    sync.Mutex
	lines []string
	at    int // of the oldest, once all lines are used
}

// New returns a handler in front of next.
func New(next slog.Handler) *Tail { return &Tail{next: next, kept: &ring{}} }

// Lines returns the kept lines, the newest first, each as OpenTSDB's /logs has it: seconds,
// level, thread, logger and message between tabs. There is one thread and one logger.
// Source: LogsRpc.
func (t *Tail) Lines() []string {
	t.kept.mu.Lock()
	defer t.kept.mu.Unlock()
	out := slices.Concat(t.kept.lines[t.kept.at:], t.kept.lines[:t.kept.at])
	slices.Reverse(out)
	return out
}

// Enabled reports whether a line is kept or passed on. What is kept does not depend on the
// level that the next handler writes.
func (t *Tail) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= keptLevel || t.next.Enabled(ctx, level)
}

// Handle keeps a record, and passes it on if the next handler wants it.
func (t *Tail) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= keptLevel {
		t.kept.add(t.line(&r))
	}
	if !t.next.Enabled(ctx, r.Level) {
		return nil
	}
	return t.next.Handle(ctx, r)
}

// line returns a record as a line.
func (t *Tail) line(r *slog.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d\t%s\tmain\tdownpour\t%s%s", r.Time.Unix(), r.Level, oneLine(r.Message), t.attrs)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(t.text(a))
		return b.Len() <= MaxLineBytes // what follows would be cut off
	})
	return cut(b.String())
}

// WithAttrs returns a handler for the same lines.
func (t *Tail) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *t
	c.next = t.next.WithAttrs(attrs)
	for _, a := range attrs {
		c.attrs += t.text(a)
	}
	return &c
}

// WithGroup returns a handler for the same lines.
func (t *Tail) WithGroup(name string) slog.Handler {
	c := *t
	c.next, c.group = t.next.WithGroup(name), t.group+name+"."
	return &c
}

// text returns an attribute as " key=value".
func (t *Tail) text(a slog.Attr) string {
	return " " + t.group + a.Key + "=" + oneLine(a.Value.Resolve().String())
}

// oneLine keeps a text from looking like several lines or fields, and from changing the terminal
// on which it is read.
func oneLine(s string) string {
	if len(s) > MaxLineBytes {
		s = s[:MaxLineBytes]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// cut shortens a line to MaxLineBytes.
func cut(line string) string {
	const mark = "…"
	if len(line) <= MaxLineBytes {
		return line
	}
	// The bound may have parted a character.
	return strings.ToValidUTF8(line[:MaxLineBytes-len(mark)], "") + mark
}

// add keeps a line, in the place of the oldest once there are MaxLines.
func (k *ring) add(line string) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if len(k.lines) < MaxLines {
		k.lines = append(k.lines, line)
		return
	}
	k.lines[k.at] = line
	k.at = (k.at + 1) % MaxLines
}
