package httpio

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"downpour/encoding/scanplan"
	"downpour/gateway/metadata/annotation"
	"downpour/gateway/metadata/last"
	"downpour/gateway/metadata/lookup"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/uid"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Classify turns any error into the answer that HTTP gives for it. It is the one
// place where a fault becomes an HTTP status; WebSockets use it too.
func Classify(err error) *Error {
	// It comes together with the store's error at that time.
	var late *WriteTimeError
	if errors.As(err, &late) {
		return &Error{Code: http.StatusServiceUnavailable, Message: "The write has taken too long: " + late.Error()}
	}
	if e := classifyQuery(err); e != nil {
		return e
	}
	if e := classifyMetadata(err); e != nil {
		return e
	}

	var answer *Error
	var tooLarge *http.MaxBytesError
	var busy *uid.BusyError
	switch {
	case errors.As(err, &answer):
		return answer
	case errors.As(err, &tooLarge):
		return &Error{
			Code:    http.StatusRequestEntityTooLarge,
			Message: fmt.Sprintf("Request body of more than %d bytes", tooLarge.Limit),
		}
	case errors.Is(err, uid.ErrTooLong):
		return &Error{Code: http.StatusRequestEntityTooLarge, Message: err.Error()}
	case errors.As(err, &busy):
		return &Error{Code: http.StatusServiceUnavailable, Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut("the deadline passed before the answer was complete")
	// As in OpenTSDB, an error of HBase is 424. The gateway's own temporary refusals are 503.
	case errors.Is(err, store.ErrNoTable), errors.Is(err, store.ErrDenied), errors.Is(err, store.ErrRefused):
		return &Error{Code: http.StatusFailedDependency, Message: err.Error()}
	case errors.Is(err, store.ErrDamaged):
		return &Error{Code: http.StatusInternalServerError, Message: err.Error()}
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrStalled):
		return &Error{Code: http.StatusServiceUnavailable, Message: err.Error()}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		return &Error{Code: http.StatusFailedDependency, Message: "HBase is not reachable: " + err.Error()}
	}
	// As in OpenTSDB, what fails while a query runs is the query's fault:
	// duplicates, infinities, corrupt rows.
	return &Error{Code: http.StatusBadRequest, Message: err.Error(), Details: err.Error()}
}

// classifyQuery classifies the errors of running a query; nil for others.
func classifyQuery(err error) *Error {
	var parse *query.Error
	var unknown *query.UnknownNameError
	var missing *dispatch.IncompleteError
	var merged *merge.MemoryError
	var limit *operator.LimitError
	var large *memory.LimitError
	var busy *memory.BusyError
	var fault *operator.PanicError
	switch {
	// Before errors that may wrap it. The panic's value is only for the log.
	case errors.As(err, &fault):
		return &Error{
			Code: http.StatusInternalServerError,
			Message: "A part of the query failed by a fault of the program, not of the data; the log has the part " +
				"and where it was",
		}
	case errors.As(err, &unknown):
		return &Error{Code: http.StatusBadRequest, Message: unknown.Error(), Details: unknown.Error(),
			Suggestions: unknown.Near}
	case errors.As(err, &parse):
		return &Error{Code: parse.Status, Message: parse.Message, Details: parse.Details}
	case errors.As(err, &missing):
		e := &Error{Code: http.StatusServiceUnavailable, Message: "The answer is incomplete: " + err.Error()}
		e.Missing = HexRanges(missing.Ranges)
		return e
	case errors.As(err, &limit):
		return overLimit(limit)
	case errors.As(err, &merged):
		return overLimit(&operator.LimitError{What: operator.Memory, Limit: merged.Limit, Need: merged.Need})
	case errors.As(err, &large):
		return TooLarge("Sorry, this request needs more memory than one request may have: "+large.Error()+". "+Advice,
			"DOWNPOUR_MEMORY", large.Limit)
	case errors.As(err, &busy):
		return &Error{
			Code:    http.StatusServiceUnavailable,
			Message: "Sorry, other requests hold the memory: " + busy.Error(),
			Details: fmt.Sprintf("The limit is DOWNPOUR_MEMORY, for this process %d; please try again", busy.Total),
		}
	case errors.Is(err, dispatch.ErrDeadline):
		return TimedOut(err.Error())
	case errors.Is(err, dispatch.ErrUnreachable):
		return &Error{Code: http.StatusFailedDependency, Message: err.Error()}
	}
	return nil
}

