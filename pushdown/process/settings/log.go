package settings

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LogConfig is what the log of a program shows.
type LogConfig struct {
	// LogLevel is the least level of the lines that are written: debug, info, warn or error.
	LogLevel string `env:"DOWNPOUR_LOG_LEVEL" envDefault:"info"`
	// LogFormat is text, key=value, or json, an object a line.
	LogFormat string `env:"DOWNPOUR_LOG_FORMAT" envDefault:"text"`
}

// logLevels are the levels by the names that LogLevel has.
var logLevels = map[string]slog.Level{
	"": slog.LevelInfo, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
	"error": slog.LevelError,
}

// Logger returns the log of the settings, on w. Each record is one line, and none has terminal
// codes, whatever names clients send: both forms escape unprintable characters.
func (c *LogConfig) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: logLevels[strings.ToLower(c.LogLevel)]}
	if c.LogFormat == "json" {
		options.ReplaceAttr = printable
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// printable replaces, in an attribute, characters from U+007F on that cannot be printed, such as
// U+009B, which begins a terminal code. JSON itself need not escape them; slog's text does.
func printable(_ []string, a slog.Attr) slog.Attr {
	text := a.Value.String() // of an error or a Stringer its text
	clean := strings.Map(func(r rune) rune {
		if r >= '\x7f' && !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
	if clean != text {
		a.Value = slog.StringValue(clean)
	}
	return a
}

// validate returns all faults.
func (c *LogConfig) validate() (errs []error) {
	if _, ok := logLevels[strings.ToLower(c.LogLevel)]; !ok {
		errs = append(errs, fmt.Errorf("DOWNPOUR_LOG_LEVEL: got %q, want debug, info, warn or error", c.LogLevel))
	}
	if f := c.LogFormat; f != "" && f != "text" && f != "json" {
		errs = append(errs, fmt.Errorf("DOWNPOUR_LOG_FORMAT: got %q, want text or json", f))
	}
	return errs
}
