package hbase

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/region"
)

// retryClass says what a failed call asks of its caller.
type retryClass uint8

const (
	unknown   retryClass = iota // an exception not listed here: try again, a few times
	again                       // not just now: same place
	busy                        // the server has too much to do: back off, send less
	relocate                    // the region is elsewhere: look it up again
	reconnect                   // the server is gone or going: new connection, look up again
	reopen                      // the server has lost or refused the scanner: open another
	done                        // the server has done it already, on an earlier attempt
	fatal                       // no other attempt will do better
)

// javaVerdicts judges the exceptions that HBase 1.x to 2.6 servers send. What
// Java's client would try again is tried again.
var javaVerdicts = map[string]retryClass{
	"org.apache.hadoop.hbase.CallQueueTooBigException":             busy,
	"org.apache.hadoop.hbase.CallDroppedException":                 busy,
	"org.apache.hadoop.hbase.MultiActionResultTooLarge":            again,
	"org.apache.hadoop.hbase.PleaseHoldException":                  again,
	"org.apache.hadoop.hbase.RegionTooBusyException":               busy,
	"org.apache.hadoop.hbase.RetryImmediatelyException":            again,
	"org.apache.hadoop.hbase.exceptions.RegionOpeningException":    again,
	"org.apache.hadoop.hbase.exceptions.TimeoutIOException":        again,
	"org.apache.hadoop.hbase.quotas.RpcThrottlingException":        busy,
	"org.apache.hadoop.hbase.RegionInRecoveryException":            again,
	"org.apache.hadoop.hbase.exceptions.RegionInRecoveryException": again,

	"org.apache.hadoop.hbase.NotServingRegionException":                       relocate,
	"org.apache.hadoop.hbase.UnknownRegionException":                          relocate,
	"org.apache.hadoop.hbase.exceptions.RegionMovedException":                 relocate,
	"org.apache.hadoop.hbase.regionserver.WrongRegionException":               relocate,
	"org.apache.hadoop.hbase.exceptions.MergeRegionException":                 relocate,
	"org.apache.hadoop.hbase.exceptions.DeserializationException":             relocate,
	"org.apache.hadoop.hbase.regionserver.RegionAlreadyInTransitionException": relocate,

	"org.apache.hadoop.hbase.exceptions.MasterStoppedException":         reconnect,
	"org.apache.hadoop.hbase.MasterNotRunningException":                 reconnect,
	"org.apache.hadoop.hbase.NotAllMetaRegionsOnlineException":          reconnect,
	"org.apache.hadoop.hbase.ipc.FatalConnectionException":              reconnect,
	"org.apache.hadoop.hbase.ipc.ServerNotRunningYetException":          reconnect,
	"org.apache.hadoop.hbase.regionserver.RegionServerAbortedException": reconnect,
	"org.apache.hadoop.hbase.regionserver.RegionServerStoppedException": reconnect,

	"org.apache.hadoop.hbase.UnknownScannerException":                   reopen,
	"org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException": reopen,
	"org.apache.hadoop.hbase.exceptions.ScannerResetException":          reopen,
	"org.apache.hadoop.hbase.regionserver.LeaseException":               reopen,

	// A mutation with a nonce that the server has seen.
	"org.apache.hadoop.hbase.exceptions.OperationConflictException": done,

	"org.apache.hadoop.hbase.DoNotRetryIOException":                                     fatal,
	"org.apache.hadoop.hbase.InvalidFamilyOperationException":                           fatal,
	"org.apache.hadoop.hbase.NamespaceNotFoundException":                                fatal,
	"org.apache.hadoop.hbase.TableExistsException":                                      fatal,
	"org.apache.hadoop.hbase.TableNotEnabledException":                                  fatal,
	"org.apache.hadoop.hbase.TableNotFoundException":                                    fatal,
	"org.apache.hadoop.hbase.exceptions.FailedSanityCheckException":                     fatal,
	"org.apache.hadoop.hbase.exceptions.UnknownProtocolException":                       fatal,
	"org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException":                  fatal,
	"org.apache.hadoop.hbase.security.AccessDeniedException":                            fatal,
	"org.apache.hadoop.hbase.ipc.UnsupportedCellCodecException":                         fatal,
	"org.apache.hadoop.hbase.ipc.UnsupportedCompressionCodecException":                  fatal,
	"org.apache.hadoop.hbase.ipc.RpcServer$CallTooBigException":                         fatal,
	"java.lang.IllegalArgumentException":                                                fatal,
	"java.lang.UnsupportedOperationException":                                           fatal,
	"org.apache.hadoop.hbase.shaded.com.google.protobuf.InvalidProtocolBufferException": fatal,
}

