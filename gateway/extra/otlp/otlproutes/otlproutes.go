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

// metrics handles v1/metrics. Its answers are encoded as the request is, or as JSON if that cannot be found out.
func (h *handlers) metrics(w http.ResponseWriter, r *http.Request) error {
	form, err := otlp.FormOf(r.Header.Get("Content-Type"))
	var answer []byte
	switch {
	case r.Method != http.MethodPost:
		err = httpio.MethodNotAllowed(r.Method)
	case err != nil:
		err = h.intake.Unread(r, &httpio.Error{Code: http.StatusUnsupportedMediaType, Message: err.Error()})
	default:
		answer, err = h.take(w, r, form)
	}

	code := http.StatusOK
	if err != nil {
		var why string
		code, why = intake.Status(w, r, h.log, err)
		answer = form.Error(code, why)
	}
	w.Header().Set("Content-Type", form.ContentType())
	w.WriteHeader(code)
	_, _ = w.Write(answer)
	return nil
}

// take reads a request, stores its points and returns the answer.
func (h *handlers) take(w http.ResponseWriter, r *http.Request, form otlp.Form) ([]byte, error) {
	body, err := httpio.ReadBodyUpTo(w, r, intake.MaxBody)
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

	// Data points are numbered from 1, and the series of one are neighbors.
	rejected, last := int64(0), 0
	out := h.intake.Take(r, of, func(i int) {
		if point := of.DataPoint(i); point != last {
			rejected, last = rejected+1, point
		}
	})
	if err := out.Err("points"); err != nil {
		return nil, err
	}
	if out.Refused == 0 {
		return form.Response(0, ""), nil
	}
	return form.Response(rejected, out.Text("points")), nil
}
