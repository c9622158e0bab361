package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/gateway/query"
)

// A panic while an answer is filled fails its query with an internal error, which does not name
// the cause. The engine logs the panic and where it was.
func TestAnswer_panics(t *testing.T) {
	var logged bytes.Buffer
	e := New(Config{Log: slog.New(slog.NewTextHandler(&logged, nil))})
	a := newAnswer(e.cfg.Log, []openSubQuery{{results: make([]Result, 1)}})
	a.fill[0] = func(context.Context) (encoding.Points, error) { panic("no such column") }
	var failed *query.Error
	if err := a.Fill(t.Context(), 0); !errors.As(err, &failed) || failed.Status != 500 ||
		failed.Message != "Internal error" {
		t.Errorf("got %v, want status 500, Internal error", err)
	}
	if text := logged.String(); !strings.Contains(text, `panic="no such column"`) ||
		!strings.Contains(text, "engine_test.go") {
		t.Errorf("logged %q, want the panic and where it was", text)
	}
}
