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
	Rows    []recordedCell
	Queries []expQuery
}

type rollupStep struct {
	expQuery
	Telnet []string
}

type recordedCell struct{ Table, Row, Family, Qualifier, Value string }

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

// Rollups are written, stored and answered as recorded from OpenTSDB, but for the rules that
// compatibility.md has, too.
func TestRollupConformance(t *testing.T) {
	for _, name := range []string{"rollup_seed21", "rollup_seed23"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := new(rollupRecording)
			loadJSON(t, name, r)
			cfg := r.gatewayConfig()
			st := memoryStore(t, cfg)
			g := start(t, cfg, st)
			fill(t, &conformance.Data{Assign: r.Assign, Points: r.Points}, g, st, cfg.Schema())

			checkRollupSteps(t, g, r)
			checkRollupRows(t, st, r)
			checkRollupQueries(t, twoFronts(t, g, r.gatewayConfig(), st), r)
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
			status, body := ask(t, s.Method, g.URL()+strings.TrimPrefix(s.Path, "/"), s.Body)
			got = fmt.Sprintf("%d %s", status, body)
			if want.body != nil && string(want.body) != "null" {
				err = sameStep(want, status, body)
			} else if status != want.status || !strings.Contains(got, want.text) {
				err = fmt.Errorf("want status %d and %q", want.status, want.text)
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

// expected is the answer that is wanted: equal to a recorded one, or an error whose message has a
// text in it.
type expected struct {
	status int
	body   json.RawMessage // recorded; nil if only status and text count
	text   string          // in the error's message
}

// expectRollupStep returns the answer that is wanted for a recorded step, and the rule by which it
// is not the recorded one. compatibility.md has the same rules.
func expectRollupStep(s rollupStep) (want expected, rule string) {
	switch {
	case strings.Contains(s.Body, `"interval": "1m"`) && s.Status == http.StatusOK:
		return expected{status: http.StatusBadRequest, text: "The interval 1m is that of raw data"}, "rollups of raw data's interval are refused"
	case strings.Contains(string(s.Response), "Unexpected exception"):
		return expected{status: s.Status, text: "No rollups configured for the interval"}, "an unknown interval is named"
	}
	return expected{status: s.Status, body: s.Response}, ""
}

// sameStep returns an error that says how the answer to a step differs from the recorded one.
func sameStep(want expected, status int, body []byte) error {
	report, err := recorded.Answers(compare.Answer{Status: want.status, Body: want.body}, compare.Answer{Status: status, Body: body})
	if err != nil || report.Equal() {
		return err
	}
	return fmt.Errorf("%s", report)
}

// telnetLines sends lines and returns what is answered until the connection ends.
func telnetLines(t *testing.T, g *gateway.Server, lines []string) string {
	t.Helper()
	c, err := net.Dial("tcp", address(g))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
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
	var want, got []recordedCell
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
				got = append(got, recordedCell{table, hex.EncodeToString(row.Key), encoding.FamilyData, hex.EncodeToString(c.Qualifier), hex.EncodeToString(c.Value)})
			}
		}
	}

	order := func(a, b recordedCell) int {
		return strings.Compare(a.Table+" "+a.Row+" "+a.Qualifier, b.Table+" "+b.Row+" "+b.Qualifier)
	}
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-recorded +ours\n%.3000s", d)
	}
	t.Logf("%d cells", len(got))
}

func checkRollupQueries(t *testing.T, at fronts, r *rollupRecording) {
	t.Helper()
	equal, byRule := 0, map[string]int{}
	for i, q := range r.Queries {
		for _, g := range at.of(i) {
			status, body := ask(t, q.Method, g.URL()+strings.TrimPrefix(q.Path, "/"), q.Body)
			rule, err := compareRollup(q, status, body)
			if rule != "" {
				byRule[rule]++
			}
			if err != nil {
				t.Errorf("%s: query %d %s%s: %.700s (status %d, %.300s)", g.how, i, q.Path, q.Body, err, status, body)
				continue
			}
			equal++
		}
	}
	t.Logf("%d answers to %d queries are as they should be; by a rule: %v", equal, len(r.Queries), byRule)
}

// compareRollup returns an error that says how an answer differs from what is wanted, and the rule
// by which that is not the recorded one.
func compareRollup(q expQuery, status int, body []byte) (rule string, err error) {
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
	c := compare.Comparer{MessageStart: true, Permits: []compare.Permit{{Path: compare.Path{"error", "details"}, Reason: "free"}}}
	report, err := c.Answers(compare.Answer{Status: q.Status, Body: want}, compare.Answer{Status: status, Body: body})
	if err == nil && !report.Equal() {
		err = fmt.Errorf("%s", report)
	}
	return rule, err
}
