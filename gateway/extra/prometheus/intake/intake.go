// Package intake passes the points of one request of Prometheus or OpenTelemetry to the writer, and waits until they
// are durable. Bad points are counted by the reason, and cost no good ones. The package is between a protocol, which
// knows what its messages mean (Request), and the writer.
//
//	intake.go  a request to the writer, and what becomes of it
//	key.go     the names of a series
//
// A point is stored in milliseconds unless its time is a whole second, and a float in 8 bytes: a point that is sent
// again with another value overwrites the first.
package intake

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/admin/activity"
	"downpour/gateway/admin/putlog"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
)

// MaxBody bounds the bytes of a request, packed and unpacked.
const MaxBody = 32 << 20

// Request is the series of a request, with their points. Its methods may be called several times, and give the same.
type Request interface {
	// Series is how many series there are, and Points about how many points.
	Series() int
	Points() int
	// Spelling is what the request has for the names of series i: the same bytes are the same series in all requests of
	// the protocol. It is empty if there are no such bytes, and begins with no letter.
	Spelling(i int) []byte
	// Key sets k to the names of series i. The error refuses all its points.
	Key(i int, k *Key) error
	// Each calls yield with the points of series i until it returns false.
	Each(i int, yield func(Point) bool)
}

// Point is a point of a request.
type Point struct {
	Time  int64 // ms since 1970
	Value encoding.Value
	Err   error // why it is refused, by its protocol
}

// Outcome is what became of a request's points.
type Outcome struct {
	Stored  int
	LeftOut int // NaN, which tables do not hold
	Refused int
	Reasons []Reason // of the refused
	// Unstored are good points that the store has not taken, or not in time, and Storage is why. All may be sent again.
	Unstored int
	Storage  error
}

// Reason are points that were refused for one reason.
type Reason struct {
	Reason string // see write.Reason
	Points int
	Err    error  // of the first, with its series
	Series string // the first, as PromQL writes it
}

// Text says what was refused, in one line.
func (o *Outcome) Text(what string) string {
	var b strings.Builder
	all := o.Refused + o.Stored + o.LeftOut + o.Unstored
	fmt.Fprintf(&b, "%d of %d %s refused, %d stored", o.Refused, all, what, o.Stored)
	for i, r := range o.Reasons {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%d for %s, the first %s: %v", sep, r.Points, r.Reason, r.Series, r.Err)
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// Err is the error for good points that are not stored, nil if there are none.
func (o *Outcome) Err(what string) error {
	if o.Unstored == 0 {
		return nil
	}
	return &httpio.Error{Code: http.StatusServiceUnavailable, Message: fmt.Sprintf(
		"%d %s are not known to be stored, send the request again: %v", o.Unstored, what, o.Storage)}
}

// Status returns the status of a request that failed, and the reason in one line. Senders of both protocols send a
// request again after 503, and drop it after other errors.
func Status(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) (code int, why string) {
	e := httpio.ErrorFor(w, r, log, err)
	why = e.Message
	if e.Details != "" && e.Details != e.Message {
		why += ": " + e.Details
	}
	code = e.Code
	var large *memory.LimitError
	switch {
	case errors.As(err, &large): // the usual words are about queries
		why = fmt.Sprintf("%v (DOWNPOUR_MEMORY): send fewer points at a time", large)
	case code == http.StatusFailedDependency, code == http.StatusRequestTimeout: // the store is away, or slow
		code = http.StatusServiceUnavailable
		httpio.SetRetryAfter(w)
	}
	return code, strings.ReplaceAll(why, "\n", " ")
}

// Intake takes the requests of one protocol. All fields are set before the first.
type Intake struct {
	Writer  *write.Writer
	MaxTags int // of a series
	// Count counts points, LeftOut those that are left out, and Log gets those that are refused.
	Count   func(stored, refused int)
	LeftOut prometheus.Counter
	Log     *putlog.Log
}

// New returns the intake of a source.
func New(c *gateway.Core, source activity.Source) *Intake {
	in := &Intake{
		Writer:  c.Points,
		MaxTags: c.Config.Schema().MaxTags,
		Count:   func(stored, refused int) { c.CountPuts(source, stored, refused) },
		LeftOut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "downpour_put_left_out_points_total",
			Help: "Points without a number, such as Prometheus' stale markers, that were left out and not " +
				"refused, by source: remote_write or otlp.",
			ConstLabels: prometheus.Labels{"source": source.String()},
		}),
		Log: c.Refused,
	}
	c.Metrics.MustRegister(in.LeftOut)
	return in
}

