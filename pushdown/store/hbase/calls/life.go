package calls

import (
	"context"
	"sync"

	"downpour/pushdown/store"
)

// Life is how long a store is open: its operations, and the goroutines that work for
// them.
type Life struct {
	ctx    context.Context // ends when the store is closed
	cancel context.CancelFunc
	work   sync.WaitGroup
	ending sync.RWMutex // held for writing while ctx is ended
}

// NewLife begins one.
func NewLife() *Life {
	l := &Life{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Context ends when the store is closed.
func (l *Life) Context() context.Context { return l.ctx }

// Ended reports whether the store is closed.
func (l *Life) Ended() bool { return l.ctx.Err() != nil }

// Begin registers an operation, or returns store.ErrClosed. The caller ends the
// operation with Done.
func (l *Life) Begin() error {
	l.ending.RLock()
	defer l.ending.RUnlock()

	if l.Ended() {
		return store.ErrClosed
	}
	l.work.Add(1)
	return nil
}

// Done ends an operation.
func (l *Life) Done() { l.work.Done() }

// Run starts a goroutine for an operation that has begun and not ended.
func (l *Life) Run(f func()) { l.work.Go(f) }

// End ends the context. From then on no operation begins.
func (l *Life) End() {
	// With the lock, no operation can begin between its check of the context and
	// its work.Add.
	l.ending.Lock()
	l.cancel()
	l.ending.Unlock()
}

// Wait waits for the operations and goroutines.
func (l *Life) Wait() { l.work.Wait() }
