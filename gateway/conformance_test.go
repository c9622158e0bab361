package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/integration/compare"
	"downpour/integration/conformance"
)

// replay asks every recorded query and returns a text for each answer that differs.
func replay(t *testing.T, r *conformance.Data, at gatewaytest.Fronts) (asked int, wrong []string) {
	t.Helper()
	c := compare.Comparer{
		MessageStart: true,
		Permits: []compare.Permit{{Path: compare.Path{"error", "details"}, Kinds: []compare.Kind{compare.Extra},
			Reason: "of errors only code and message were recorded"}},
	}
	for i, q := range r.Queries {
		for _, g := range at.Of(i) {
			asked++
			status, body := gatewaytest.Ask(t, http.MethodPost, g.URL()+strings.TrimPrefix(q.Path, "/"),
				string(q.Request))
			report, err := c.Answers(compare.Answer{Status: q.Status, Body: q.Response},
				compare.Answer{Status: status, Body: body})
			if err != nil {
				t.Fatalf("%s: query %d: %v: %.200s", g.How, i, err, body)
			}
			if !report.Equal() {
				wrong = append(wrong,
					fmt.Sprintf("%s: query %d %s %s: %d differences, the first: %s (status %d, %.150s)",
						g.How, i, q.Path, q.Request, len(report.Differences), report.Differences[0], status, body))
			}
		}
	}
	return asked, wrong
}

// Every query gets the answer that was recorded from OpenTSDB 2.4.1, to the last bit, executed in
// process or by a pushdown server, over points as they were put and over sealed rows.
func TestConformance(t *testing.T) {
	for name, salt := range gatewaytest.Recordings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := new(conformance.Data)
			gatewaytest.Decode(t, name, r)
			var configs []*gateway.Config
			at := gatewaytest.RecordedFronts(t, r, func() *gateway.Config {
				configs = append(configs, config(salt))
				return configs[len(configs)-1]
			})
			asked, wrong := replay(t, r, at)
			for i, w := range wrong {
				if i < 5 {
					t.Error(w)
				}
			}
			t.Logf("%d of %d answers to %d queries are equal", asked-len(wrong), asked, len(r.Queries))
			for _, i := range []int{1, 3} {
				checkServer(t, at[i].Server, r, configs[i].Pushdown[0])
			}
		})
	}
}

// checkServer checks that explain names the pushdown server for every part of a query: the
// answers came from there.
func checkServer(t *testing.T, g *gateway.Server, r *conformance.Data, want string) {
	t.Helper()
	for _, q := range r.Queries {
		if q.Status != http.StatusOK {
			continue
		}
		var explained struct {
			Parts []struct{ Server string }
		}
		_, body := gatewaytest.Ask(t, http.MethodPost, g.URL()+"api/query?explain=true", string(q.Request))
		if err := json.Unmarshal(body, &explained); err != nil || len(explained.Parts) == 0 {
			t.Fatalf("explain: %v: %s", err, body)
		}
		for _, p := range explained.Parts {
			if p.Server != want {
				t.Errorf("a part is executed by %s, want it by %s", p.Server, want)
			}
		}
		return
	}
}
