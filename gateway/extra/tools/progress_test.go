package tools

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Progress is a bar on a terminal, and otherwise a line every few seconds.
func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	f := func(terminal bool, size int64) string {
		var out bytes.Buffer
		e := &Env{Err: &out, Terminal: terminal, Now: func() time.Time { return now }}
		p := newProgress(e, &input{name: "dir/points.gz", size: size})
		for i := range int64(5) {
			now = now.Add(4 * time.Second)
			p.at(100*i, 1000*i, 900*i)
		}
		p.say("points.gz:7: refused")
		p.end()
		return out.String()
	}
	if got, want := f(false, 800), "dir/points.gz: 25% of the file, 36s left, 2000 lines, 1800 points, "+
		"150 points/s\npoints.gz:7: refused\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := f(false, -1),
		"dir/points.gz: 2000 lines, 1800 points, 150 points/s\npoints.gz:7: refused\n"; got != want {
		t.Errorf("a pipe: got %q, want %q", got, want)
	}
	if got := f(true, 800); !strings.Contains(got, "\r") || !strings.Contains(got, "points.gz") ||
		!strings.Contains(got, "points.gz:7: refused\n") || strings.Contains(got, "of the file") {
		t.Errorf("on a terminal: got %q, want a bar and the refused line", got)
	}
}