// Take stores the points of a request, and counts and logs what became of them. It calls refused, if that is set, with
// the series of each point that is refused.
func (in *Intake) Take(r *http.Request, of Request, refused func(series int)) *Outcome {
	out := in.Store(r.Context(), of, refused)
	in.Count(out.Stored, out.Refused+out.Unstored)
	in.LeftOut.Add(float64(out.LeftOut))
	for _, reason := range out.Reasons {
		in.Log.Refused(putlog.Refusal{Client: r.RemoteAddr, Via: via(r), Reason: reason.Reason, Points: reason.Points,
			Err: reason.Err, Example: func() string { return reason.Series }})
	}
	if out.Unstored > 0 {
		in.Log.Refused(putlog.Refusal{Client: r.RemoteAddr, Via: via(r), Reason: write.Reason(out.Storage),
			Points: out.Unstored, Err: out.Storage})
	}
	return out
}

// Unread logs a request whose points could not be read, and returns the error.
func (in *Intake) Unread(r *http.Request, err error) error {
	in.Log.Refused(putlog.Refusal{Client: r.RemoteAddr, Via: via(r), Reason: "body", Err: err})
	return err
}

// Denied logs a request that may not put.
func (in *Intake) Denied(r *http.Request, err error) {
	in.Log.Refused(putlog.Refusal{Client: r.RemoteAddr, Via: via(r), Reason: "unauthorized", Err: err})
}

// via is the route of a request as the log shows it.
func via(r *http.Request) string { return "/" + httpio.Path(r) }

// taking is a request that is being taken.
type taking struct {
	*Intake
	of       Request
	out      *Outcome
	request  *write.RequestBatch
	resolver *write.Resolver
	key      Key
	prepared int // series before this one have had their names prepared
	pending  []pending
	refused  func(series int)
}

// pending are points in one batch.
type pending struct {
	batch  *write.Batch
	points int
}

// Store passes all points to the writer and waits until they are durable. It calls refused, if that is set, with the
// series of each point that is refused.
func (in *Intake) Store(ctx context.Context, of Request, refused func(series int)) *Outcome {
	t := &taking{Intake: in, of: of, out: &Outcome{}, request: in.Writer.RequestBatch(of.Points()), refused: refused}
	t.resolver = t.request.Resolver(write.NamesSpelling)
	// Other requests may wait for the added points: they must be written however this function
	// ends. Send does nothing the second time.
	defer t.request.Send()

	for i := range of.Series() {
		t.series(ctx, i)
	}
	t.request.Send()
	for _, p := range t.pending {
		if err := p.batch.Wait(ctx); err != nil { //fault:remote-write-not-waited-for TestRemoteWrite_durable
			t.unstored(ctx, p.points, err)
			continue
		}
		t.out.Stored += p.points
	}
	return t.out
}

// series adds the points of a series.
func (t *taking) series(ctx context.Context, i int) {
	key, err := t.resolve(ctx, i)
	t.of.Each(i, func(p Point) bool {
		switch {
		case p.Err == nil && p.Value.Float && math.IsNaN(p.Value.Double()):
			t.out.LeftOut++
		case err != nil:
			t.failed(ctx, i, err)
		default:
			if err := t.add(ctx, key, p); err != nil {
				t.failed(ctx, i, err)
			}
		}
		return true
	})
}

// errInfinite refuses an infinite value, as OpenTSDB does.
var errInfinite = fmt.Errorf("%w: OpenTSDB has no infinite values", write.ErrValue)

// add adds a point of a series to a batch.
func (t *taking) add(ctx context.Context, key *write.SeriesKey, p Point) error {
	if err := ctx.Err(); err != nil { // what is left is not awaited
		return err
	}
	if p.Err != nil {
		return p.Err
	}
	if p.Value.Float && math.IsInf(p.Value.Double(), 0) { //fault:infinite-sample-stored TestRemoteWrite_badNeighbours
		return errInfinite
	}
	at, err := timeOf(p.Time)
	if err != nil {
		return err
	}
	batch, err := t.request.AddTo(ctx, key, &write.Point{Time: at, Value: p.Value})
	if err != nil {
		return err
	}
	if last := len(t.pending) - 1; last >= 0 && t.pending[last].batch == batch {
		t.pending[last].points++
	} else {
		t.pending = append(t.pending, pending{batch, 1})
	}
	return nil
}

