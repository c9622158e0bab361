package uid

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"downpour/encoding"
)

// A kind with four fifths of its UIDs given is warned of, once.
func TestWarnNearlyFull(t *testing.T) {
	for _, c := range []struct {
		given int64
		width int
		want  int
	}{{204, 1, 0}, {205, 1, 1}, {205, 2, 0}, {1 << 62, 8, 0}} {
		var log bytes.Buffer
		d := New(Config{Schema: encoding.DefaultSchema(), Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 3 {
			d.warnNearlyFull(encoding.UIDTagK, c.given, c.width)
		}
		if got := strings.Count(log.String(), "UIDs run short"); got != c.want {
			t.Errorf("%d UIDs of %d bytes: %d warnings, want %d", c.given, c.width, got, c.want)
		}
	}
}
