// Package logtest has a log that tests read while it is written.
package logtest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// Log keeps what is written to it. The zero value is empty. Its methods may be called at the same time.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written since the last Take.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Take returns what String does, and forgets it.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// Lines returns the lines that have a text.
func (l *Log) Lines(with string) (lines []string) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, with) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Logger returns a logger that writes lines of text.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
