package tools

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress reports how far an import is: on a terminal by a bar with the time left,
// elsewhere by a line every ten seconds.
type progress struct {
	out     io.Writer
	now     func() time.Time
	name    string
	size    int64 // of the file, -1 if it is unknown
	bar     *progressbar.ProgressBar
	start   time.Time
	told    time.Time // when the last line was printed
	earlier int64     // points that an earlier run has imported, -1 before the first report
}

// tellEvery is the time between two lines.
const tellEvery = 10 * time.Second

// newProgress begins to report on a file. Without a size there is no bar, only lines.
func newProgress(e *Env, f *input) *progress {
	p := &progress{out: e.Err, now: e.Now, name: f.name, size: f.size, start: e.Now(), told: e.Now(), earlier: -1}
	if e.Terminal && f.size > 0 {
		p.bar = progressbar.NewOptions64(f.size, progressbar.OptionSetWriter(e.Err), progressbar.OptionShowBytes(true),
			progressbar.OptionSetDescription(filepath.Base(f.name)), progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionFullWidth())
	}
	return p
}

// at reports how many bytes of the file are read, and what is imported so far.
func (p *progress) at(bytes, lines, points int64) {
	// The points of an earlier run do not count in the rate of this one.
	if p.earlier < 0 {
		p.earlier = points
	}
	if p.bar != nil {
		_ = p.bar.Set64(min(bytes, p.size)) // a terminal that is gone is no reason to stop
		return
	}

	now := p.now()
	if now.Sub(p.told) < tellEvery {
		return
	}
	p.told = now

	passed := now.Sub(p.start)
	share := ""
	// Of a size that is unknown nobody can say how much is left.
	if p.size > 0 && bytes > 0 {
		left := time.Duration(float64(passed) * float64(p.size-bytes) / float64(bytes))
		share = fmt.Sprintf("%d%% of the file, %s left, ", 100*bytes/p.size, left.Round(time.Second))
	}
	fmt.Fprintf(p.out, "%s: %s%d lines, %d points, %.0f points/s\n", p.name, share, lines, points,
		float64(points-p.earlier)/passed.Seconds())
}

// say prints a line of text. It removes the bar from the screen first.
func (p *progress) say(text string) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintln(p.out, text)
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
	}
}
