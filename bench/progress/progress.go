// Package progress shows how far a run is: a bar with the time left on a
// terminal, else plain lines now and then.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress counts towards a total. Its methods may be called from many
// goroutines; a nil Progress says nothing.
type Progress struct {
	mu     sync.Mutex
	out    io.Writer
	now    func() time.Time
	what   string
	total  int64
	done   int64
	bar    *progressbar.ProgressBar
	start  time.Time
	lineAt time.Time // of the latest line, or the start
}

// lineEvery is the time between two lines.
const lineEvery = 10 * time.Second

// New begins to count to total and shows on out how far it is. A total of 0 is unknown:
// then there is no bar, and lines have no percentage.
func New(out io.Writer, what string, total int64) *Progress {
	p := &Progress{out: out, now: time.Now, what: what, total: total}
	p.start = p.now()
	p.lineAt = p.start
	if terminal(out) && total > 0 {
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(out),
			progressbar.OptionSetDescription(what), progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionFullWidth())
	}
	return p
}

// terminal reports whether w is one, where a bar can be drawn.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Add counts n more, and shows it: in the bar, or by a line if the latest one is
// lineEvery ago.
func (p *Progress) Add(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()

	p.done += n
	if p.bar != nil {
		_ = p.bar.Set64(min(p.done, p.total)) // a terminal that is gone is no reason to stop
		return
	}
	now := p.now()
	if now.Sub(p.lineAt) < lineEvery {
		return
	}

	p.lineAt = now
	passed, left := now.Sub(p.start), ""
	if p.total > 0 && p.done > 0 {
		left = fmt.Sprintf(", %d%%, about %s left", 100*p.done/p.total,
			time.Duration(float64(passed)*float64(p.total-p.done)/float64(p.done)).Round(time.Second))
	}

	of := ""
	if p.total > 0 {
		of = fmt.Sprintf(" of %d", p.total)
	}
	fmt.Fprintf(p.out, "%s: %d%s after %s%s\n", p.what, p.done, of, passed.Round(time.Second), left)
}

// Sayf prints a line of text, not into the bar.
func (p *Progress) Sayf(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.out, format+"\n", args...)
}

// Clear wipes the bar off its line, for somebody else to write there; the next
// Add draws it again.
func (p *Progress) Clear() {
	if p == nil || p.bar == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.bar.Clear()
}

// End takes the bar away.
func (p *Progress) End() {
	if p == nil || p.bar == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.bar.Exit()
	_ = p.bar.Clear()
}
