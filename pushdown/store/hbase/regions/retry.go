package regions

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
)

// Delays between attempts double from the first to the last.
const (
	FirstDelay     = 10 * time.Millisecond
	LastDelay      = time.Second // short, so that a recovered cluster is used soon
	FirstBusyDelay = 50 * time.Millisecond
	LastBusyDelay  = 5 * time.Second // long, as the server is there but overloaded

	MaxUnknowns = 5 // failures of ClassUnknown in a row before an operation gives up

	// disabledCheckAfter is how many failures of ClassRelocate in a row make it likely that the
	// table is disabled, so that hbase:meta is checked.
	disabledCheckAfter = 3
)

// Retrier decides whether and when an operation makes another attempt.
type Retrier struct {
	router  *Router
	ctx     context.Context
	table   string
	timeout time.Duration // of the operation since its last progress

	// paced is set for writes: their regions' paces keep busy servers from being called too often,
	// so that no longer delay is needed here.
	paced bool

	delay       time.Duration // before the next attempt
	deadline    time.Time     // timeout after the last sign of life
	unknowns    int           // failures of ClassUnknown since the last progress
	relocations int           // failures of ClassRelocate since the last progress
	lastErr     error         // for the error of an operation that runs out of time
}

// NewRetrier returns one for an operation on a table that begins now.
func (r *Router) NewRetrier(ctx context.Context, table string) *Retrier {
	a := &Retrier{router: r, ctx: ctx, table: table, timeout: r.cfg.RetryTimeout}
	a.ExtendDeadline()
	return a
}

// ForWrite returns a retrier that ends with its context alone, and the context,
// which gets a deadline if it has none. A region may refuse writes for as long as
// it takes to flush, and a caller that gets an error only sends the write again.
// The caller calls cancel.
func (r *Retrier) ForWrite() (ctx context.Context, paced *Retrier, cancel context.CancelFunc) {
	ctx, cancel = r.ctx, func() {}
	end, ok := ctx.Deadline()
	if !ok {
		ctx, cancel = context.WithTimeout(ctx, r.router.cfg.Calls.WriteTimeout)
		end, _ = ctx.Deadline()
	}

	w := *r
	w.paced = true
	w.ctx = ctx
	w.timeout = time.Until(end) + LastBusyDelay // longer than the context, which ends first
	w.ExtendDeadline()
	return ctx, &w, cancel
}

// ExtendDeadline starts the timeout again, because a server has answered.
func (r *Retrier) ExtendDeadline() { r.deadline = time.Now().Add(r.timeout) }

// MadeProgress forgets earlier failures, because a part of the operation has
// succeeded.
func (r *Retrier) MadeProgress() {
	r.delay, r.unknowns, r.relocations, r.lastErr = 0, 0, 0, nil
	r.ExtendDeadline()
}

// AfterFailure classifies the failure of an attempt. It returns nil, after a
// delay, if another attempt should be made, else the error for the operation's
// caller.
func (r *Retrier) AfterFailure(err error) error {
	if end := r.operationEnded(err); end != nil {
		return end
	}

	maxDelay := LastDelay
	switch calls.Classify(err) {
	case calls.ClassFatal, calls.ClassDone:
		// ClassDone: an earlier attempt has done it, and its result was lost with its reply.
		return r.finalError(err)
	case calls.ClassBusy:
		if !r.paced { // the region of a write has its pace instead of a longer delay
			maxDelay, r.delay = LastBusyDelay, max(r.delay, FirstBusyDelay)
		}
	case calls.ClassUnknown:
		if r.unknowns++; r.unknowns > MaxUnknowns {
			return r.finalError(err)
		}
	case calls.ClassRelocate:
		// The regions of a disabled table are served nowhere, and looking for
		// them would last until the timeout.
		if r.relocations++; r.relocations == disabledCheckAfter {
			if disabled := r.router.CheckDisabled(r.ctx, r.table); disabled != nil {
				return disabled
			}
		}
	}

	// The refusal that made the region busy is more informative than ErrRegionBusy.
	if r.lastErr == nil || !errors.Is(err, ErrRegionBusy) {
		r.lastErr = calls.WithoutStack(err)
	}
	r.router.cfg.Calls.Logger.Debug("trying again", "table", r.table, "delay", r.delay, "error", r.lastErr)
	store.Retry(r.ctx, fmt.Errorf("table %q: %w", r.table, r.lastErr))
	return r.sleep(maxDelay)
}

// operationEnded returns an error if the store is closed or the operation's
// context has ended.
func (r *Retrier) operationEnded(err error) error {
	if r.router.life.Ended() {
		return store.ErrClosed
	}
	if r.ctx.Err() == nil {
		return nil
	}

	// A failure other than the context's end is the reason why time ran out.
	if r.lastErr == nil && !errors.Is(err, r.ctx.Err()) {
		r.lastErr = calls.WithoutStack(err)
	}
	return r.unavailable(context.Cause(r.ctx))
}

// sleep waits for the delay and doubles it, up to maxDelay. It returns an error if the
// operation ends before. The first attempt after progress is made immediately, unless
// the server is busy.
func (r *Retrier) sleep(maxDelay time.Duration) error {
	delay := min(r.delay, maxDelay)
	if r.delay = min(2*delay, maxDelay); delay == 0 {
		r.delay = FirstDelay
	}
	delay = Jitter(delay)

	// The next attempt would come too late: do not wait for it.
	if time.Now().Add(delay).After(r.deadline) {
		return r.unavailable(fmt.Errorf("no success for %v", r.timeout))
	}

	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.router.life.Context().Done():
		return store.ErrClosed
	case <-r.ctx.Done():
		return r.unavailable(context.Cause(r.ctx))
	}
}

// Jitter returns a random duration between half of delay and all of it, because
// many clients meet the same fault at once.
func Jitter(delay time.Duration) time.Duration { return delay/2 + rand.N(delay/2+1) }

// unavailable returns the error of an operation that ran out of time for the given
// cause. For a cancelled operation it is only the cancellation, which is no sign of the
// store's health.
func (r *Retrier) unavailable(cause error) error {
	if errors.Is(cause, context.Canceled) {
		return fmt.Errorf("table %q: %w", r.table, cause)
	}
	if r.lastErr == nil {
		return fmt.Errorf("%w: table %q: %w: no answer", store.ErrUnavailable, r.table, cause)
	}
	return fmt.Errorf("%w: table %q: %w: the last fault: %w", store.ErrUnavailable, r.table, cause, r.lastErr)
}

// UnknownOutcome returns the error of an operation that must not be sent again after its reply
// was lost.
func (r *Retrier) UnknownOutcome(lost *calls.LostError) error {
	r.lastErr = lost
	return r.unavailable(errUnknownOutcome)
}

// finalError translates a failure that no other attempt can fix: table not found and
// table exists become the store's errors.
func (r *Retrier) finalError(err error) error {
	err = calls.WithoutStack(err)
	var java *calls.JavaError
	if errors.As(err, &java) {
		switch java.Class {
		case "org.apache.hadoop.hbase.TableNotFoundException":
			return fmt.Errorf("%w: %q: %w", store.ErrNoTable, r.table, err)
		case "org.apache.hadoop.hbase.TableExistsException":
			return fmt.Errorf("%w: %q: %w", store.ErrTableExists, r.table, err)
		}
	}

	// These already name the table.
	if errors.Is(err, store.ErrNoTable) || errors.Is(err, store.ErrClosed) {
		return err
	}
	return fmt.Errorf("table %q: %w", r.table, err)
}
