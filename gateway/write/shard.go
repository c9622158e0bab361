package write

import (
	"sync"
	"time"
)

// shard is a queue of batches and the goroutine that writes them, one after
// another: while one is written, the next is filled.
type shard struct {
	mu         sync.Mutex
	open       *Batch        // takes points; nil while it would be empty
	opened     chan struct{} // has a signal if a batch was opened or the writer is closing
	endWindow  chan struct{} // has a signal if the open batch must not gather points any longer
	batchTaken chan struct{} // closed, and replaced, when the open batch is taken
	closing    bool
}

// openBatch opens a batch in a shard, whose lock is held.
func (w *Writer) openBatch(sh *shard) {
	sh.open = w.newBatch(w.cfg.Window)
	if w.cfg.Form != MultiPoint {
		sh.open.waitHurries = sh
	}
	signal(sh.opened)
}

// hurry ends the commit window of b, unless b has been taken.
func (sh *shard) hurry(b *Batch) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.open == b {
		signal(sh.endWindow)
	}
}

// signal leaves a signal in c unless there is one already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run writes a shard's batches, each at the end of its commit window, until the writer closes.
func (w *Writer) run(sh *shard) {
	defer w.wg.Done()
	timer := time.NewTimer(w.cfg.Window)
	defer timer.Stop()

	var lastCommit time.Time // when the last one ended
	for range sh.opened {
		timer.Reset(sh.windowLeft())
		select {
		case <-timer.C:
		case <-sh.endWindow:
		}

		b, closing := sh.takeBatch()
		if b != nil { // nil if the writer closes while no batch is open
			if w.cfg.Form == rollupCells {
				awaitNextMilli(lastCommit)
			}
			w.commit(b)
			lastCommit = time.Now()
		}
		if closing {
			return
		}
	}
}

// awaitNextMilli waits until a millisecond has passed since a commit of rollups. A rollup that is
// written again with another type is a second cell, and only timestamps, in ms, show which is newer.
func awaitNextMilli(commit time.Time) { time.Sleep(time.Until(commit.Add(time.Millisecond))) }

// windowLeft returns how long the open batch still gathers points.
func (sh *shard) windowLeft() time.Duration {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.open == nil || sh.closing {
		return 0
	}
	return time.Until(sh.open.windowEnd)
}

// takeBatch takes the open batch, nil if there is none, so that the next point opens another. It wakes
// callers that wait because the batch was full. closing is set once the writer closes: then no other
// batch is opened.
func (sh *shard) takeBatch() (b *Batch, closing bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b, sh.open = sh.open, nil

	// A signal for this batch must not end the window of the next.
	select {
	case <-sh.endWindow:
	default:
	}

	close(sh.batchTaken)
	sh.batchTaken = make(chan struct{})
	return b, sh.closing
}
