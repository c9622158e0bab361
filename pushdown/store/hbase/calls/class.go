package calls

import (
	"errors"
	"strings"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/region"
)

// RetryClass is what to do about a failed call.
type RetryClass uint8

const (
	ClassUnknown   RetryClass = iota // an exception that is not listed: retry a few times
	ClassRetry                       // retry at the same place, later
	ClassBusy                        // the server is overloaded: back off, send less
	ClassRelocate                    // the region is elsewhere: look it up again
	ClassReconnect                   // the server is down or stopping: connect again, look up again
	ClassReopen                      // the server has lost or refused the scanner: open another
	ClassDone                        // an earlier attempt has succeeded: nothing remains to do
	ClassFatal                       // no attempt will succeed: give up
)

// javaRetryClasses classifies the exceptions that servers of HBase 1.x to 2.6 send.
// Exceptions that Java's client retries are retried.
var javaRetryClasses = map[string]RetryClass{
	"org.apache.hadoop.hbase.CallQueueTooBigException":             ClassBusy,
	"org.apache.hadoop.hbase.CallDroppedException":                 ClassBusy,
	"org.apache.hadoop.hbase.MultiActionResultTooLarge":            ClassRetry,
	"org.apache.hadoop.hbase.PleaseHoldException":                  ClassRetry,
	"org.apache.hadoop.hbase.RegionTooBusyException":               ClassBusy,
	"org.apache.hadoop.hbase.RetryImmediatelyException":            ClassRetry,
	"org.apache.hadoop.hbase.exceptions.RegionOpeningException":    ClassRetry,
	"org.apache.hadoop.hbase.exceptions.TimeoutIOException":        ClassRetry,
	"org.apache.hadoop.hbase.quotas.RpcThrottlingException":        ClassBusy,
	"org.apache.hadoop.hbase.RegionInRecoveryException":            ClassRetry,
	"org.apache.hadoop.hbase.exceptions.RegionInRecoveryException": ClassRetry,

	"org.apache.hadoop.hbase.NotServingRegionException":                       ClassRelocate,
	"org.apache.hadoop.hbase.UnknownRegionException":                          ClassRelocate,
	"org.apache.hadoop.hbase.exceptions.RegionMovedException":                 ClassRelocate,
	"org.apache.hadoop.hbase.regionserver.WrongRegionException":               ClassRelocate,
	"org.apache.hadoop.hbase.exceptions.MergeRegionException":                 ClassRelocate,
	"org.apache.hadoop.hbase.exceptions.DeserializationException":             ClassRelocate,
	"org.apache.hadoop.hbase.regionserver.RegionAlreadyInTransitionException": ClassRelocate,

	"org.apache.hadoop.hbase.exceptions.MasterStoppedException":         ClassReconnect,
	"org.apache.hadoop.hbase.MasterNotRunningException":                 ClassReconnect,
	"org.apache.hadoop.hbase.NotAllMetaRegionsOnlineException":          ClassReconnect,
	"org.apache.hadoop.hbase.ipc.FatalConnectionException":              ClassReconnect,
	"org.apache.hadoop.hbase.ipc.ServerNotRunningYetException":          ClassReconnect,
	"org.apache.hadoop.hbase.regionserver.RegionServerAbortedException": ClassReconnect,
	"org.apache.hadoop.hbase.regionserver.RegionServerStoppedException": ClassReconnect,

	"org.apache.hadoop.hbase.UnknownScannerException":                   ClassReopen,
	"org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException": ClassReopen,
	"org.apache.hadoop.hbase.exceptions.ScannerResetException":          ClassReopen,
	"org.apache.hadoop.hbase.regionserver.LeaseException":               ClassReopen,

	// The server has already executed a mutation with this nonce.
	"org.apache.hadoop.hbase.exceptions.OperationConflictException": ClassDone,

	"org.apache.hadoop.hbase.DoNotRetryIOException":                    ClassFatal,
	"org.apache.hadoop.hbase.InvalidFamilyOperationException":          ClassFatal,
	"org.apache.hadoop.hbase.NamespaceNotFoundException":               ClassFatal,
	"org.apache.hadoop.hbase.TableExistsException":                     ClassFatal,
	"org.apache.hadoop.hbase.TableNotEnabledException":                 ClassFatal,
	"org.apache.hadoop.hbase.TableNotFoundException":                   ClassFatal,
	"org.apache.hadoop.hbase.exceptions.FailedSanityCheckException":    ClassFatal,
	"org.apache.hadoop.hbase.exceptions.UnknownProtocolException":      ClassFatal,
	"org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException": ClassFatal,
	"org.apache.hadoop.hbase.quotas.QuotaExceededException":            ClassFatal,
	"org.apache.hadoop.hbase.quotas.SpaceLimitingException":            ClassFatal,
	accessDenied: ClassFatal,
	"org.apache.hadoop.hbase.ipc.UnsupportedCellCodecException":                         ClassFatal,
	"org.apache.hadoop.hbase.ipc.UnsupportedCompressionCodecException":                  ClassFatal,
	"org.apache.hadoop.hbase.ipc.RpcServer$CallTooBigException":                         ClassFatal,
	"java.lang.IllegalArgumentException":                                                ClassFatal,
	unknownMethod:                                                                       ClassFatal,
	"org.apache.hadoop.hbase.shaded.com.google.protobuf.InvalidProtocolBufferException": ClassFatal,
}

