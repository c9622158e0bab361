package httpio

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
)

// RequestIDHeader names the id of a request, in the request if a proxy or client has given one,
// and in the answer. The same id is in the gateway's log lines about the request, in its trace,
// and in the error object of a fault of the server.
const RequestIDHeader = "X-Request-Id"

// maxRequestID bounds an id that a client gives, in bytes.
const maxRequestID = 64

type knownKey struct{}

// known is what a request's context has about it.
type known struct {
	id   string
	body []byte // decoded, as ReadBody has returned it; nil before
}

// knownOf returns what is known of the request to which a context belongs, nil for none.
func knownOf(ctx context.Context) *known {
	k, _ := ctx.Value(knownKey{}).(*known)
	return k
}

// WithRequestID gives each request an id.
func WithRequestID(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(RequestIDHeader)
		if !validRequestID(id) {
			id = newRequestID()
		}
		w.Header().Set(RequestIDHeader, id)
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), knownKey{}, &known{id: id})))
	})
}

// RequestID returns the id of the request to which a context belongs, "" for none.
func RequestID(ctx context.Context) string {
	if k := knownOf(ctx); k != nil {
		return k.id
	}
	return ""
}

// newRequestID returns 16 hex digits: enough that no two requests of a day have the same.
func newRequestID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// validRequestID reports whether a client's id is adopted: only letters, digits, and - _ ., because
// it is in log lines and headers.
func validRequestID(id string) bool {
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return id != "" && len(id) <= maxRequestID
}
