package putroutes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/jackson"
	"downpour/gateway/java"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
)

// Limits of one put.
const (
	maxPoints = 100_000
	maxBody   = 32 << 20 // decoded bytes
)

// dataPoint is one point of a put body. Source: IncomingDataPoint.
type dataPoint struct {
	Metric    string            `json:"metric"`
	Timestamp timestamp         `json:"timestamp"`
	Value     string            `json:"value"`
	Tags      map[string]string `json:"tags"`
}

// point returns the point for the writer. It checks the parts whose errors have OpenTSDB's own
// texts; the writer validates the rest.
func (d *dataPoint) point() (*write.Point, error) {
	if d.Metric == "" {
		return nil, write.ErrNoMetric
	}
	t := d.Timestamp.time()
	if t <= 0 {
		return nil, write.ErrTimestamp
	}
	v, err := write.ParseValue(d.Value)
	if err != nil {
		return nil, err
	}

	return &write.Point{Metric: d.Metric, Tags: sortedTags(d.Tags), Time: t, Value: v}, nil
}

// sortedTags returns tags in the order of their keys, so that the same body always gets
// the same UIDs and errors.
func sortedTags(tags map[string]string) []write.Tag {
	sorted := make([]write.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		sorted = append(sorted, write.Tag{K: k, V: tags[k]})
	}
	return sorted
}

// timestamp is a time as received. An invalid time refuses only its point, not the whole body as in
// OpenTSDB.
type timestamp jackson.Token

// UnmarshalJackson keeps the token of a scalar.
func (s *timestamp) UnmarshalJackson(_ *jackson.Reader, t jackson.Token) error {
	*s = timestamp(t)
	_, err := t.AsText()
	return err
}

// time returns the time, whose fraction is cut off; 0 if it is none.
func (s timestamp) time() int64 {
	t, err := jackson.Token(s).AsLong()
	if err != nil {
		return 0
	}
	return t
}

// MarshalJSON shows the time, or the text that is none.
func (s timestamp) MarshalJSON() ([]byte, error) {
	t, err := jackson.Token(s).AsLong()
	if err != nil {
		return json.Marshal(s.Text)
	}
	return strconv.AppendInt(nil, t, 10), nil
}

// echo is a refused point as the parameter details shows it.
type echo struct {
	Metric    string            `json:"metric"`
	Timestamp timestamp         `json:"timestamp"`
	Value     string            `json:"value"`
	Tags      map[string]string `json:"tags"`
}

type pointError struct {
	Datapoint any    `json:"datapoint"`
	Error     string `json:"error"`
}

// refused is a point, a rollup or a histogram that is not stored.
type refused interface {
	// echo is what the parameter details shows of it.
	echo() any
}

func (d *dataPoint) echo() any { return echo(*d) }

// putResult is the outcome of one request. Its exported fields are the answer that
// the parameters summary and details ask for.
type putResult struct {
	Success  int           `json:"success"`
	Failed   int           `json:"failed"`
	Timeouts *int          `json:"timeouts,omitempty"`
	Errors   *[]pointError `json:"errors,omitempty"`

	errors  []pointError
	invalid bool  // a point was refused by validation
	late    int   // points not known to be stored when sync_timeout was over
	storage error // of the last point that the store has not taken
	reasons []refusedFor
}

// refusedFor are the points of a request that were refused by one reason.
type refusedFor struct {
	reason  string // see write.Reason
	points  int
	err     error   // of the first
	example refused // the first
}

// addReason counts a refused point for the log. Reasons are few.
func (p *putResult) addReason(reason string, d refused, err error) {
	for i := range p.reasons {
		if p.reasons[i].reason == reason {
			p.reasons[i].points++
			return
		}
	}
	p.reasons = append(p.reasons, refusedFor{reason, 1, err, d})
}

// addFailed records a point that is not stored.
func (p *putResult) addFailed(d refused, err error) {
	p.Failed++
	p.addError(d, err, write.Reason(err))
}

func (p *putResult) addError(d refused, err error, reason string) {
	p.errors = append(p.errors, pointError{d.echo(), err.Error()})
	p.addReason(reason, d, err)
}

// addUnstored records a point that the store has not accepted, or not within sync_timeout: then it is
// unknown whether it is stored.
func (p *putResult) addUnstored(ctx context.Context, d refused, err error) {
	if context.Cause(ctx) == errSyncTimeout {
		p.late++
		p.addError(d, errLate, "sync_timeout")
		return
	}
	if late := (*httpio.WriteTimeError)(nil); errors.As(context.Cause(ctx), &late) {
		err = late
	}
	p.storage = err
	p.addFailed(d, fmt.Errorf("Storage exception: %w", err))
}

// put handles /api/put. It answers with success once the points are durable.
// Source: PutDataPointRpc.execute.
func (h *Handlers) put(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, writingBytes)
	if err != nil {
		return h.unread(r, err)
	}
	points, err := readPoints(r.Context(), body)
	if err != nil {
		return h.unread(r, err)
	}
	defer points.free()
	return h.storeAndAnswer(w, r, func(ctx context.Context) *putResult { return h.store(ctx, points) })
}

// readBody reads the body of a POST, and reserves bytesEach bytes of memory for each byte of
// it.
func readBody(w http.ResponseWriter, r *http.Request, bytesEach int64) ([]byte, error) {
	if r.Method != http.MethodPost {
		return nil, httpio.MethodNotAllowed(r.Method)
	}
	body, err := httpio.ReadBodyUpTo(w, r, maxBody)
	if err != nil {
		return nil, err
	}
	return body, memory.Reserve(r.Context(), int64(len(body))*bytesEach)
}

