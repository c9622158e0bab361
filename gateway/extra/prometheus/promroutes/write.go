package promroutes

import (
	"fmt"
	"net/http"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/prometheus/intake"
	"downpour/gateway/extra/prometheus/remote"
	"downpour/gateway/extra/prometheus/remotewrite"
	"downpour/pushdown/process/memory"
)

// remoteWrite handles write: Prometheus' remote write.
func (h *handlers) remoteWrite(w http.ResponseWriter, r *http.Request) error {
	if err := h.takeWrite(w, r); err != nil {
		code, why := intake.Status(w, r, h.log, err)
		http.Error(w, why, code) // Prometheus logs the first line
		return nil
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// takeWrite reads a request and stores its points. Some points may be stored though there is an error.
func (h *handlers) takeWrite(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return httpio.MethodNotAllowed(r.Method)
	}
	of, err := readWrite(w, r)
	if err != nil {
		return h.intake.Unread(r, err)
	}

	out := h.intake.Take(r, of, nil)
	if err := out.Err("samples"); err != nil {
		return err
	}
	if out.Refused > 0 {
		return httpio.BadRequest("%s", out.Text("samples"))
	}
	return nil
}

// readWrite reads the body.
func readWrite(w http.ResponseWriter, r *http.Request) (*remotewrite.Request, error) {
	if err := remotewrite.CheckType(r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding")); err != nil {
		return nil, &httpio.Error{Code: http.StatusUnsupportedMediaType, Message: err.Error()}
	}
	packed, err := readPacked(w, r, intake.MaxBody)
	if err != nil {
		return nil, err
	}
	n, err := remote.UnpackedLen(packed)
	if err != nil {
		return nil, httpio.BadRequest("%s", err.Error())
	}
	if n > intake.MaxBody {
		return nil, &httpio.Error{Code: http.StatusRequestEntityTooLarge,
			Message: fmt.Sprintf("the body unpacks to %d bytes, at most %d", n, intake.MaxBody)}
	}
	// The body, and its points while they are written.
	reserve := func(bytes int64) error { return memory.Reserve(r.Context(), bytes) }
	if err := reserve(2 * int64(n)); err != nil {
		return nil, err
	}
	body, err := remote.Unpack(packed, intake.MaxBody)
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
