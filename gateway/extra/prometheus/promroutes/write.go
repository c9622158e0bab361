package promroutes

import (
	"fmt"
	"net/http"
	"strings"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/prometheus/intake"
	"downpour/gateway/extra/prometheus/remote"
	"downpour/gateway/extra/prometheus/remotewrite"
	"downpour/pushdown/process/memory"
)

// remoteWrite handles write: Prometheus' remote write. Prometheus sends a request again after any 5xx, and drops it
// after any 4xx; so 4xx is only for what would be refused again.
func (h *handlers) remoteWrite(w http.ResponseWriter, r *http.Request) error {
	err := h.takeWrite(w, r)
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	e := httpio.ErrorFor(w, r, h.log, err)
	code, text := e.Code, e.Message
	if e.Details != "" && e.Details != e.Message {
		text += ": " + e.Details
	}
	switch code {
	case http.StatusFailedDependency, http.StatusRequestTimeout: // it may be sent again
		code = http.StatusServiceUnavailable
		httpio.SetRetryAfter(w)
	}
	http.Error(w, strings.ReplaceAll(text, "\n", " "), code) // Prometheus logs the first line
	return nil
}

// takeWrite reads a request and stores its points.
func (h *handlers) takeWrite(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return httpio.MethodNotAllowed(r.Method)
	}
	of, err := readWrite(w, r)
	if err != nil {
		return h.intake.Unread(r, err)
	}
	out := h.intake.Take(r, of, nil)
	switch {
	case out.Unstored > 0:
		return &httpio.Error{Code: http.StatusServiceUnavailable, Message: unstored(out)}
	case out.Refused > 0:
		return httpio.BadRequest("%s", out.Text("samples"))
	}
	return nil
}

func unstored(out *intake.Outcome) string {
	return fmt.Sprintf("%d samples are not known to be stored, send the request again: %v", out.Unstored, out.Storage)
}

// readWrite reads the body.
func readWrite(w http.ResponseWriter, r *http.Request) (*remotewrite.Request, error) {
	if err := remotewrite.CheckType(r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding")); err != nil {
		return nil, &httpio.Error{Code: http.StatusUnsupportedMediaType, Message: err.Error()}
	}
	packed, err := readPacked(w, r, remotewrite.MaxBody)
	if err != nil {
		return nil, err
	}
	n, err := remote.UnpackedLen(packed)
	if err != nil {
		return nil, httpio.BadRequest("%s", err.Error())
	}
	if n > remotewrite.MaxBody {
		return nil, &httpio.Error{Code: http.StatusRequestEntityTooLarge,
			Message: fmt.Sprintf("the body unpacks to %d bytes, at most %d", n, remotewrite.MaxBody)}
	}
	// The body, and its points while they are written.
	reserve := func(bytes int64) error { return memory.Reserve(r.Context(), bytes) }
	if err := reserve(2 * int64(n)); err != nil {
		return nil, err
	}
	body, err := remote.Unpack(packed, remotewrite.MaxBody)
	if err != nil {
		return nil, httpio.BadRequest("%s", err.Error())
	}
	of, err := remotewrite.Parse(body, reserve)
	if err != nil && !memory.Refused(err) {
		return nil, httpio.BadRequest("%s", err.Error())
	}
	return of, err
}

// readPacked reads a body that is a snappy block.
func readPacked(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	plain := r.WithContext(r.Context())
	plain.Header = r.Header.Clone()
	plain.Header.Del("Content-Encoding") // it is always snappy, as a block
	return httpio.ReadBodyUpTo(w, plain, limit)
}
