package gateway_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/pushdown/store"
)

// rollupRecording is what was recorded of OpenTSDB's rollups: what was written, the cells that this
// made, and queries.
type rollupRecording struct {
	Config  map[string]json.RawMessage
	Assign  [][2]string
	Points  []json.RawMessage
	Steps   []rollupStep
	Rows    []conformance.Cell
	Queries []conformance.Query
}

type rollupStep struct {
	conformance.Query
	Telnet []string
}

// setting returns a setting of the OpenTSDB that was recorded.
func (r *rollupRecording) setting(name string) string {
	var text string
	if json.Unmarshal(r.Config[name], &text) == nil {
		return text
	}
	return string(r.Config[name])
}

// gatewayConfig returns the configuration of a gateway with the recording's rollups.
func (r *rollupRecording) gatewayConfig() *gateway.Config {
	cfg := config(0)
	cfg.Store = "hbase:none:1" // with this setting points are single cells, as in the recording
	cfg.Rollups = r.setting("tsd.rollups.config")
	cfg.RollupTagRaw, cfg.RollupBlockDerived = r.setting("tsd.rollups.tag_raw") == "true", true
	return cfg
}

// Rollups are written, stored and answered as recorded from OpenTSDB, except for the rules
// that compatibility.md has, too.
func TestRollupConformance(t *testing.T) {
	for _, name := range []string{"rollup_seed21", "rollup_seed23"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := new(rollupRecording)
			gatewaytest.Decode(t, name, r)
			cfg := r.gatewayConfig()
			st := memoryStore(t, cfg)
			g := start(t, cfg, st)
			gatewaytest.Fill(t, &conformance.Data{Assign: r.Assign, Points: r.Points}, g, st, cfg.Schema())

			checkRollupSteps(t, g, r)
			checkRollupRows(t, st, r)
			checkRollupQueries(t, gatewaytest.TwoFronts(t, g, r.gatewayConfig(), st), r)
		})
	}
}

func checkRollupSteps(t *testing.T, g *gateway.Server, r *rollupRecording) {
	t.Helper()
	equal, byRule := 0, map[string]int{}
	for i, s := range r.Steps {
		want, rule := expectRollupStep(s)
		if rule != "" {
			byRule[rule]++
		}
		var err error
		var got string
		if s.Telnet != nil {
			got = telnetLines(t, g, s.Telnet)
			if text, _ := json.Marshal(got); string(text) != string(s.Response) {
				err = fmt.Errorf("want %s", s.Response)
			}
		} else {
			status, body := gatewaytest.Ask(t, s.Method, g.URL()+strings.TrimPrefix(s.Path, "/"), s.Body)
			got = fmt.Sprintf("%d %s", status, body)
			if want.Body != nil && string(want.Body) != "null" {
				err = sameStep(want, status, body)
			} else if status != want.Status || !strings.Contains(got, want.Text) {
				err = fmt.Errorf("want status %d and %q", want.Status, want.Text)
			}
		}
		if err != nil {
			t.Errorf("step %d %s%.300s: %v (%s)\n%.400s", i, s.Telnet, s.Body, err, rule, got)
			continue
		}
		equal++
	}
	t.Logf("%d of %d steps are as they should be; by a rule: %v", equal, len(r.Steps), byRule)
}

// expectRollupStep returns the answer that is wanted for a recorded step, and the rule by which it
// is not the recorded one. compatibility.md has the same rules.
func expectRollupStep(s rollupStep) (want gatewaytest.Expected, rule string) {
	switch {
	case strings.Contains(s.Body, `"interval": "1m"`) && s.Status == http.StatusOK:
		return gatewaytest.Expected{Status: http.StatusBadRequest, Text: "The interval 1m is that of raw data"},
			"rollups of raw data's interval are refused"
	case strings.Contains(string(s.Response), "Unexpected exception"):
		return gatewaytest.Expected{Status: s.Status, Text: "No rollups configured for the interval"},
			"an unknown interval is named"
	}
	return gatewaytest.Expected{Status: s.Status, Body: s.Response}, ""
}

