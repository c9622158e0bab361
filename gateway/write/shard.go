package write

import (
	"sync"
	"time"
)

// shard is a queue of batches and the goroutine that writes them, one after
// another: while one is written, the next is filled.
type shard struct {
	mu      sync.Mutex
	open    *Batch        // takes points; nil while it would be empty
	opened  chan struct{} // wakes the goroutine: there is an open batch
	full    chan struct{} // ends the commit window early: the open batch is large enough
	taken   chan struct{} // closed once the goroutine has taken the open batch
	closing bool
}

// openBatch opens a batch in a shard, whose lock is held.
func (w *Writer) openBatch(l *shard) {
	l.open = w.newBatch(w.cfg.Window)
	if w.cfg.Form != MultiPoint {
		l.open.flushedBy = l
	}
	signal(l.opened)
}

// flushEarly ends the commit window of b if b still takes points.
func (l *shard) flushEarly(b *Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == b {
		signal(l.full)
	}
}

// signal leaves a signal in c unless there is one already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run writes a shard's batches until the writer closes.
func (w *Writer) run(l *shard) {
	defer w.wg.Done()
	timer := time.NewTimer(w.cfg.Window)
	defer timer.Stop()

	var committed time.Time // when the last batch was
	for range l.opened {
		timer.Reset(l.windowLeft())
		select {
		case <-timer.C:
		case <-l.full:
		}

		b, last := l.takeBatch()
		if b != nil { // nil if the writer is closed while no batch is open
			w.letTimePass(committed) // rollups only: the later of two cells needs a later timestamp
			w.commit(b)
			committed = time.Now()
		}
		if last {
			return
		}
	}
}

// letTimePass waits until a millisecond has passed since the last batch was committed, if
// this is a writer of rollups. A value that is written again with another type is a
// second cell, and only timestamps, in ms, show which of two cells is newer.
func (w *Writer) letTimePass(committed time.Time) {
	if w.cfg.Form == rollupCells {
		time.Sleep(time.Until(committed.Add(time.Millisecond)))
	}
}

// windowLeft returns how long the open batch still gathers points.
func (l *shard) windowLeft() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil || l.closing {
		return 0
	}
	return time.Until(l.open.due)
}

// takeBatch takes the open batch, so that the next point opens another, and wakes
// callers that wait because it was full. last is set once the writer closes.
func (l *shard) takeBatch() (b *Batch, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, l.open = l.open, nil

	// A signal for this batch must not end the window of the next.
	select {
	case <-l.full:
	default:
	}

	close(l.taken)
	l.taken = make(chan struct{})
	return b, l.closing
}
