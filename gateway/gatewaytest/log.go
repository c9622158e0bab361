package gatewaytest

import (
	"regexp"
	"strings"
)

// LogLine returns the newest line of /logs that contains a text.
func (b *Bench) LogLine(text string, header ...string) string {
	b.Helper()
	for l := range strings.Lines(b.Get("/logs", header...).Body) {
		if strings.Contains(l, text) {
			return l
		}
	}
	b.Errorf("no line with %q in the log", text)
	return ""
}

// AuditLines returns the two lines about one request, the first one first.
func (b *Bench) AuditLines(id string, header ...string) (lines []string) {
	b.Helper()
	if !strings.Contains(b.Get("/logs", header...).Body, " request="+id+"\n") {
		b.Errorf("no line about %s", id)
		return nil
	}
	Eventually(b.T, "two lines about "+id, func() bool { // the client may have the answer before the second
		lines = nil
		for l := range strings.Lines(b.Get("/logs", header...).Body) {
			if strings.Contains(l, "an administrative request") && strings.Contains(l, " request="+id) {
				lines = append([]string{l}, lines...) // /logs has the newest line first
			}
		}
		return len(lines) >= 2
	})
	if len(lines) != 2 || strings.Contains(lines[0], "request ended") || !strings.Contains(lines[1], "request ended") {
		b.Errorf("%s: got %q, want a line at the beginning and one at the end", id, lines)
	}
	return lines
}

// HeldBytes returns how many bytes a holder has reserved, by /metrics.
func (b *Bench) HeldBytes(holder string) string {
	b.Helper()
	found := regexp.MustCompile(`downpour_memory_held_bytes\{holder="` + holder + `"\} (\S+)`).
		FindStringSubmatch(b.Get("/metrics").Body)
	if found == nil {
		b.Fatalf("no metric of the memory that %s holds", holder)
	}
	return found[1]
}

// Settled waits until no query and no write holds memory any more.
func (b *Bench) Settled() {
	b.Helper()
	for _, holder := range []string{"query", "write"} {
		Eventually(b.T, "memory given back by each "+holder, func() bool { return b.HeldBytes(holder) == "0" })
	}
}
