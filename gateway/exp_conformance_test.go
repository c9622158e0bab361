package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/integration/compare"
	"downpour/integration/conformance"
)

// expRecording is what was recorded of OpenTSDB's /api/query/exp.
type expRecording struct {
	Assign  [][2]string
	Points  []json.RawMessage
	Queries []conformance.Query
}

// Every request to /api/query/exp gets the answer that was recorded from OpenTSDB, except for the
// rules of package compare.
func TestExpConformance(t *testing.T) {
	t.Parallel()
	r := new(expRecording)
	gatewaytest.Decode(t, "exp", r)
	data := &conformance.Data{Assign: r.Assign, Points: r.Points}
	at := gatewaytest.RecordedFronts(t, data, func() *gateway.Config { return config(0) })
	equal, byRule := 0, map[string]int{}
	for i, q := range r.Queries {
		for _, g := range at.Of(i) {
			status, body := gatewaytest.Ask(t, q.Method, g.URL()+strings.TrimPrefix(q.Path, "/"), q.Body)
			allOutputs := func(request string) []byte {
				_, body := gatewaytest.Ask(t, q.Method, g.URL()+strings.TrimPrefix(q.Path, "/"), request)
				return body
			}
			report, rule, err := recorded.Expressions(q.Body, compare.Answer{Status: q.Status, Body: q.Response},
				compare.Answer{Status: status, Body: body}, allOutputs)
			if rule != "" {
				byRule[rule]++
			}
			if err != nil || !report.Equal() {
				t.Errorf("%s: query %d %s: %v %s (%s)\nstatus %d, %.400s",
					g.How, i, q.Body, err, report, rule, status, body)
				continue
			}
			equal++
		}
	}
	t.Logf("%d answers to %d queries are as they should be; by a rule: %v", equal, len(r.Queries), byRule)
}
