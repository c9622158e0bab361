package querylog

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Slow is which queries are logged.
type Slow struct {
	// From is the least duration of a logged query, including the sending of its answer; 0 logs
	// none.
	From time.Duration
	Log  *slog.Logger
}

// logSlow logs a completed query if it was slow, with its cost and its plans.
func (l *Log) logSlow(e *Entry) {
	took := e.end.Sub(e.start)
	if l.Slow.From <= 0 || took < l.Slow.From {
		return
	}
	// As text: in JSON a duration would be a number of nanoseconds.
	attrs := []any{"took", took.Round(time.Millisecond).String(), "status", e.status, "client", e.remote, "request",
		e.id,
		"rows", e.Stats.Rows, "cells", e.Stats.Cells, "bytes", e.Stats.Bytes, "parts", e.Stats.Parts, "groups",
		e.Stats.Groups, "points", e.Stats.PointsOut}
	if e.status != http.StatusOK {
		attrs = append(attrs, "err", e.failure)
	}

	texts, more := e.Plans.Texts()
	for _, text := range texts {
		oneLine := strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "; ")
		attrs = append(attrs, "plan", shortened(oneLine))
	}
	if more > 0 {
		attrs = append(attrs, "morePlans", more)
	}
	l.Slow.Log.Warn("a query was slow", append(attrs, "query", shortened(compactJSON(e.query)))...)
}

// compactJSON returns a query as JSON, without members that are null, false or empty.
func compactJSON(query any) string {
	var all any
	text, err := json.Marshal(query)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err == nil {
		text, err = json.Marshal(withoutEmpty(all))
	}
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// withoutEmpty removes the members of objects that are null, false or empty; nil if nothing is
// left. Empty elements of lists become null, so that the others keep their places.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			if v[k] = withoutEmpty(member); v[k] == nil {
				delete(v, k)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}