// sameStep returns an error that says how the answer to a step differs from the recorded one.
func sameStep(want gatewaytest.Expected, status int, body []byte) error {
	report, err := recorded.Answers(compare.Answer{Status: want.Status, Body: want.Body},
		compare.Answer{Status: status, Body: body})
	if err != nil || report.Equal() {
		return err
	}
	return fmt.Errorf("%s", report)
}

// telnetLines sends lines and returns what is answered until the connection ends.
func telnetLines(t *testing.T, g *gateway.Server, lines []string) string {
	t.Helper()
	c, err := net.Dial("tcp", gatewaytest.Address(g))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(gatewaytest.Patience))
	fmt.Fprint(c, strings.Join(lines, "\n")+"\n")
	c.(*net.TCPConn).CloseWrite()
	text, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkRollupRows compares the cells of the rollup tables with the recorded ones.
func checkRollupRows(t *testing.T, st store.Reader, r *rollupRecording) {
	t.Helper()
	var want, got []conformance.Cell
	tables := map[string]bool{}
	for _, c := range r.Rows {
		if c.Table != "tsdb-uid" {
			want = append(want, c)
			tables[c.Table] = true
		}
	}
	for table := range tables {
		for row, err := range store.Rows(t.Context(), st, store.Scan{Table: table, Family: encoding.FamilyData}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range row.Cells {
				got = append(got, conformance.Cell{
					Table:     table,
					Row:       hex.EncodeToString(row.Key),
					Family:    encoding.FamilyData,
					Qualifier: hex.EncodeToString(c.Qualifier),
					Value:     hex.EncodeToString(c.Value),
				})
			}
		}
	}

	order := func(a, b conformance.Cell) int {
		return strings.Compare(a.Table+" "+a.Row+" "+a.Qualifier, b.Table+" "+b.Row+" "+b.Qualifier)
	}
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-recorded +ours\n%.3000s", d)
	}
	t.Logf("%d cells", len(got))
}

func checkRollupQueries(t *testing.T, at gatewaytest.Fronts, r *rollupRecording) {
	t.Helper()
	equal, byRule := 0, map[string]int{}
	for i, q := range r.Queries {
		for _, g := range at.Of(i) {
			status, body := gatewaytest.Ask(t, q.Method, g.URL()+strings.TrimPrefix(q.Path, "/"), q.Body)
			rule, err := compareRollup(q, status, body)
			if rule != "" {
				byRule[rule]++
			}
			if err != nil {
				t.Errorf("%s: query %d %s%s: %.700s (status %d, %.300s)", g.How, i, q.Path, q.Body, err, status, body)
				continue
			}
			equal++
		}
	}
	t.Logf("%d answers to %d queries are as they should be; by a rule: %v", equal, len(r.Queries), byRule)
}

// compareRollup returns an error that says how an answer differs from what is wanted, and the rule
// by which that is not the recorded one.
func compareRollup(q conformance.Query, status int, body []byte) (rule string, err error) {
	if strings.Contains(string(q.Response), `"The offset for KeyValue`) {
		rule = "of two cells of one interval the newer counts"
		if status != http.StatusOK {
			err = errors.New("want an answer")
		}
		return rule, err
	}
	// Its rows have sums without counts, or counts without sums.
	want := q.Response
	if strings.Contains(string(want), `"metric":""`) || strings.Contains(string(want), `"metric": ""`) {
		rule, want = "no average is no data", json.RawMessage("[]")
	}
	c := compare.Comparer{
		MessageStart: true,
		Permits:      []compare.Permit{{Path: compare.Path{"error", "details"}, Reason: "free"}},
	}
	report, err := c.Answers(compare.Answer{Status: q.Status, Body: want}, compare.Answer{Status: status, Body: body})
	if err == nil && !report.Equal() {
		err = fmt.Errorf("%s", report)
	}
	return rule, err
}
