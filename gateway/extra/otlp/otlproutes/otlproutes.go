// Package otlproutes takes points by OpenTelemetry's protocol over HTTP, at /v1/metrics.
// Source: OpenTelemetry's OTLP specification.
package otlproutes

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"downpour/gateway"
	"downpour/gateway/admin/activity"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/otlp"
	"downpour/gateway/extra/prometheus/intake"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// Settings are those of OTLP.
type Settings struct {
	// OTLPTags are the attributes of resources that become tags.
	OTLPTags []string `env:"DOWNPOUR_OTLP_TAGS" envDefault:"service.name,service.instance.id,host.name"`
}

// SetDefaults does nothing.
func (*Settings) SetDefaults(*gateway.Config) {}

// Validate refuses an attribute without a name.
func (s *Settings) Validate(*gateway.Config) error {
	for _, name := range s.OTLPTags {
		if name == "" || name == "__name__" {
			return fmt.Errorf("DOWNPOUR_OTLP_TAGS: got an attribute %q, want names of attributes, separated by commas",
				name)
		}
	}
	return nil
}

// New returns the route.
func New(s *Settings) gateway.Extra { return gateway.Extra{Name: "OTLP", Settings: s, Open: s.open} }

func (s *Settings) open(_ context.Context, c *gateway.Core) (gateway.Parts, error) {
	h := &handlers{tags: s.OTLPTags, intake: intake.New(c, activity.OTLP), log: c.Log}
	return gateway.Parts{Routes: map[string]httpio.Endpoint{
		"v1/metrics": {
			Scope:  auth.Write,
			Serve:  h.metrics,
			Reads:  httpio.NoVerb,
			Memory: memory.Write,
			Denied: h.intake.Denied,
			Absent: httpio.ReadOnly,
		},
	}}, nil
}

type handlers struct {
	tags   []string
	intake *intake.Intake
	log    *slog.Logger
}

// maxBody bounds the bytes of a request, packed and unpacked.
const maxBody = 32 << 20

// metrics handles v1/metrics. An exporter sends a request again after 503, and drops it after other errors.
func (h *handlers) metrics(w http.ResponseWriter, r *http.Request) error {
	form, err := otlp.FormOf(r.Header.Get("Content-Type"))
	if err != nil {
		err = h.intake.Unread(r, &httpio.Error{Code: http.StatusUnsupportedMediaType, Message: err.Error()})
	}
	var answer []byte
	if r.Method != http.MethodPost {
		err = httpio.MethodNotAllowed(r.Method)
	}
	if err == nil {
		answer, err = h.take(w, r, form)
	}
	code := http.StatusOK
	if err != nil {
		e := httpio.ErrorFor(w, r, h.log, err)
		text := e.Message
		if e.Details != "" && e.Details != e.Message {
			text += ": " + e.Details
		}
		code = e.Code
		switch code {
		case http.StatusFailedDependency, http.StatusRequestTimeout: // it may be sent again
			code = http.StatusServiceUnavailable
			httpio.SetRetryAfter(w)
		}
		answer = form.Error(code, text)
	}
	w.Header().Set("Content-Type", form.ContentType())
	w.WriteHeader(code)
	_, _ = w.Write(answer)
	return nil
}

// take reads a request, stores its points and returns the answer.
func (h *handlers) take(w http.ResponseWriter, r *http.Request, form otlp.Form) ([]byte, error) {
	body, err := httpio.ReadBodyUpTo(w, r, maxBody)
	if err != nil {
		return nil, h.intake.Unread(r, err)
	}
	reserve := func(bytes int64) error { return memory.Reserve(r.Context(), bytes) }
	of, err := otlp.Parse(body, form, h.tags, reserve)
	if err != nil {
		if !memory.Refused(err) {
			err = httpio.BadRequest("%s", err.Error())
		}
		return nil, h.intake.Unread(r, err)
	}
	rejected, last := int64(0), 0
	out := h.intake.Take(r, of, func(i int) {
		if point := of.DataPoint(i); point != last {
			rejected, last = rejected+1, point
		}
	})
	if out.Unstored > 0 {
		return nil, &httpio.Error{Code: http.StatusServiceUnavailable, Message: fmt.Sprintf(
			"%d points are not known to be stored, send the request again: %v", out.Unstored, out.Storage)}
	}
	if out.Refused == 0 {
		return form.Response(0, ""), nil
	}
	return form.Response(rejected, out.Text("points")), nil
}
