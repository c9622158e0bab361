package httpapi

import (
	"bufio"
	"cmp"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"

	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
)

// recovered keeps the process alive when a handler panics. If nothing was sent yet the
// answer is a 500. Otherwise the connection is cut, so that the beginning of an answer
// is not mistaken for the whole. How an administrative request ended is logged.
func (a *API) recovered(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := &beginRecorder{ResponseWriter: w, control: http.NewResponseController(w)}
		r = access.WithAudit(r)
		defer func() { a.Guard.AuditEnd(r, began.outcome()) }()
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				began.cut = true
				panic(v) // not a fault: net/http then cuts the connection
			}

			a.Log.Error("a handler panicked", "path", r.URL.Path, "request", httpio.RequestID(r.Context()), "panic", v,
				"stack", string(debug.Stack()))
			if began.began {
				began.cut = true
				panic(http.ErrAbortHandler)
			}
			httpio.WriteError(w, r, a.Log,
				&httpio.Error{
					Code:    http.StatusInternalServerError,
					Message: "Internal error",
					Request: httpio.RequestID(r.Context()),
				})
		}()
		h.ServeHTTP(began, r)
	})
}

// beginRecorder is a response writer that records whether the answer has begun.
type beginRecorder struct {
	http.ResponseWriter
	control *http.ResponseController
	began   bool
	status  int  // 0 as long as it is that of an answer without one, 200
	cut     bool // the connection is cut before the end of the answer
}

// outcome is how the answer ended.
func (b *beginRecorder) outcome() string {
	if b.cut {
		return "cut"
	}
	return strconv.Itoa(cmp.Or(b.status, http.StatusOK))
}

// WriteHeader records the beginning and passes on.
func (b *beginRecorder) WriteHeader(status int) {
	b.began = true
	if b.status == 0 && status >= http.StatusOK { // others are not the answer's
		b.status = status
	}
	b.ResponseWriter.WriteHeader(status)
}

// Write records the beginning and passes on.
func (b *beginRecorder) Write(p []byte) (int, error) {
	b.began = true
	return b.ResponseWriter.Write(p)
}

// Flush sends what was written, for answers that are streamed.
func (b *beginRecorder) Flush() {
	b.began = true
	// Fails for the writers of tests.
	_ = b.control.Flush()
}

// Hijack passes the connection to a WebSocket.
func (b *beginRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	b.began = true
	return b.control.Hijack()
}

// Unwrap is for http.ResponseController.
func (b *beginRecorder) Unwrap() http.ResponseWriter { return b.ResponseWriter }
