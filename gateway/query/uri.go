package query

import (
	"fmt"
	"net/url"
	"slices"
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
	q, _, err := p.URIWith(values, nil)
	return q, err
}

// URIWith parses the parameters of a GET whose sub-queries are not in m and tsuid alone.
// more returns texts as those of m for further ones, at most limit of them; nil
// for none. at[i] is the place of the i-th of them in Query.Queries, which it shares with
// an equal one. All errors but those of more are *Error.
func (p Parser) URIWith(values url.Values, more func(limit int) ([]string, error)) (q *Query, at []int, err error) {
	q = &Query{StartText: lastOf(values, "start"), EndText: lastOf(values, "end")}
	if q.StartText == "" {
		return nil, nil, Bad("Missing parameter <code>start</code>")
	}

	q.Padding = values.Has("padding")
	q.NoAnnotations = values.Has("no_annotations")
	q.GlobalAnnotations = values.Has("global_annotations")
	q.ShowTSUIDs = values.Has("show_tsuids")
	q.MSResolution = values.Has("ms")
	q.ShowQuery = values.Has("show_query")
	q.ShowStats = values.Has("show_stats")
	q.ShowSummary = values.Has("show_summary")

	if err := p.addSubQueries(q, values); err != nil {
		return nil, nil, err
	}
	var identities []string
	if more != nil {
		if identities, err = p.addMore(q, more); err != nil {
			return nil, nil, err
		}
	}
	if len(q.Queries) == 0 {
		return nil, nil, Bad("Missing sub queries")
	}

	// First the fixes of the gateway; ReadURIOptions replaces them if the request names its own.
	q.setFix(p.Fix)
	if err := q.ReadURIOptions(values); err != nil {
		return nil, nil, err
	}
	// OpenTSDB ignores the timezone of a GET.
	if q.Fix.Contains(FixTimezone) {
		q.Timezone = lastOf(values, "timezone")
	} else if values.Has("timezone") {
		q.ignored = append(q.ignored, "a GET's timezone means nothing without fix=timezone")
	}
	if values.Has("tz") {
		q.ignored = append(q.ignored, "tz means nothing to this route")
	}
	if q, err = p.complete(q); err != nil {
		return nil, nil, err
	}

	// Only now, because complete removes equal sub-queries.
	for _, id := range identities {
		at = append(at, slices.IndexFunc(q.Queries, func(s SubQuery) bool { return s.identity() == id }))
	}
	return q, at, nil
}

// addSubQueries adds the sub-queries of the parameters.
func (p Parser) addSubQueries(q *Query, values url.Values) error {
	// OpenTSDB puts the sub-queries of tsuid parameters before those of m.
	tsuids, metrics := values["tsuid"], values["m"]
	if n, limit := len(tsuids)+len(metrics), p.MaxSubQueries(); n > limit {
		return tooManySubQueries(fmt.Sprintf(": %d", n), limit)
	}
	for _, text := range tsuids {
		if err := q.addSubQuery(text, parseTSUIDParameter); err != nil {
			return err
		}
	}
	for _, text := range metrics {
		if err := q.addSubQuery(text, parseMParameter); err != nil {
			return err
		}
	}
	return nil
}

// addMore adds the sub-queries that more returns, and returns their identities, by which
// URIWith finds them once equal sub-queries are removed.
func (p Parser) addMore(q *Query, more func(limit int) ([]string, error)) (identities []string, err error) {
	texts, err := more(p.MaxSubQueries() - len(q.Queries))
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		if err := q.addSubQuery(text, parseMParameter); err != nil {
			return nil, err
		}
		identities = append(identities, q.Queries[len(q.Queries)-1].identity())
	}
	return identities, nil
}

// addSubQuery parses a parameter and adds its sub-query. It is an error if the regular
// expressions of all sub-queries then take too many steps.
func (q *Query) addSubQuery(text string, parse func(string) (SubQuery, error)) error {
	s, err := parse(text)
	if err != nil {
		return err
	}
	q.Queries = append(q.Queries, s)
	return checkSteps(q.Queries)
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
		return Bad("Invalid mode: %s, want strict or partial", o.Mode)
	}

	o.Fix = q.Fix
	if values.Has("fix") {
		var err error
		if o.Fix, err = ParseFixes(lastOf(values, "fix")); err != nil {
			return Bad("Invalid fix: %v", err)
		}
	}

	q.URIOptions = o
	q.setFix(o.Fix) // the wildcards' too
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