// javaPrefix comes before the class name in gohbase's errors.
const javaPrefix = "HBase Java exception "

// cutException returns the class and the stack trace of the server's exception that a gohbase error is made
// of; ok is false for other errors.
func cutException(err error) (class, stack string, ok bool) {
	_, rest, ok := strings.Cut(err.Error(), javaPrefix)
	if !ok {
		return "", "", false
	}
	class, stack, _ = strings.Cut(rest, ":")
	return class, stack, true
}

// JavaError is a server's exception as callers see it: class and message, without
// the stack trace of some thirty lines.
type JavaError struct {
	Class, Message string
}

func (e *JavaError) Error() string { return e.Class + ": " + e.Message }

// NewJavaError makes the error of an exception of a class with a stack trace, whose first line is
// "class: message". A long message is cut: some describe a whole table. If the message is that the server
// lacks the method, the class is unknownMethod; if it denies access, it begins with the right that is lacking.
func NewJavaError(class, stack string) *JavaError {
	message, _, _ := strings.Cut(strings.TrimSpace(stack), "\n")
	message = strings.TrimPrefix(message, class+": ")
	if method, ok := methodLacked(class, message); ok {
		return &JavaError{unknownMethod, method}
	}
	if class == accessDenied {
		return &JavaError{class, deniedMessage(message)}
	}
	return &JavaError{class, cut(message)}
}

// cut returns the first 200 bytes of a message, as far as it has them.
func cut(message string) string {
	const most = 200
	if len(message) > most {
		return message[:most] + "…"
	}
	return message
}

// unknownMethod is the exception of a server that does not have the method of a call.
const unknownMethod = "java.lang.UnsupportedOperationException"

// methodLacked returns the method that a server does not have. Servers report that in the text of
// another exception, here the master of HBase 1.7.2:
//
//	org.apache.hadoop.hbase.DoNotRetryIOException: /10.0.0.1:16000 is unable to read call parameter
//	from client 10.0.0.2; java.lang.UnsupportedOperationException: GetActiveMaster
//
// Source: RpcServer of HBase 1, ServerRpcConnection of HBase 2.
func methodLacked(class, message string) (method string, ok bool) {
	if class != "org.apache.hadoop.hbase.DoNotRetryIOException" {
		return "", false
	}
	_, method, ok = strings.Cut(message, "; "+unknownMethod+": ")
	return method, ok
}

// LacksMethod reports whether a server does not have the method of a call.
func LacksMethod(err error) bool {
	java := (*JavaError)(nil)
	return err != nil && errors.As(WithoutStack(err), &java) && java.Class == unknownMethod
}

// WithoutStack turns a gohbase error into a JavaError; it returns other errors unchanged.
func WithoutStack(err error) error {
	class, stack, ok := cutException(err)
	if !ok {
		return err
	}
	return NewJavaError(class, stack)
}

// fault is an error of one of our own steps around a call, and says its class itself.
type fault struct {
	class RetryClass
	text  string
}

// NewFault makes an error of a class, to be compared with errors.Is.
func NewFault(class RetryClass, text string) error { return &fault{class, text} }

func (f *fault) Error() string { return f.text }

// Classify returns the retry class of the error of a failed call: ClassUnknown if nothing is known of it.
func Classify(err error) RetryClass {
	var (
		lost  *LostError
		dial  *dialError
		java  *JavaError
		known *fault
	)

	switch {
	case errors.As(err, &java):
		return javaRetryClasses[java.Class]
	case errors.As(err, &lost), errors.As(err, &dial):
		return ClassReconnect
	case errors.As(err, &known):
		return known.class
	case errors.Is(err, store.ErrNoTable), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrUnavailable):
		// ErrUnavailable comes from an inner operation that has retried itself.
		return ClassFatal
	}

	return classifyGohbase(err)
}

// classifyGohbase goes by the exception class if it is listed, else by the type
// that gohbase gave to the error.
func classifyGohbase(err error) RetryClass {
	name, _, _ := cutException(err)
	if class := javaRetryClasses[name]; class != ClassUnknown {
		return class
	}
	switch err.(type) {
	case region.NotServingRegionError:
		return ClassRelocate
	case region.ServerError:
		return ClassReconnect
	case region.RetryableError:
		return ClassRetry
	}
	return ClassUnknown
}
