package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"downpour/pushdown/process/wait"
)

// ErrLost is the cause of the end of a lease's context if it was not released: another has
// taken it, or it could not be renewed.
var ErrLost = errors.New("the lease is lost")

// ErrReleased is the cause of the end of a released lease's context.
var ErrReleased = errors.New("the lease is released")

// writeAttempts bounds how often a write is repeated on top of an earlier one that came late.
const writeAttempts = 4

// Lease is a lease that was taken. Its methods may be called from many goroutines.
type Lease struct {
	keeper *Keeper
	name   string
	turn   string
	ctx    context.Context
	end    context.CancelCauseFunc
	expiry *time.Timer   // ends ctx
	ended  chan struct{} // closed when renew has returned

	writing  chan struct{} // holds a value while somebody writes: a mutex that heeds a context
	beat     int64         // number of the last heartbeat that was tried; used while writing
	released bool          // used while writing

	mu  sync.Mutex
	now record // the newest that is known to be there; changed while writing
}

// newLease returns the lease of a record that was written, by a call that began at began.
func newLease(ctx context.Context, k *Keeper, name string, now record, began time.Time) *Lease {
	l := &Lease{
		keeper:  k,
		name:    name,
		turn:    now.Turn,
		ended:   make(chan struct{}),
		writing: make(chan struct{}, 1),
		now:     now,
		beat:    now.Beat,
	}
	l.ctx, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	l.expiry = time.AfterFunc(l.untilExpiry(began), func() {
		l.end(fmt.Errorf("%w: %s could not be renewed for %v", ErrLost, name, k.deadAfter()-k.heartbeat()))
	})
	return l
}

// untilExpiry is the time until the context ends if no write succeeds that begins after
// began: one heartbeat before others may take the lease.
func (l *Lease) untilExpiry(began time.Time) time.Duration {
	return time.Until(began.Add(l.keeper.deadAfter() - l.keeper.heartbeat()))
}

// Name returns the name by which the lease was taken.
func (l *Lease) Name() string { return l.name }

// Context ends when the lease is lost or released; its cause is ErrLost or ErrReleased. All
// work is done under it. It does not end with the context of Take.
func (l *Lease) Context() context.Context { return l.ctx }

// Do calls work and releases the lease. The context of work ends with ctx, and when the lease is
// lost; then the error has ErrLost.
func (l *Lease) Do(ctx context.Context, work func(ctx context.Context) error) error {
	under, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	defer stop()

	err := work(under)
	if lost := context.Cause(l.ctx); err != nil && errors.Is(lost, ErrLost) {
		err = fmt.Errorf("%w: %w", lost, err)
	}
	return errors.Join(err, l.Release(ctx))
}

// State returns what the last holder saved, nil at first. After an error of Save it may be
// the state from before or the new one, and so for the next holder.
func (l *Lease) State() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.now.state)
}

// Save replaces the state. If the lease was lost, nothing is written, the lease's context
// ends, and the error is an ErrLost. After another error the state may have been saved, or may
// be later, and the lease is held on.
func (l *Lease) Save(ctx context.Context, state []byte) error {
	if len(state) > maxState {
		return fmt.Errorf("cannot save the state of lease %s: got %d bytes, want at most %d", l.name, len(state),
			maxState)
	}
	if l.ctx.Err() != nil {
		return l.explained("save the state", context.Cause(l.ctx))
	}
	under, cancel := context.WithTimeout(ctx, l.keeper.heartbeat())
	defer cancel()
	stop := context.AfterFunc(l.ctx, cancel)
	defer stop()

	if err := l.lock(under); err != nil {
		return l.explained("save the state", err)
	}
	defer l.unlock()
	if err := l.write(under, func(old record) record {
		return record{Holder: l.keeper.Holder, state: bytes.Clone(state)}
	}); err != nil {
		return l.explained("save the state", err)
	}
	return nil
}

// Release gives the lease up and keeps the state. It ends the context first. It works also if ctx
// has ended, within 5 s. If it fails, others wait for as long as for a dead holder.
func (l *Lease) Release(ctx context.Context) error {
	l.end(ErrReleased)
	defer l.expiry.Stop()

	under, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	if err := l.lock(under); err != nil {
		return l.explained("release it", err)
	}
	defer l.unlock()
	if l.released {
		return nil
	}
	if err := l.write(under, func(old record) record { return record{state: old.state} }); err != nil {
		return l.explained("release it", err)
	}
	l.released = true

	select {
	case <-l.ended:
	case <-under.Done():
	}
	return nil
}

// explained adds the name of the lease and, if it was lost, that it was.
func (l *Lease) explained(what string, err error) error {
	if lost := context.Cause(l.ctx); errors.Is(lost, ErrLost) && !errors.Is(err, ErrLost) {
		err = fmt.Errorf("%w: %w", lost, err)
	}
	return fmt.Errorf("lease %s: cannot %s: %w", l.name, what, err)
}

// lock waits for those who write before.
func (l *Lease) lock(ctx context.Context) error {
	select {
	case l.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Lease) unlock() { <-l.writing }

// renew writes heartbeats until the lease is lost or released.
func (l *Lease) renew() {
	defer close(l.ended)
	for pause := l.keeper.heartbeat(); wait.For(l.ctx, pause) == nil; {
		pause = l.keeper.heartbeat()
		if l.renewOnce() != nil {
			pause /= 5
		}
	}
}

// renewOnce writes the next heartbeat, with the current state.
func (l *Lease) renewOnce() error {
	ctx, cancel := context.WithTimeout(l.ctx, l.keeper.heartbeat())
	defer cancel()
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	return l.write(ctx, func(old record) record { return record{Holder: l.keeper.Holder, state: old.state} })
}

// write writes what next makes of the record that is there. Its caller holds l.writing, see lock.
func (l *Lease) write(ctx context.Context, next func(old record) record) error {
	var err error
	for range writeAttempts {
		began := time.Now()
		l.beat++
		old := l.now
		want := next(old)
		want.Turn, want.Beat = l.turn, l.beat
		if want, err = want.encoded(); err != nil {
			return err
		}

		now, err := l.keeper.swap(ctx, l.name, old, want)
		if err != nil {
			return err
		}
		if now.Turn != l.turn {
			err := fmt.Errorf("%w: %s is held by %q now", ErrLost, l.name, now.Holder)
			l.end(err)
			return err
		}
		l.mu.Lock()
		l.now = now
		l.mu.Unlock()
		if bytes.Equal(now.value, want.value) {
			l.expiry.Reset(l.untilExpiry(began))
			return nil
		}
		// An earlier write of this lease came late: continue from that one.
	}
	return errors.New("earlier writes come late again and again")
}
