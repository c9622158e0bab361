package settings

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
)

// A line has the form and the least level of the settings.
func TestLogConfig_Logger(t *testing.T) {
	f := func(c LogConfig, json bool, lines int) {
		t.Helper()
		var out strings.Builder
		log := c.Logger(&out)
		log.Debug("a")
		log.Info("b")
		log.Warn("c")
		log.Error("d")
		if n := strings.Count(out.String(), "\n"); n != lines {
			t.Errorf("%+v: %d lines, want %d", c, n, lines)
		}
		if got := strings.HasPrefix(out.String(), "{"); got != json {
			t.Errorf("%+v: got %s, want an object: %t", c, out.String(), json)
		}
	}
	f(LogConfig{}, false, 3)
	f(LogConfig{"debug", "text"}, false, 4)
	f(LogConfig{"INFO", "json"}, true, 3)
	f(LogConfig{"warn", "json"}, true, 2)
	f(LogConfig{"error", ""}, false, 1)
}

// Whatever a client puts into a name stays within one line, without terminal codes.
func TestLogConfig_hostileNames(t *testing.T) {
	const hostile = "a\nlevel=ERROR msg=forged\r\x1b[2J\u202e\u009b2J\x7f\x00\xff\"b"
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		c := LogConfig{LogFormat: format}
		c.Logger(&out).Info(hostile, "name", hostile, "err", errors.New(hostile))
		line := strings.TrimSuffix(out.String(), "\n")
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s: %q has a character at %d that cannot be printed", format, line, i)
		}
		if format == "json" && !json.Valid([]byte(line)) {
			t.Errorf("%q is no JSON", line)
		}
	}
}
