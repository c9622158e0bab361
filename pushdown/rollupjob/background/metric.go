package background

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"downpour/encoding"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rollupjob"
)

const (
	// lookCost is what it costs to look whether a metric has raw rows, in points.
	lookCost = 500
	// maxDue bounds the metrics that wait to be proven.
	maxDue = 10_000
	// leaveFirst and leaveMost are how long days of a metric are skipped after their rollups could
	// not be proven: at first and at most. maxLeft bounds the number of remembered days.
	leaveFirst, leaveMost = 24 * time.Hour, 8 * 24 * time.Hour
	maxLeft               = 200_000
	// maxFirsts bounds the metrics whose first row is known.
	maxFirsts = 200_000
)

// days are some days of a metric.
type days struct {
	metric encoding.UID
	of     *pass
	from   int64 // later than the begin of the pass where raw rows are past
}

// key names the days of a pass of this kind: those of the newest hours have the same name each
// time.
func (d *days) key() string {
	if !d.of.walk {
		return string(d.metric)
	}
	return fmt.Sprintf("%s%d", d.metric, d.of.to)
}

// due are days whose rollups are to be proven.
type due struct {
	days
	at time.Time
}

// left is until when days of a metric are skipped, because their rollups could not be proven.
type left struct {
	until time.Time
	last  time.Duration // how long that is
}

// roll rolls a metric up between two times. It is proven immediately if nothing was made, else
// after Config.ProveAfter.
func (w *Worker) roll(ctx context.Context, m Metric, of *pass, p *progress) error {
	d := days{metric: m.UID, of: of, from: of.from}
	leave := time.Now().Before(w.left[d.key()].until)
	if !leave {
		w.totals.Add(func(t *totals) { t.metrics++ })
	}
	if err := w.job.Pace(ctx, lookCost); err != nil {
		return err
	}
	// Also for a skipped metric: the walk continues to the first row of all metrics.
	if of.first {
		delete(w.firsts, string(m.UID)) // of the last walk; an error below must not leave it
		base, ok, err := w.job.First(ctx, m.UID, 0, math.MaxUint32)
		if err != nil {
			return err
		}
		if ok {
			p.saw(base)
		}
		w.noteFirst(m.UID, base, ok)
	}
	if leave {
		w.passed = w.passed || !of.walk
		return nil
	}
	// Rolling up begins at the start of the piece that holds from. One more, because retention has
	// continued since the metrics were listed.
	if m.From > 0 {
		d.from = max(d.from, m.From+2*w.piece)
	}
	if d.from >= of.to {
		return nil
	}
	// A late point before the first row of all is found by the next walk.
	if first, known := w.firsts[string(m.UID)]; of.walk && known && first >= of.to {
		return nil
	}
	// Most months of most metrics have not changed since the last time.
	counts, proven, err := w.job.UpToDate(ctx, m.UID, d.from, of.to)
	if err != nil {
		return err
	}
	if proven {
		w.note(&counts)
		delete(w.left, d.key())
		return nil
	}
	if ok, err := w.job.Any(ctx, m.UID, d.from, of.to); err != nil || !ok {
		return err
	}

	counts, err = w.job.Roll(ctx, m.UID, d.from, of.to)
	w.note(&counts)
	if err != nil {
		return err
	}
	if counts.Made == 0 || w.cfg.ProveAfter == 0 {
		return w.prove(ctx, d)
	}
	w.due = append(w.due, due{d, time.Now().Add(w.cfg.ProveAfter)})
	return nil
}

// noteFirst notes the first raw row of a metric, none if there is none: the walk skips the months
// before it without reading them.
func (w *Worker) noteFirst(metric encoding.UID, base int64, any bool) {
	if !any {
		base = math.MaxInt64
	}
	if len(w.firsts) >= maxFirsts {
		clear(w.firsts)
	}
	w.firsts[string(metric)] = base
}

// prove proves rollups, and skips them for a while if that fails.
func (w *Worker) prove(ctx context.Context, d days) error {
	counts, err := w.job.Prove(ctx, d.metric, d.from, d.of.to)
	w.note(&counts)
	switch {
	case err != nil:
		return err
	case counts.Proven > 0:
		delete(w.left, d.key())
	case counts.Unproven > 0:
		if len(w.left) >= maxLeft {
			clear(w.left)
		}
		wait := min(max(2*w.left[d.key()].last, leaveFirst), leaveMost)
		w.left[d.key()] = left{time.Now().Add(wait), wait}
		w.warn("rollups are made and not read, because nothing proves them; gateways read raw rows", counts.Why)
	}
	return nil
}

// note counts what was done.
func (w *Worker) note(counts *rollupjob.Counts) {
	w.totals.Add(func(t *totals) { t.Counts.Add(counts) })
	w.counts.Add(counts)
}

// safely calls f with its own memory account. The process has other work, which continues after a
// panic.
func (w *Worker) safely(ctx context.Context, f func(ctx context.Context) error) (err error) {
	account := w.cfg.Memory.Open(memory.Live)
	defer account.Close()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f(memory.With(ctx, account))
}