// javaPrefix stands before the class name in gohbase's errors.
const javaPrefix = "HBase Java exception "

// javaClass gives the exception's class of a gohbase error, "" for others.
func javaClass(err error) string {
	_, rest, ok := strings.Cut(err.Error(), javaPrefix)
	if !ok {
		return ""
	}
	class, _, _ := strings.Cut(rest, ":")
	return class
}

// javaError is an exception as callers see it: class and message, without the
// stack of some thirty lines.
type javaError struct {
	class, message string
}

func (e *javaError) Error() string { return e.class + ": " + e.message }

// newJavaError takes the message out of a stack, whose first line is
// "class: message". Some messages describe a whole table; they are cut.
func newJavaError(class, stack string) *javaError {
	const longest = 200
	message, _, _ := strings.Cut(strings.TrimSpace(stack), "\n")
	message = strings.TrimPrefix(message, class+": ")
	if len(message) > longest {
		message = message[:longest] + "…"
	}
	return &javaError{class, message}
}

// readable shortens a gohbase error.
func readable(err error) error {
	_, rest, ok := strings.Cut(err.Error(), javaPrefix)
	if !ok {
		return err
	}
	class, stack, _ := strings.Cut(rest, ":")
	return newJavaError(class, stack)
}

// judge finds the verdict on a failed call.
func judge(err error) retryClass {
	var (
		lost *lostError
		dial *dialError
		java *javaError
	)
	switch {
	case errors.As(err, &java):
		return javaVerdicts[java.class]
	case errors.As(err, &lost), errors.As(err, &dial):
		return reconnect
	case errors.Is(err, errMeta), errors.Is(err, errZooKeeper):
		return relocate
	case errors.Is(err, errPending), errors.Is(err, errBusy):
		return again
	case errors.Is(err, store.ErrNoTable), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrUnavailable):
		return fatal
	}
	return judgeJava(err)
}

// judgeJava goes by the class, then by gohbase's own opinion.
func judgeJava(err error) retryClass {
	if v := javaVerdicts[javaClass(err)]; v != unknown {
		return v
	}
	switch err.(type) {
	case region.NotServingRegionError:
		return relocate
	case region.ServerError:
		return reconnect
	case region.RetryableError:
		return again
	}
	return unknown
}

const (
	firstDelay  = 10 * time.Millisecond
	lastDelay   = time.Second           // short, so that a healed cluster is noticed at once
	firstBusy   = 50 * time.Millisecond // of a server that is there, but has too much to do
	lastBusy    = 5 * time.Second
	maxUnknowns = 5
)

// retrier decides over the attempts of one operation.
type retrier struct {
	st       *Store
	ctx      context.Context
	table    string
	patience time.Duration
	paced    bool               // the regions' paces keep busy servers from being asked too often
	cancel   context.CancelFunc // of forWrite
	delay    time.Duration
	giveUp   time.Time
	unknowns int
	moved    int
	last     error
}

func (st *Store) newRetrier(ctx context.Context, table string) *retrier {
	r := &retrier{st: st, ctx: ctx, table: table, patience: st.cfg.Patience}
	r.alive()
	return r
}

// forWrite makes a retrier that ends with its context alone, which gets a
// deadline if it has none: a region may take no writes for as long as it takes
// to flush, and what is given up is only sent again by somebody else. The
// caller calls r.cancel.
func (r *retrier) forWrite() (context.Context, *retrier) {
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	end, ok := ctx.Deadline()
	if !ok {
		ctx, cancel = context.WithTimeout(ctx, r.st.cfg.WriteTimeout)
		end, _ = ctx.Deadline()
	}
	w := *r
	w.paced = true
	w.ctx, w.cancel, w.patience = ctx, cancel, time.Until(end)+lastBusy // so that the context is the first to end
	w.alive()
	return ctx, &w
}

