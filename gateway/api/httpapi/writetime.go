package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"downpour/gateway/api/httpapi/httpio"
)

// withinWriteTime serves a request that may write, for at most WriteTime as a whole. Then it is
// answered with 503, so that clients send it again later: waiting requests hold memory, and most
// clients have given up by then.
func (a *API) withinWriteTime(e httpio.Endpoint, w http.ResponseWriter, r *http.Request) error {
	if a.WriteTime <= 0 || e.OwnTime || e.Reads.Contains(r) {
		return e.Serve(w, r)
	}

	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	late := &httpio.WriteTimeError{Limit: a.WriteTime}
	timer := time.AfterFunc(a.WriteTime, func() { end(late) })
	defer timer.Stop()

	r = r.WithContext(httpio.WithWriteTime(ctx))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &untimedBody{ReadCloser: r.Body, timer: timer, time: a.WriteTime}
	}
	err := e.Serve(w, r)

	// If the time is over, the client gets that as the error and not the store's.
	var worded *httpio.Error
	if err != nil && context.Cause(ctx) == error(late) && !errors.As(err, &worded) {
		return errors.Join(late, err)
	}
	return err
}

// untimedBody is a body that may come slowly: while it is read, the time of the request does not
// run. withBodyPace bounds how slowly it may come.
type untimedBody struct {
	io.ReadCloser
	timer *time.Timer
	time  time.Duration
}

func (b *untimedBody) Read(p []byte) (int, error) {
	if b.timer.Stop() { // else the time is over
		defer b.timer.Reset(b.time)
	}
	return b.ReadCloser.Read(p)
}
