package hbase

import (
	"context"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Delays between attempts double from the first to the last.
const (
	firstDelay     = 10 * time.Millisecond
	lastDelay      = time.Second // short, so that a cluster that is well again is used at once
	firstBusyDelay = 50 * time.Millisecond
	lastBusyDelay  = 5 * time.Second // long, as the server is there but overloaded

	maxUnknowns = 5 // failures of ClassUnknown in a row before an operation gives up

	// disabledCheckAfter is how many failures of ClassRelocate in a row make it
	// likely that the table is disabled, so that hbase:meta is asked.
	disabledCheckAfter = 3
)

// retrier decides whether and when an operation makes another attempt.
type retrier struct {
	st      *Store
	ctx     context.Context
	table   string
	timeout time.Duration // of the operation since its last progress

	// paced is set for writes: their regions' paces keep busy servers from being
	// asked too often, so that no longer delay is needed here.
	paced  bool
	cancel context.CancelFunc // set by forWrite

	delay       time.Duration // before the next attempt
	deadline    time.Time     // timeout after the last sign of life
	unknowns    int           // failures of ClassUnknown since the last progress
	relocations int           // failures of ClassRelocate since the last progress
	lastErr     error         // for the error of an operation that runs out of time
}

func (st *Store) newRetrier(ctx context.Context, table string) *retrier {
	r := &retrier{st: st, ctx: ctx, table: table, timeout: st.cfg.RetryTimeout}
	r.extendDeadline()
	return r
}

// forWrite returns a retrier that ends with its context alone, and the context,
// which gets a deadline if it has none. A region may refuse writes for as long as
// it takes to flush, and a caller that gets an error only sends the write again.
// The caller calls r.cancel.
func (r *retrier) forWrite() (context.Context, *retrier) {
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	end, ok := ctx.Deadline()
	if !ok {
		ctx, cancel = context.WithTimeout(ctx, r.st.cfg.WriteTimeout)
		end, _ = ctx.Deadline()
	}

	w := *r
	w.paced = true
	w.ctx, w.cancel = ctx, cancel
	w.timeout = time.Until(end) + lastBusyDelay // longer than the context, which ends first
	w.extendDeadline()
	return ctx, &w
}

// extendDeadline starts the timeout again, because a server has answered.
func (r *retrier) extendDeadline() { r.deadline = time.Now().Add(r.timeout) }

// madeProgress forgets earlier failures, because a part of the operation has
// succeeded.
func (r *retrier) madeProgress() {
	r.delay, r.unknowns, r.relocations, r.lastErr = 0, 0, 0, nil
	r.extendDeadline()
}

// afterFailure classifies the failure of an attempt. It returns nil, after a
// delay, if another attempt should be made, else the error for the operation's
// caller.
func (r *retrier) afterFailure(err error) error {
	if end := r.operationEnded(err); end != nil {
		return end
	}

	maxDelay := lastDelay
	switch calls.Classify(err) {
	case calls.ClassFatal, calls.ClassDone:
		// ClassDone: an earlier attempt has done it, and its result was lost with its reply.
		return r.finalError(err)
	case calls.ClassBusy:
		if !r.paced { // the region of a write has its pace instead of a longer delay
			maxDelay, r.delay = lastBusyDelay, max(r.delay, firstBusyDelay)
		}
	case calls.ClassUnknown:
		if r.unknowns++; r.unknowns > maxUnknowns {
			return r.finalError(err)
		}
	case calls.ClassRelocate:
		// The regions of a disabled table are served nowhere, and looking for
		// them would last until the timeout.
		if r.relocations++; r.relocations == disabledCheckAfter {
			if disabled := r.st.checkDisabled(r.ctx, r.table); disabled != nil {
				return disabled
			}
		}
	}

	// The refusal that made the region busy says more than errRegionBusy.
	if r.lastErr == nil || !errors.Is(err, errRegionBusy) {
		r.lastErr = calls.WithoutStack(err)
	}
	r.st.cfg.Logger.Debug("trying again", "table", r.table, "delay", r.delay, "error", r.lastErr)
	store.Retry(r.ctx, fmt.Errorf("table %q: %w", r.table, r.lastErr))
	return r.sleep(maxDelay)
}

// operationEnded returns an error if the store is closed or the operation's
// context has ended.
func (r *retrier) operationEnded(err error) error {
	if r.st.life.Ended() {
		return store.ErrClosed
	}
	if r.ctx.Err() == nil {
		return nil
	}

	// A failure that is more than the context's end says why time ran out.
	if r.lastErr == nil && !errors.Is(err, r.ctx.Err()) {
		r.lastErr = calls.WithoutStack(err)
	}
	return r.unavailable(context.Cause(r.ctx))
}

// sleep waits for the delay and doubles it, up to maxDelay. It returns an error if
// the operation ends before. The first attempt after progress is made at once,
// unless the server is busy.
func (r *retrier) sleep(maxDelay time.Duration) error {
	delay := min(r.delay, maxDelay)
	if r.delay = min(2*delay, maxDelay); delay == 0 {
		r.delay = firstDelay
	}
	delay = jitter(delay)

	// The next attempt would come too late, so nobody waits for it.
	if time.Now().Add(delay).After(r.deadline) {
		return r.unavailable(fmt.Errorf("no success for %v", r.timeout))
	}

	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.st.life.Context().Done():
		return store.ErrClosed
	case <-r.ctx.Done():
		return r.unavailable(context.Cause(r.ctx))
	}
}

// jitter returns a random duration between half of delay and all of it, because
// many clients meet the same fault at once.
func jitter(delay time.Duration) time.Duration { return delay/2 + rand.N(delay/2+1) }

// unavailable returns the error of an operation that ran out of time for the given
// cause. For a cancelled operation it is the cancellation alone, which says nothing
// of the store's health.
func (r *retrier) unavailable(cause error) error {
	if errors.Is(cause, context.Canceled) {
		return fmt.Errorf("table %q: %w", r.table, cause)
	}
	if r.lastErr == nil {
		return fmt.Errorf("%w: table %q: %w: no answer", store.ErrUnavailable, r.table, cause)
	}
	return fmt.Errorf("%w: table %q: %w: the last fault: %w", store.ErrUnavailable, r.table, cause, r.lastErr)
}

// unknownOutcome returns the error of an operation that must not be sent again after its reply
// was lost.
func (r *retrier) unknownOutcome(lost *calls.LostError) error {
	r.lastErr = lost
	return r.unavailable(errUnknownOutcome)
}

// finalError translates a failure that no other attempt can mend: table not found
// and table exists become the store's errors.
func (r *retrier) finalError(err error) error {
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
