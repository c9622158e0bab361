package httpapi

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"downpour/gateway/api/pace"
)

// withBodyPace reads each request's body within the limits of package pace: a
// client may take long to send it, but one that stops, or sends a byte now and
// then, would hold its request for ever. The server itself bounds only headers,
// for a bound on whole requests would also end those that take long to answer.
func (a *API) withBodyPace(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			b := &sentBody{ReadCloser: r.Body, control: http.NewResponseController(w), meter: pace.Meter{Limits: a.Pace}}
			b.wait(time.Now()) // for the rest of a body that no handler reads, too
			r.Body = b
		}
		h.ServeHTTP(w, r)
	})
}

// sentBody is a body as its client sends it.
type sentBody struct {
	io.ReadCloser
	control *http.ResponseController
	meter   pace.Meter
	ended   bool
}

// wait lets the next read wait for as long as the client has.
func (b *sentBody) wait(from time.Time) {
	// Writers of tests have no deadlines.
	_ = b.control.SetReadDeadline(from.Add(b.meter.Left(from)))
}

// Read waits for bytes; the error of one that waits too long is an
// os.ErrDeadlineExceeded.
func (b *sentBody) Read(p []byte) (n int, err error) {
	// Behind the end the server itself reads on, without a deadline, to notice
	// that the client leaves: one of ours would look like that.
	if b.ended {
		return 0, io.EOF
	}
	from := time.Now()
	b.wait(from)
	n, err = b.ReadCloser.Read(p)
	slow := b.meter.Waited(from, time.Now(), n)
	if errors.Is(err, os.ErrDeadlineExceeded) && slow != nil {
		err = slow
	}
	b.ended = err == io.EOF
	return n, err
}
