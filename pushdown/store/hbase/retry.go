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

// retryClass says what to do about a failed call.
type retryClass uint8

const (
	classUnknown   retryClass = iota // an exception that is not listed: retry a few times
	classRetry                       // retry at the same place, later
	classBusy                        // the server is overloaded: back off, send less
	classRelocate                    // the region is elsewhere: look it up again
	classReconnect                   // the server is gone or going: connect again, look up again
	classReopen                      // the server has lost or refused the scanner: open another
	classDone                        // an earlier attempt has succeeded: nothing is left to do
	classFatal                       // no attempt will succeed: give up
)

// javaRetryClasses classifies the exceptions that servers of HBase 1.x to 2.6
// send. What Java's client would retry is retried.
var javaRetryClasses = map[string]retryClass{
	"org.apache.hadoop.hbase.CallQueueTooBigException":             classBusy,
	"org.apache.hadoop.hbase.CallDroppedException":                 classBusy,
	"org.apache.hadoop.hbase.MultiActionResultTooLarge":            classRetry,
	"org.apache.hadoop.hbase.PleaseHoldException":                  classRetry,
	"org.apache.hadoop.hbase.RegionTooBusyException":               classBusy,
	"org.apache.hadoop.hbase.RetryImmediatelyException":            classRetry,
	"org.apache.hadoop.hbase.exceptions.RegionOpeningException":    classRetry,
	"org.apache.hadoop.hbase.exceptions.TimeoutIOException":        classRetry,
	"org.apache.hadoop.hbase.quotas.RpcThrottlingException":        classBusy,
	"org.apache.hadoop.hbase.RegionInRecoveryException":            classRetry,
	"org.apache.hadoop.hbase.exceptions.RegionInRecoveryException": classRetry,

	"org.apache.hadoop.hbase.NotServingRegionException":                       classRelocate,
	"org.apache.hadoop.hbase.UnknownRegionException":                          classRelocate,
	"org.apache.hadoop.hbase.exceptions.RegionMovedException":                 classRelocate,
	"org.apache.hadoop.hbase.regionserver.WrongRegionException":               classRelocate,
	"org.apache.hadoop.hbase.exceptions.MergeRegionException":                 classRelocate,
	"org.apache.hadoop.hbase.exceptions.DeserializationException":             classRelocate,
	"org.apache.hadoop.hbase.regionserver.RegionAlreadyInTransitionException": classRelocate,

	"org.apache.hadoop.hbase.exceptions.MasterStoppedException":         classReconnect,
	"org.apache.hadoop.hbase.MasterNotRunningException":                 classReconnect,
	"org.apache.hadoop.hbase.NotAllMetaRegionsOnlineException":          classReconnect,
	"org.apache.hadoop.hbase.ipc.FatalConnectionException":              classReconnect,
	"org.apache.hadoop.hbase.ipc.ServerNotRunningYetException":          classReconnect,
	"org.apache.hadoop.hbase.regionserver.RegionServerAbortedException": classReconnect,
	"org.apache.hadoop.hbase.regionserver.RegionServerStoppedException": classReconnect,

	"org.apache.hadoop.hbase.UnknownScannerException":                   classReopen,
	"org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException": classReopen,
	"org.apache.hadoop.hbase.exceptions.ScannerResetException":          classReopen,
	"org.apache.hadoop.hbase.regionserver.LeaseException":               classReopen,

	// The server has already executed a mutation with this nonce.
	"org.apache.hadoop.hbase.exceptions.OperationConflictException": classDone,

	"org.apache.hadoop.hbase.DoNotRetryIOException":                    classFatal,
	"org.apache.hadoop.hbase.InvalidFamilyOperationException":          classFatal,
	"org.apache.hadoop.hbase.NamespaceNotFoundException":               classFatal,
	"org.apache.hadoop.hbase.TableExistsException":                     classFatal,
	"org.apache.hadoop.hbase.TableNotEnabledException":                 classFatal,
	"org.apache.hadoop.hbase.TableNotFoundException":                   classFatal,
	"org.apache.hadoop.hbase.exceptions.FailedSanityCheckException":    classFatal,
	"org.apache.hadoop.hbase.exceptions.UnknownProtocolException":      classFatal,
	"org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException": classFatal,
	"org.apache.hadoop.hbase.quotas.QuotaExceededException":            classFatal,
	"org.apache.hadoop.hbase.quotas.SpaceLimitingException":            classFatal,
	accessDenied: classFatal,
	"org.apache.hadoop.hbase.ipc.UnsupportedCellCodecException":                         classFatal,
	"org.apache.hadoop.hbase.ipc.UnsupportedCompressionCodecException":                  classFatal,
	"org.apache.hadoop.hbase.ipc.RpcServer$CallTooBigException":                         classFatal,
	"java.lang.IllegalArgumentException":                                                classFatal,
	unknownMethod:                                                                       classFatal,
	"org.apache.hadoop.hbase.shaded.com.google.protobuf.InvalidProtocolBufferException": classFatal,
}

// javaPrefix stands before the class name in gohbase's errors.
const javaPrefix = "HBase Java exception "

// javaClass returns the exception class that a gohbase error names, "" for other
// errors.
func javaClass(err error) string {
	_, rest, ok := strings.Cut(err.Error(), javaPrefix)
	if !ok {
		return ""
	}
	class, _, _ := strings.Cut(rest, ":")
	return class
}

// javaError is a server's exception as callers see it: class and message, without
// the stack trace of some thirty lines.
type javaError struct {
	class, message string
}

