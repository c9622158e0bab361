package activity

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Seconds is how many seconds of puts are kept.
const Seconds = 300

// Source is where points come from.
type Source uint8

// Sources are all of them.
func Sources() []Source { return []Source{HTTP, Telnet, Own, RemoteWrite, OTLP} }

// The sources.
const (
	HTTP        Source = iota
	Telnet             // the line protocol
	Own                // this host's own metrics
	RemoteWrite        // Prometheus' protocol
	OTLP               // OpenTelemetry's, over HTTP
	sources
)

// String returns the name of the source, as metrics and answers have it.
func (f Source) String() string {
	return [sources]string{"http", "telnet", "own", "remote_write", "otlp"}[f]
}

// Puts counts points by second, and refusals by reason. The zero value is empty. Its methods may
// be called from many goroutines.
type Puts struct {
	mu      sync.Mutex
	ring    [Seconds]second
	reasons map[reason]*Refusal
}

// second are the points of one second.
type second struct {
	at      int64 // seconds since 1970
	stored  [sources]int64
	refused int64
}

// reason is what refusals are counted by.
type reason struct{ via, text string }

// Refusal is why points were refused, since the start.
type Refusal struct {
	Via, Reason string
	Points      int64 // 0 where the points of a request could not be read
	Requests    int64 // or lines: how often Refused was called
	Last        time.Time
	Err         string // of the last one, or one of its second
}

// Bounds of refusals.
const (
	maxReasons = 64  // further ones count as the reason "others"
	maxErr     = 300 // of an error's text, in bytes
)

// Add counts points that came from a source. A number may be negative: it takes back what was
// counted before.
func (p *Puts) Add(now time.Time, from Source, stored, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()

	at := now.Unix()
	s := &p.ring[at%Seconds]
	if s.at < at {
		*s = second{at: at}
	}
	s.stored[from] += int64(stored)
	s.refused += int64(refused)
}

// Refused counts points that were refused by a reason; err is the error of one of them.
func (p *Puts) Refused(now time.Time, via, why string, points int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.reasons == nil {
		p.reasons = map[reason]*Refusal{}
	}
	k := reason{via, why}
	r := p.reasons[k]
	if r == nil && len(p.reasons) >= maxReasons {
		k.text = "others"
		k.via = "others"
		r = p.reasons[k]
	}
	if r == nil {
		r = &Refusal{Via: k.via, Reason: k.text}
		p.reasons[k] = r
	}

	r.Points += int64(points)
	r.Requests++
	// A text a second is enough: a million refusals are reported as fast as they come.
	if now.Sub(r.Last) >= time.Second || r.Err == "" {
		r.Last = now
		r.Err = shortened(err.Error())
	}
}

// shortened cuts a text to maxErr, and copies it: it may be part of a large body.
func shortened(text string) string {
	if len(text) <= maxErr {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:maxErr], "") + "…"
}

// Lately are the points of the last seconds, the oldest first: those that have passed, without the
// one of now, which is not over.
type Lately struct {
	From    int64            // seconds since 1970, of the first
	Stored  [sources][]int64 // by source
	Refused []int64          // of all sources
}

// Lately returns the points of the last n seconds, Seconds-1 at most.
func (p *Puts) Lately(now time.Time, n int) Lately {
	p.mu.Lock()
	defer p.mu.Unlock()

	n = max(0, min(n, Seconds-1))
	l := Lately{From: now.Unix() - int64(n), Refused: make([]int64, n)}
	for d := range l.Stored {
		l.Stored[d] = make([]int64, n)
	}
	for i := range n {
		at := l.From + int64(i)
		s := &p.ring[at%Seconds]
		if s.at != at {
			continue // nothing came
		}
		// Negative where more is taken back than came within the second.
		l.Refused[i] = max(0, s.refused)
		for d := range l.Stored {
			l.Stored[d][i] = max(0, s.stored[d])
		}
	}
	return l
}

// Refusals returns the reasons, those with the newest refusal first.
func (p *Puts) Refusals() []Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()

	out := make([]Refusal, 0, len(p.reasons))
	for _, r := range p.reasons {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Refusal) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Via, b.Via), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}