// storeAndAnswer stores what a request has brought, at most for as long as its client waits,
// and answers what became of it.
func (h *Handlers) storeAndAnswer(w http.ResponseWriter, r *http.Request,
	store func(context.Context) *putResult) error {
	ctx, cancel, err := syncContext(r)
	if err != nil {
		return err
	}
	defer cancel()
	res := store(ctx)
	h.logRefused(r, res)
	return answerPut(w, r, res)
}

// Approximate bytes of memory that are needed for each byte of a body.
const (
	writingBytes = 2 // while its points are written
	decodedBytes = 8 // by jackson, which makes a map of each point's tags
)

// errLate is the error of a point whose storing was not confirmed in time.
var errLate = errors.New("Write timedout")

// errSyncTimeout ends the wait for points, which may be stored nevertheless.
var errSyncTimeout = errors.New("sync_timeout")

// syncContext returns how long a put waits: as long as the client does, or, with
// the parameter sync, for sync_timeout milliseconds.
func syncContext(r *http.Request) (context.Context, context.CancelFunc, error) {
	q := r.URL.Query()
	text := httpio.LastValue(r, "sync_timeout")
	if text == "" || text == "0" || !q.Has("sync") { // 0 is no bound, as in OpenTSDB
		return r.Context(), func() {}, nil
	}
	ms, err := java.ParseInt(text)
	if err != nil || ms < 0 {
		return nil, nil, httpio.BadRequest("Unable to parse 'sync_timeout' as a number of milliseconds: %s", text)
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), time.Duration(ms)*time.Millisecond, errSyncTimeout)
	return ctx, cancel, nil
}

// readDecoded reads the body of a POST that no scanner reads.
func readDecoded[T any](w http.ResponseWriter, r *http.Request) ([]T, error) {
	body, err := readBody(w, r, writingBytes+decodedBytes)
	if err != nil {
		return nil, err
	}
	return decodePoints[T](trim(body))
}

// trim cuts off what String.trim does.
func trim(body []byte) []byte { return bytes.TrimFunc(body, func(r rune) bool { return r <= ' ' }) }

// decodePoints decodes a body, which has no blanks at its ends: one or a
// list of points, rollups or histograms.
func decodePoints[T any](body []byte) ([]T, error) {
	if len(body) == 0 {
		return nil, httpio.BadRequest("Missing request content")
	}

	points, err := readList[T](body)
	var answer *httpio.Error
	switch {
	case errors.As(err, &answer): // too many points
		return nil, answer
	case err != nil:
		return nil, httpio.UnreadableJSON(err)
	case len(points) == 0:
		return nil, httpio.BadRequest("No datapoints found in content")
	}
	return points, nil
}

// readList reads point by point, so that a list of too many points is refused before all of it
// is in memory.
func readList[T any](body []byte) (points []T, err error) {
	r := jackson.NewReader(body)
	add := func(t jackson.Token) error {
		if len(points) == maxPoints {
			return &httpio.Error{
				Code:    http.StatusRequestEntityTooLarge,
				Message: fmt.Sprintf("More than %d data points in one request", maxPoints),
			}
		}
		points = append(points, *new(T))
		return r.Decode(t, &points[len(points)-1])
	}

	switch t, e := r.Next(); {
	case e != nil:
		return nil, e
	case t.Kind == jackson.List:
		err = r.EachElement(t, add)
	case t.Kind == jackson.Object:
		err = add(t)
	default:
		return nil, httpio.BadRequest("The JSON must start as an object or an array")
	}
	if err == nil {
		err = r.End()
	}
	return points, err
}

// answerPut answers in the form of the parameters details, summary and sync. Without them success
// is 204: some collectors resend everything after any other status. With details or summary, and
// sync, only the body reports points that the store has not accepted.
func answerPut(w http.ResponseWriter, r *http.Request, res *putResult) error {
	q := r.URL.Query()
	details, summary := q.Has("details"), q.Has("summary")
	if !details && !summary {
		return answerPlainPut(w, res)
	}

	if details {
		if res.errors == nil {
			res.errors = []pointError{} // in JSON a list, not null
		}
		res.Errors = &res.errors
	}
	if res.late > 0 {
		res.Timeouts = &res.late
	}

	code := http.StatusOK
	switch {
	case res.late > 0:
		code = http.StatusBadRequest
	case res.storage != nil && !q.Has("sync"):
		code = http.StatusServiceUnavailable
		httpio.SetRetryAfter(w)
	case res.invalid:
		code = http.StatusBadRequest
	}
	return httpio.WriteJSON(w, r, code, res)
}

// answerPlainPut answers a request without details and summary.
func answerPlainPut(w http.ResponseWriter, res *putResult) error {
	switch {
	case res.late > 0:
		return &httpio.Error{
			Code: http.StatusBadRequest,
			Message: fmt.Sprintf(
				"The put call has timedout with %d successful writes, %d failed writes and %d timed out writes.",
				res.Success, res.Failed, res.late),
			Details: "Please see the TSD logs or append \"details\" to the put request",
		}
	case res.storage != nil:
		return &httpio.Error{Code: http.StatusServiceUnavailable, Message: "Storage exception: " + res.storage.Error(),
			Details: fmt.Sprintf("%d data points stored, %d not", res.Success, res.Failed)}
	case res.Failed > 0:
		return &httpio.Error{Code: http.StatusBadRequest, Message: "One or more data points had errors",
			Details: "Please see the TSD logs or append \"details\" to the put request"}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