// timeOf returns a time in ms as OpenTSDB has it: in seconds if it is whole ones, else in ms. What is not more than 32
// bits would be taken for seconds.
func timeOf(ms int64) (int64, error) {
	switch {
	case ms > 0 && ms%1000 == 0:
		return ms / 1000, write.CheckTime(ms)
	case ms > 0 && !write.IsMillis(ms):
		return 0, fmt.Errorf("%w: got %d ms, want at least %d (1970-02-19T17:02:47.296Z), or whole seconds",
			write.ErrTimestamp, ms, int64(1)<<32)
	case ms <= 0:
		return 0, fmt.Errorf("%w: got %d ms, want one after 1970-01-01T00:00:00Z", write.ErrTimestamp, ms)
	}
	return ms, write.CheckTime(ms)
}

// failed records a point that is not stored.
func (t *taking) failed(ctx context.Context, i int, err error) {
	if write.IsStorage(err) || ctx.Err() != nil { //fault:good-sample-refused-for-ever TestRemoteWrite_durable
		// Once the request is over, errors are not the point's.
		t.unstored(ctx, 1, err)
		return
	}
	t.out.Refused++
	if t.refused != nil {
		t.refused(i)
	}
	reason := write.Reason(err)
	for k := range t.out.Reasons {
		if t.out.Reasons[k].Reason == reason {
			t.out.Reasons[k].Points++
			return
		}
	}
	_ = t.of.Key(i, &t.key) // as far as it goes
	t.out.Reasons = append(t.out.Reasons, Reason{reason, 1, err, shown(t.key.Bytes())})
}

// unstored records points that the store has not taken, or not in time.
func (t *taking) unstored(ctx context.Context, points int, err error) {
	if late := (*httpio.WriteTimeError)(nil); errors.As(context.Cause(ctx), &late) {
		err = late
	}
	t.out.Unstored += points
	t.out.Storage = err
}

// resolve returns series i. It is valid until the next call.
func (t *taking) resolve(ctx context.Context, i int) (*write.SeriesKey, error) {
	spelling := t.of.Spelling(i)
	if len(spelling) > 0 {
		if s, ok := t.resolver.Find(spelling); ok {
			return s, nil
		}
	}
	if err := t.names(i); err != nil {
		return nil, err
	}
	key := t.key.Bytes()
	if len(spelling) == 0 {
		if s, ok := t.resolver.Find(key); ok {
			return s, nil
		}
	}
	p, err := t.point(key)
	if err != nil {
		return nil, err
	}
	if i >= t.prepared {
		t.prepared = i + 1 + t.Writer.PrepareNames(ctx, p, t.following(i))
	}
	s, err := t.resolver.Resolve(ctx, p.Metric, p.Tags)
	if unknown := (*uid.NoSuchNameError)(nil); errors.As(err, &unknown) {
		return nil, fmt.Errorf("%w: new names of this kind get no UID (DOWNPOUR_AUTO_METRICS, _TAGKS, _TAGVS)", err)
	}
	return s, err
}

// names sets the key to that of series i.
func (t *taking) names(i int) error {
	if err := t.of.Key(i, &t.key); err != nil {
		return err
	}
	if n := t.key.Tags(); n > t.MaxTags {
		return fmt.Errorf("%d labels, at most %d (DOWNPOUR_MAX_TAGS)", n, t.MaxTags)
	}
	return nil
}

// point returns the names of a key, checked.
func (t *taking) point(key []byte) (*write.Point, error) {
	p := pointOf(key)
	p.Time = 1 // any: times are checked one by one
	for i, tag := range p.Tags {
		for _, other := range p.Tags[:i] {
			if other.K == tag.K {
				return nil, fmt.Errorf("the label %q is there twice", tag.K)
			}
		}
	}
	return p, t.Writer.Validate(p)
}

// following yields the names of the series behind series i, nil for one that will be refused.
func (t *taking) following(i int) iter.Seq[*write.Point] {
	var key Key
	return func(yield func(*write.Point) bool) {
		for i++; i < t.of.Series(); i++ {
			var p *write.Point
			err := t.of.Key(i, &key)
			if err == nil && key.Tags() <= t.MaxTags {
				if p, err = t.point(key.Bytes()); err != nil {
					p = nil
				}
			}
			if !yield(p) {
				return
			}
		}
	}
}
