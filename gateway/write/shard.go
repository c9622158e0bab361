package write

import (
	"sync"
	"time"
)

// shard is one sequence of batches: one being written, one being filled.
type shard struct {
	mu      sync.Mutex
	open    *Batch        // takes points; nil when empty
	opened  chan struct{} // wakes the writing goroutine: there is an open batch
	full    chan struct{} // wakes it early: the open batch is large enough
	room    chan struct{} // closed when the open batch was taken away
	closing bool
}

// begin opens a batch; the lane's lock is held.
func (w *Writer) begin(l *shard) {
	l.open = w.newBatch(w.cfg.Window)
	if w.cfg.Form != Multi {
		l.open.lane = l
	}
	signal(l.opened)
}

// flushEarly ends the window of b, if that still takes points.
func (l *shard) flushEarly(b *Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == b {
		signal(l.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run writes a lane's batches one after another.
func (w *Writer) run(l *shard) {
	defer w.wg.Done()
	timer := time.NewTimer(w.cfg.Window)
	defer timer.Stop()
	for range l.opened {
		timer.Reset(l.due())
		select {
		case <-timer.C:
		case <-l.full:
		}
		b, last := l.takeBatch()
		if b != nil {
			w.commit(b)
		}
		if last {
			return
		}
	}
}

// due is how long the open batch still waits for company.
func (l *shard) due() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil || l.closing {
		return 0
	}
	return time.Until(l.open.due)
}

// takeBatch removes the open batch and lets waiting points in.
func (l *shard) takeBatch() (b *Batch, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, l.open = l.open, nil
	select {
	case <-l.full:
	default:
	}
	close(l.room)
	l.room = make(chan struct{})
	return b, l.closing
}
