package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"downpour/gateway/api/httpapi/httpio"
)

// slowBody is a body that comes in pieces, with a pause before each.
type slowBody struct {
	pieces int
	pause  time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	time.Sleep(b.pause)
	if b.pieces--; b.pieces < 0 {
		return 0, io.EOF
	}
	p[0] = 'x'
	return 1, nil
}

func (*slowBody) Close() error { return nil }

// Only what a request does after its body has come counts, and only of requests that may write.
func TestWriteTime(t *testing.T) {
	store := func(r *http.Request) error { <-r.Context().Done(); return r.Context().Err() }
	for _, c := range []struct {
		name, method string
		body         io.ReadCloser
		own          bool
		ends         time.Duration // 0: not by the time of writes
	}{
		{"no body", "POST", http.NoBody, false, 30 * time.Second},
		{"a body", "POST", &slowBody{1, time.Second}, false, 32 * time.Second},
		{"a slow body", "PUT", &slowBody{10, 20 * time.Second}, false, 250 * time.Second},
		{"a verb that reads", "GET", http.NoBody, false, 0},
		{"a time of its own", "POST", http.NoBody, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &API{WriteTime: 30 * time.Second}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			r := httptest.NewRequest(c.method, "/api/put", c.body).WithContext(ctx)
			r.Body = c.body
			err := a.withinWriteTime(httpio.Endpoint{
				Reads:   httpio.Get,
				OwnTime: c.own,
				Serve: func(_ http.ResponseWriter, r *http.Request) error {
					if _, err := io.ReadAll(r.Body); err != nil {
						t.Error(err)
					}
					return store(r)
				},
			}, httptest.NewRecorder(), r)

			var late *httpio.WriteTimeError
			if got, want := errors.As(err, &late), c.ends > 0; got != want {
				t.Errorf("%s: got the error %v, want that of the time of writes: %v", c.name, err, want)
			}
			if took := time.Since(began); c.ends > 0 && took != c.ends {
				t.Errorf("%s: ended after %v, want %v", c.name, took, c.ends)
			}
		})
	}
}

// An answer that was found just before the time was over is given as it is.
func TestWriteTime_answerStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &API{WriteTime: time.Second}
		r := httptest.NewRequest("POST", "/api/put", http.NoBody)
		err := a.withinWriteTime(httpio.Endpoint{Serve: func(http.ResponseWriter, *http.Request) error {
			time.Sleep(2 * time.Second)
			return httpio.BadRequest("no such thing")
		}}, httptest.NewRecorder(), r)
		if got := httpio.Classify(err).Code; got != http.StatusBadRequest {
			t.Errorf("got %d, want 400", got)
		}
	})
}