// classifyMetadata classifies the errors of metadata, annotations and lookups;
// nil for others.
func classifyMetadata(err error) *Error {
	var note *annotation.RefusedError
	var newest *last.RefusedError
	var width *meta.WidthError
	var many lookup.TooManyError
	var noID *uid.NoSuchIDError
	switch {
	case errors.As(err, &note), errors.As(err, &newest), errors.As(err, &width), errors.Is(err, annotation.ErrNoStart),
		errors.Is(err, meta.ErrNoTSMeta):
		return &Error{Code: http.StatusBadRequest, Message: err.Error(), Details: err.Error()}
	case errors.As(err, &many):
		return &Error{Code: http.StatusRequestEntityTooLarge, Message: err.Error()}
	case errors.As(err, &noID):
		return &Error{Code: http.StatusNotFound, Message: "Could not find the requested UID", Details: err.Error()}
	}
	return nil
}

// Advice ends OpenTSDB's refusals of queries that need too much.
// Source: SaltScanner, where it applies the limits.
const Advice = "Please try filtering using more tags or decrease your time range."

// overLimit is the answer to a query that needs too much. The text is OpenTSDB's
// where it has one; the details name the limit and its setting.
func overLimit(e *operator.LimitError) *Error {
	switch e.What {
	case operator.Points:
		return TooLarge(fmt.Sprintf("Sorry, you have attempted to fetch more than our limit of %d data points. %s",
			e.Limit, Advice),
			"DOWNPOUR_LIMIT_POINTS (tsd.query.limits.data_points.default)", e.Limit)
	case operator.Bytes:
		return TooLarge(
			fmt.Sprintf("Sorry, you have attempted to fetch more than our maximum amount of %sMB from storage. %s",
				megabytes(e.Limit), Advice),
			"DOWNPOUR_LIMIT_BYTES (tsd.query.limits.bytes.default)", e.Limit)
	case operator.Queries:
		return &Error{
			Code:    http.StatusServiceUnavailable,
			Message: "Sorry, too many heavy queries are running: " + e.Error(),
			Details: fmt.Sprintf(
				"The limit is DOWNPOUR_HEAVY_QUERIES, now %d; heavy is what has read DOWNPOUR_HEAVY_POINTS", e.Limit),
		}
	}
	// operator.Memory or operator.States: bytes that the query holds, not those that it reads.
	return TooLarge("Sorry, this query needs more memory than one query may have: "+e.Error(), "DOWNPOUR_LIMIT_MEMORY",
		e.Limit)
}

// TooLarge refuses a request that goes over the limit of a setting.
func TooLarge(message, setting string, limit int64) *Error {
	return &Error{Code: http.StatusRequestEntityTooLarge, Message: message,
		Details: fmt.Sprintf("The limit is %s, for this query %d", setting, limit)}
}

// megabytes writes a limit as OpenTSDB does, which has whole megabytes; a
// smaller limit of ours gets a fraction.
func megabytes(n int64) string {
	if n >= 1<<20 {
		return strconv.FormatInt(n>>20, 10)
	}
	return strconv.FormatFloat(float64(n)/(1<<20), 'g', -1, 64)
}

// TimedOut is the answer to a query that takes too long.
func TimedOut(reason string) *Error {
	return &Error{Code: http.StatusRequestTimeout, Message: "Query timeout exceeded: " + reason,
		Details: "The limit is DOWNPOUR_QUERY_TIMEOUT (tsd.query.timeout)"}
}

// HexRanges returns key ranges as answers show them: start and stop key in hex.
func HexRanges(ranges []scanplan.KeyRange) (out [][2]string) {
	for _, r := range ranges {
		out = append(out, [2]string{hex.EncodeToString(r.Start), hex.EncodeToString(r.Stop)})
	}
	return out
}
