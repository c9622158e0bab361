package sdnotify_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"downpour/pushdown/process/sdnotify"
	"downpour/pushdown/process/sdnotify/sdnotifytest"
)

// The states are those of sd_notify(3). Without a manager nothing is sent and nothing logged; one that is gone is
// named in the log.
func TestTell(t *testing.T) {
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	sdnotify.Manager{Log: log}.Ready()
	m := sdnotifytest.Listen(t)
	sdnotify.Manager{Socket: m.Socket, Log: log}.Ready()
	sdnotify.Manager{Socket: m.Socket, Log: log}.Stopping()
	if first, second := m.Next(), m.Next(); first != "READY=1" || second != "STOPPING=1" {
		t.Errorf("got %q and %q, want READY=1 and STOPPING=1", first, second)
	}
	m.None()
	if logged.Len() > 0 {
		t.Errorf("logged %s, want nothing", &logged)
	}
	sdnotify.Manager{Socket: "/none", Log: log}.Ready()
	if !strings.Contains(logged.String(), "READY=1") || !strings.Contains(logged.String(), "/none") {
		t.Errorf("logged %q, want the state and the socket", &logged)
	}
}