// alive restarts the patience: a server has answered.
func (r *retrier) alive() { r.giveUp = time.Now().Add(r.patience) }

// progress forgets earlier failures: the operation has got on.
func (r *retrier) progress() {
	r.delay, r.unknowns, r.moved, r.last = 0, 0, 0, nil
	r.alive()
}

// after judges a failed attempt. It returns nil, having waited, when another
// attempt should be made, else the error for the operation's caller.
func (r *retrier) after(err error) error {
	if end := r.ended(err); end != nil {
		return end
	}
	longest := lastDelay
	switch judge(err) {
	case fatal, done:
		return r.final(err)
	case busy:
		if !r.paced {
			longest, r.delay = lastBusy, max(r.delay, firstBusy)
		}
	case unknown:
		if r.unknowns++; r.unknowns > maxUnknowns {
			return r.final(err)
		}
	case relocate:
		if r.moved++; r.moved == 3 {
			if off := r.st.disabled(r.ctx, r.table); off != nil {
				return off
			}
		}
	}
	if r.last == nil || !errors.Is(err, errBusy) { // which says less than the refusal before it
		r.last = readable(err)
	}
	r.st.cfg.Logger.Debug("trying again", "table", r.table, "delay", r.delay, "error", r.last)
	return r.sleep(longest)
}

// ended recognizes the end of the operation's time or of the store.
func (r *retrier) ended(err error) error {
	if r.st.life.Err() != nil {
		return store.ErrClosed
	}
	if r.ctx.Err() == nil {
		return nil
	}
	if r.last == nil && !errors.Is(err, r.ctx.Err()) {
		r.last = readable(err)
	}
	return r.outOfTime(context.Cause(r.ctx))
}

// sleep waits the delay, doubles it up to the longest and watches the
// operation's end. The first attempt after success or a single fault is made at
// once, but to a busy server.
func (r *retrier) sleep(longest time.Duration) error {
	delay := min(r.delay, longest)
	if r.delay = min(2*delay, longest); delay == 0 {
		r.delay = firstDelay
	}
	delay = jitter(delay)
	if time.Now().Add(delay).After(r.giveUp) {
		return r.outOfTime(fmt.Errorf("no success for %v", r.patience))
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.st.life.Done():
		return store.ErrClosed
	case <-r.ctx.Done():
		return r.outOfTime(context.Cause(r.ctx))
	}
}

// jitter is between half of a delay and all of it: many clients meet the same
// fault at once.
func jitter(delay time.Duration) time.Duration { return delay/2 + rand.N(delay/2+1) }

// outOfTime is the error of an operation that waited in vain. A cancelled
// operation says only that; it knows nothing of the store's health.
func (r *retrier) outOfTime(cause error) error {
	if errors.Is(cause, context.Canceled) {
		return fmt.Errorf("table %q: %w", r.table, cause)
	}
	if r.last == nil {
		return fmt.Errorf("%w: table %q: %w: no answer", store.ErrUnavailable, r.table, cause)
	}
	return fmt.Errorf("%w: table %q: %w: the last fault: %w", store.ErrUnavailable, r.table, cause, r.last)
}

// final translates a fault that no attempt will heal.
func (r *retrier) final(err error) error {
	err = readable(err)
	var java *javaError
	if errors.As(err, &java) {
		switch java.class {
		case "org.apache.hadoop.hbase.TableNotFoundException":
			return fmt.Errorf("%w: %q: %w", store.ErrNoTable, r.table, err)
		case "org.apache.hadoop.hbase.TableExistsException":
			return fmt.Errorf("%w: %q: %w", store.ErrTableExists, r.table, err)
		}
	}
	if errors.Is(err, store.ErrNoTable) || errors.Is(err, store.ErrClosed) {
		return err
	}
	return fmt.Errorf("table %q: %w", r.table, err)
}
