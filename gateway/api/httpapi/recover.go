package httpapi

import (
	"bufio"
	"net"
	"net/http"
	"runtime/debug"

	"downpour/gateway/api/httpapi/httpio"
)

// recovered keeps the process alive when a handler panics. Nothing was sent yet:
// the answer is a 500. Otherwise the connection is cut, so that nobody takes the
// beginning of an answer for the whole.
func (a *API) recovered(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := &beginning{ResponseWriter: w, control: http.NewResponseController(w)}
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			a.Log.Error("a handler panicked", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			if began.began {
				panic(http.ErrAbortHandler)
			}
			httpio.WriteError(w, r, a.Log, &httpio.Error{Code: http.StatusInternalServerError, Message: "Internal error"})
		}()
		h.ServeHTTP(began, r)
	})
}

// beginning notes that an answer has begun.
type beginning struct {
	http.ResponseWriter
	control *http.ResponseController
	began   bool
}

// WriteHeader notes and passes on.
func (b *beginning) WriteHeader(status int) {
	b.began = true
	b.ResponseWriter.WriteHeader(status)
}

// Write notes and passes on.
func (b *beginning) Write(p []byte) (int, error) {
	b.began = true
	return b.ResponseWriter.Write(p)
}

// Flush sends what was written, for answers that come bit by bit.
func (b *beginning) Flush() {
	b.began = true
	// Writers of tests cannot.
	_ = b.control.Flush()
}

// Hijack hands the connection to a WebSocket.
func (b *beginning) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	b.began = true
	return b.control.Hijack()
}

// Unwrap is for http.ResponseController.
func (b *beginning) Unwrap() http.ResponseWriter { return b.ResponseWriter }
