package httpapi

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"downpour/gateway/api/pace"
)

// withBodyPace reads each request's body within the limits of package pace: a client
// may take long to send a body, but one that stops, or sends a byte now and then,
// would hold its request for ever. The HTTP server itself bounds only the headers'
// time, because a bound on whole requests would also end those that take long to
// answer.
func (a *API) withBodyPace(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			b := &sentBody{
				ReadCloser: r.Body,
				control:    http.NewResponseController(w),
				meter:      pace.Meter{Limits: a.Pace},
			}
			// Before any Read of b: the server reads the rest of a body that the handler leaves,
			// and does so below b.
			b.setDeadline(time.Now())
			r.Body = b
		}
		h.ServeHTTP(w, r)
	})
}

// sentBody is a body that must be sent within the limits.
type sentBody struct {
	io.ReadCloser
	control *http.ResponseController
	meter   pace.Meter
	ended   bool
}

// setDeadline lets the next read wait for the client's remaining time.
func (b *sentBody) setDeadline(from time.Time) {
	// Fails for the writers of tests.
	_ = b.control.SetReadDeadline(from.Add(b.meter.Left(from)))
}

// Read reads from the body. The error of a client that is too slow is an
// os.ErrDeadlineExceeded.
func (b *sentBody) Read(p []byte) (n int, err error) {
	// After the end of the body the server reads on, without a deadline, to notice
	// that the client leaves. A deadline set here would look like that.
	if b.ended {
		return 0, io.EOF
	}

	from := time.Now()
	b.setDeadline(from)
	n, err = b.ReadCloser.Read(p)
	slow := b.meter.Waited(from, time.Now(), n)
	// It was the deadline set above: slow is the exceeded limit.
	if errors.Is(err, os.ErrDeadlineExceeded) && slow != nil {
		err = slow
	}
	b.ended = err == io.EOF
	return n, err
}
