// Package putlog logs points that are refused: of one client, way (command or route) and
// reason one line a second at most, with how many there were and one of them. A collector that
// sends a million wrong points is seen in the log, and does not fill it.
package putlog

import (
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
)

// Bounds of what is logged.
const (
	// Every is the time between two lines of one client, way and reason.
	Every = time.Second
	// maxKinds is how many clients, ways and reasons have lines of their own; what more
	// clients send is counted under the client "others".
	maxKinds = 256
	// maxExample bounds the example of a line, in bytes. A longer one is cut, and ends in "…".
	maxExample = 300
)

// Log logs refused points. It may be used from many goroutines; a nil Log logs nothing.
type Log struct {
	// OnRefusal, if it is set, gets every refusal, also of those that have no line of their own. It
	// is set before the first one.
	OnRefusal func(Refusal)

	log *slog.Logger

	mu   sync.Mutex
	held map[kind]*tally // kinds that had a line within the time of Every
}

// kind is what has lines of its own.
type kind struct{ client, via, reason string }

// tally is what was refused since the last line of a kind.
type tally struct {
	points int
	first  Refusal
	timer  *time.Timer
}

// Refusal is of points that were refused by one reason.
type Refusal struct {
	// Client is the address of who sent them, HOST:PORT. Ports count as one client: collectors
	// connect again and again.
	Client string
	// Via is the command or route by which they came: put, /api/put.
	Via string
	// Reason is one of few texts, such as "unknown name".
	Reason string
	// Points is how many there are; 0 for a request whose points could not be read.
	Points int
	// Err is the error of one of them, the client's answer.
	Err error
	// Example returns the point that Err is about, as it came; nil if there is none to show.
	Example func() string
}

// New returns a log that writes to log.
func New(log *slog.Logger) *Log { return &Log{log: log, held: map[kind]*tally{}} }

// Refused logs a refusal at once if the last line of its kind is older than Every, else
// together with what follows it within that time.
func (l *Log) Refused(r Refusal) {
	if l == nil {
		return
	}
	if l.OnRefusal != nil {
		l.OnRefusal(r)
	}
	k := kind{host(r.Client), r.Via, r.Reason}

	l.mu.Lock()
	t := l.held[k]
	if t == nil && len(l.held) >= maxKinds {
		k.client = "others"
		t = l.held[k]
	}
	if t == nil {
		l.held[k] = &tally{timer: time.AfterFunc(Every, func() { l.expire(k) })}
		l.mu.Unlock()
		l.write(k, r.Points, r)
		return
	}

	if t.first.Err == nil {
		// Only now: the point may be gone when the line is written.
		example := r.example()
		t.first = r
		t.first.Example = func() string { return example }
	}
	t.points += r.Points
	l.mu.Unlock()
}

// expire writes what was refused since the last line of a kind. If that is nothing, the next
// refusal is logged at once.
func (l *Log) expire(k kind) {
	l.mu.Lock()
	t := l.held[k]
	switch {
	case t == nil: // Close has written it
		l.mu.Unlock()
		return
	case t.first.Err == nil:
		delete(l.held, k)
		l.mu.Unlock()
		return
	}

	points, first := t.points, t.first
	t.points, t.first = 0, Refusal{}
	t.timer.Reset(Every)
	l.mu.Unlock()
	l.write(k, points, first)
}

// Close writes what is held. It comes when nobody puts any more.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	held := l.held
	l.held = map[kind]*tally{}
	l.mu.Unlock()

	for k, t := range held {
		t.timer.Stop()
		if t.first.Err != nil {
			l.write(k, t.points, t.first)
		}
	}
}

// write writes a line.
func (l *Log) write(k kind, points int, r Refusal) {
	attrs := []any{"client", k.client, "via", k.via, "reason", k.reason}
	message := "a request to put points was refused"
	if points > 0 {
		message = "points were refused"
		attrs = append(attrs, "points", points)
	}
	attrs = append(attrs, "err", shortened(r.Err.Error()))
	if example := r.example(); example != "" {
		attrs = append(attrs, "example", example)
	}
	l.log.Warn(message, attrs...)
}

// example returns the refusal's example, "" if it has none.
func (r *Refusal) example() string {
	if r.Example == nil {
		return ""
	}
	return shortened(r.Example())
}

// shortened cuts a text to maxExample, and copies it: it may be part of a large body.
func shortened(text string) string {
	if len(text) <= maxExample {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:maxExample], "") + "…"
}

// host returns an address without its port.
func host(address string) string {
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return address
}