func (e *javaError) Error() string { return e.class + ": " + e.message }

// newJavaError takes the message out of a stack trace, whose first line is
// "class: message". A long message is cut: some describe a whole table.
func newJavaError(class, stack string) *javaError {
	const maxMessage = 200
	message, _, _ := strings.Cut(strings.TrimSpace(stack), "\n")
	message = strings.TrimPrefix(message, class+": ")
	if method, ok := methodLacked(class, message); ok {
		return &javaError{unknownMethod, method}
	}
	if class == accessDenied {
		return &javaError{class, deniedMessage(message)}
	}
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	return &javaError{class, message}
}

// unknownMethod is the exception of a server that does not have the method of a call.
const unknownMethod = "java.lang.UnsupportedOperationException"

// methodLacked returns the method that a server does not have. It says so in the text of another exception, here
// the master of HBase 1.7.2:
//
//	org.apache.hadoop.hbase.DoNotRetryIOException: /10.0.0.1:16000 is unable to read call parameter from client 10.0.0.2; java.lang.UnsupportedOperationException: GetActiveMaster
//
// Source: RpcServer of HBase 1, ServerRpcConnection of HBase 2.
func methodLacked(class, message string) (method string, ok bool) {
	if class != "org.apache.hadoop.hbase.DoNotRetryIOException" {
		return "", false
	}
	_, method, ok = strings.Cut(message, "; "+unknownMethod+": ")
	return method, ok
}

// lacksMethod tells whether a server does not have the method of a call.
func lacksMethod(err error) bool {
	java := (*javaError)(nil)
	return err != nil && errors.As(withoutStack(err), &java) && java.class == unknownMethod
}

// withoutStack turns a gohbase error into a javaError; other errors stay as they
// are.
func withoutStack(err error) error {
	_, rest, ok := strings.Cut(err.Error(), javaPrefix)
	if !ok {
		return err
	}
	class, stack, _ := strings.Cut(rest, ":")
	return newJavaError(class, stack)
}

// classify returns the retry class of a failed call.
func classify(err error) retryClass {
	var (
		lost *lostError
		dial *dialError
		java *javaError
	)

	switch {
	case errors.As(err, &java):
		return javaRetryClasses[java.class]
	case errors.As(err, &lost), errors.As(err, &dial):
		return classReconnect
	case errors.Is(err, errMeta), errors.Is(err, errZooKeeper), errors.Is(err, errNodes):
		return classRelocate
	case errors.Is(err, errWritePending), errors.Is(err, errRegionBusy):
		// The pacer has held the write back: no server was asked.
		return classRetry
	case errors.Is(err, store.ErrNoTable), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrUnavailable):
		// ErrUnavailable comes from an inner operation that has retried itself.
		return classFatal
	}

	return classifyGohbase(err)
}

// classifyGohbase goes by the exception class if it is listed, else by the type
// that gohbase gave to the error.
func classifyGohbase(err error) retryClass {
	if class := javaRetryClasses[javaClass(err)]; class != classUnknown {
		return class
	}
	switch err.(type) {
	case region.NotServingRegionError:
		return classRelocate
	case region.ServerError:
		return classReconnect
	case region.RetryableError:
		return classRetry
	}
	return classUnknown
}

// Delays between attempts double from the first to the last.
const (
	firstDelay     = 10 * time.Millisecond
	lastDelay      = time.Second // short, so that a cluster that is well again is used at once
	firstBusyDelay = 50 * time.Millisecond
	lastBusyDelay  = 5 * time.Second // long, as the server is there but overloaded

	maxUnknowns = 5 // failures of classUnknown in a row before an operation gives up

	// disabledCheckAfter is how many failures of classRelocate in a row make it
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
	unknowns    int           // failures of classUnknown since the last progress
	relocations int           // failures of classRelocate since the last progress
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
	switch classify(err) {
	case classFatal, classDone:
		// classDone: an earlier attempt has done it, and its result was lost with its reply.
		return r.finalError(err)
	case classBusy:
		if !r.paced { // the region of a write has its pace instead of a longer delay
			maxDelay, r.delay = lastBusyDelay, max(r.delay, firstBusyDelay)
		}
	case classUnknown:
		if r.unknowns++; r.unknowns > maxUnknowns {
			return r.finalError(err)
		}
	case classRelocate:
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
		r.lastErr = withoutStack(err)
	}
	r.st.cfg.Logger.Debug("trying again", "table", r.table, "delay", r.delay, "error", r.lastErr)
	store.Retry(r.ctx, fmt.Errorf("table %q: %w", r.table, r.lastErr))
	return r.sleep(maxDelay)
}

// operationEnded returns an error if the store is closed or the operation's
// context has ended.
func (r *retrier) operationEnded(err error) error {
	if r.st.lifetime.Err() != nil {
		return store.ErrClosed
	}
	if r.ctx.Err() == nil {
		return nil
	}

	// A failure that is more than the context's end says why time ran out.
	if r.lastErr == nil && !errors.Is(err, r.ctx.Err()) {
		r.lastErr = withoutStack(err)
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
	case <-r.st.lifetime.Done():
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
func (r *retrier) unknownOutcome(lost *lostError) error {
	r.lastErr = lost
	return r.unavailable(errUnknownOutcome)
}

// finalError translates a failure that no other attempt can mend: table not found
// and table exists become the store's errors.
func (r *retrier) finalError(err error) error {
	err = withoutStack(err)
	var java *javaError
	if errors.As(err, &java) {
		switch java.class {
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
