package query

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// ParseURI parses the parameters of GET /api/query. All errors are *Error.
func ParseURI(values url.Values, now time.Time) (*Query, error) {
	return Parser{Now: now}.URI(values)
}

// URI parses the parameters of GET /api/query. If a parameter other than m and tsuid is
// repeated, the last one counts. All errors are *Error. Source: QueryRpc.parseQuery.
func (p Parser) URI(values url.Values) (*Query, error) {
	q := &Query{StartText: lastOf(values, "start"), EndText: lastOf(values, "end")}
	if q.StartText == "" {
		return nil, bad("Missing parameter <code>start</code>")
	}

	q.Padding = values.Has("padding")
	q.NoAnnotations = values.Has("no_annotations")
	q.GlobalAnnotations = values.Has("global_annotations")
	q.ShowTSUIDs = values.Has("show_tsuids")
	q.MSResolution = values.Has("ms")
	q.ShowQuery = values.Has("show_query")
	q.ShowStats = values.Has("show_stats")
	q.ShowSummary = values.Has("show_summary")

	// OpenTSDB puts the sub-queries of tsuid parameters before those of m.
	tsuids, metrics := values["tsuid"], values["m"]
	if n, limit := len(tsuids)+len(metrics), p.MaxSubQueries(); n > limit {
		return nil, tooManySubQueries(fmt.Sprintf(": %d", n), limit)
	}
	for _, text := range tsuids {
		if err := q.addSubQuery(text, parseTSUIDParameter); err != nil {
			return nil, err
		}
	}
	for _, text := range metrics {
		if err := q.addSubQuery(text, parseMParameter); err != nil {
			return nil, err
		}
	}
	if len(q.Queries) == 0 {
		return nil, bad("Missing sub queries")
	}

	q.setFix(p.Fix)
	if err := q.ReadURIOptions(values); err != nil {
		return nil, err
	}
	if q.Fix.Contains(FixTimezone) {
		q.Timezone = lastOf(values, "timezone")
	}
	return p.complete(q)
}

// addSubQuery parses a parameter and adds its sub-query.
func (q *Query) addSubQuery(text string, parse func(string) (SubQuery, error)) error {
	s, err := parse(text)
	q.Queries = append(q.Queries, s)
	if err == nil {
		err = checkSteps(q.Queries)
	}
	return err
}

func lastOf(values url.Values, name string) string {
	if v := values[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// ReadURIOptions reads the parameters of the request line that a POST has too. The error
// is an *Error.
func (q *Query) ReadURIOptions(values url.Values) error {
	o := URIOptions{
		Arrays:       values.Has("arrays"),
		Mode:         lastOf(values, "mode"),
		Trace:        switchedOn(values, "trace"),
		AllowPartial: switchedOn(values, "allowPartial"),
		Explain:      switchedOn(values, "explain"),
		Integers:     switchedOn(values, "integers"),
	}
	if o.Mode != "" && o.Mode != "strict" && o.Mode != "partial" {
		return bad("Invalid mode: %s, want strict or partial", o.Mode)
	}

	o.Fix = q.Fix
	if values.Has("fix") {
		var err error
		if o.Fix, err = ParseFixes(lastOf(values, "fix")); err != nil {
			return bad("Invalid fix: %v", err)
		}
	}

	q.URIOptions = o
	q.setFix(o.Fix)
	return nil
}

// switchedOn reports whether a flag is given and not false, 0 or no.
func switchedOn(values url.Values, name string) bool {
	switch strings.ToLower(lastOf(values, name)) {
	case "false", "0", "no":
		return false
	}
	return values.Has(name)
}
