package gateway_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/pushdown/store"
)

// histogramRecording is what was recorded of OpenTSDB's histograms.
type histogramRecording struct {
	conformance.Data
	Config map[string]string
	Steps  []histogramStep
	Rows   []struct{ Table, Row, Family, Qualifier, Value string }
	// Queries hides the field of Data.
	Queries []conformance.Query
}

// histogramStep is an HTTP request, or lines of telnet.
type histogramStep struct {
	conformance.Query
	Telnet []string
	Server string // not empty: a server for which histograms are not configured
}

// refusedHistograms has, by step, the error of a histogram that OpenTSDB takes and Downpour
// refuses: from negative counts and reversed bounds OpenTSDB computes nonsense.
var refusedHistograms = map[int]string{
	36: "Invalid bucket 0,1: got the count -5, want at least 0",
	37: "Invalid bucket 1,0: want the lower bound not above the upper one",
	42: "Invalid histogram: got the underflow -1 and the overflow 1, want at least 0",
}

// silentHistograms has, by step, Downpour's answer to telnet lines that OpenTSDB does not store and
// answers with nothing.
var silentHistograms = map[int]string{
	68: "histogram: illegal argument: Improperly formatted bucket: nope\n",
	69: "histogram: illegal argument: Improperly formatted bounds: 0=5\n",
	70: "histogram: illegal argument: Improperly formatted bucket: 0,1=x: got the count x, want an integer\n",
	71: "histogram: illegal argument: Improperly formatted bounds: a,b=1\n",
}

// Every write of histograms gets the answer that was recorded from OpenTSDB 2.4.1, except for
// refusedHistograms and silentHistograms, and stores the same bytes. Every query gets the recorded
// answer: in process or by a pushdown server, and one in four from the result cache as well.
func TestHistogramConformance(t *testing.T) {
	t.Parallel()
	var r histogramRecording
	if err := conformance.Decode("histogram_seed31", &r); err != nil {
		t.Fatal(err)
	}
	cfg := config(0)
	cfg.Histograms, cfg.ResultCache = r.Config["tsd.core.histograms.config"], "16MiB"
	st := memoryStore(t, cfg)
	g := start(t, cfg, st)
	gatewaytest.Fill(t, &r.Data, g, st, cfg.Schema())

	without := start(t, config(0), st)
	for i, s := range r.Steps {
		to := g
		if s.Server != "" {
			to = without
		}
		if s.Telnet != nil {
			checkTelnet(t, i, s, to)
		} else {
			checkStep(t, i, s, to)
		}
	}
	checkHistogramCells(t, &r, st)

	remote := config(0)
	remote.Histograms, remote.ResultCache = cfg.Histograms, cfg.ResultCache
	at := gatewaytest.TwoFronts(t, g, remote, st)
	for _, again := range []string{"", "again", "and again"} {
		replayHistograms(t, again, r.Queries, at)
	}
}

// recorded compares answers with recorded ones.
var recorded = compare.Comparer{MessageStart: true, Permits: []compare.Permit{
	{
		Path:   compare.Path{"error", "details"},
		Kinds:  []compare.Kind{compare.Extra, compare.Value},
		Reason: "details are the message again, where there are any",
	},
	{Path: compare.Path{"error", "cut"}, Kinds: []compare.Kind{compare.Missing}, Reason: "a mark of the recording"},
}}

// checkStep sends a step by HTTP.
func checkStep(t *testing.T, i int, s histogramStep, g *gateway.Server) {
	t.Helper()
	status, body := gatewaytest.Ask(t, s.Method, g.URL()+strings.TrimPrefix(s.Path, "/"), s.Body)
	if want, ok := refusedHistograms[i]; ok {
		var got struct{ Errors []struct{ Error string } }
		if err := json.Unmarshal(body, &got); err != nil || status != http.StatusBadRequest ||
			s.Status != http.StatusOK || len(got.Errors) != 1 || got.Errors[0].Error != want {
			t.Errorf("step %d: %d %s, want the error %q where OpenTSDB answers %d", i, status, body, want, s.Status)
		}
		return
	}
	if s.Status == http.StatusNoContent {
		if status != s.Status || len(body) > 0 {
			t.Errorf("step %d: %d %s, want %d", i, status, body, s.Status)
		}
		return
	}

	report, err := recorded.Answers(compare.Answer{Status: s.Status, Body: s.Response},
		compare.Answer{Status: status, Body: body})
	if err != nil {
		t.Fatalf("step %d: %v: %.200s", i, err, body)
	}
	if !report.Equal() {
		t.Errorf("step %d %.300s: %d differences, the first: %s (status %d, %.300s)",
			i, s.Body, len(report.Differences), report.Differences[0], status, body)
	}
}

// checkTelnet sends a step by telnet.
func checkTelnet(t *testing.T, i int, s histogramStep, g *gateway.Server) {
	t.Helper()
	var want string
	if err := json.Unmarshal(s.Response, &want); err != nil {
		t.Fatal(err)
	}
	if ours, ok := silentHistograms[i]; ok {
		if want != "" {
			t.Errorf("step %d is recorded with the answer %q, want none", i, want)
		}
		want = ours
	}
	if got := sayTelnet(t, g, s.Telnet...); got != want {
		t.Errorf("step %d %q: got %q, want %q", i, s.Telnet, got, want)
	}
}

// sayTelnet sends lines and returns all answers. By then everything that was taken is stored.
func sayTelnet(t *testing.T, g *gateway.Server, lines ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(g.URL(), "http://"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, strings.Join(lines, "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// checkHistogramCells compares the cells of histograms byte for byte. Cells of points are left out:
// the embedded store has them in another form.
func checkHistogramCells(t *testing.T, r *histogramRecording, st store.Store) {
	t.Helper()
	var want, got []string
	for _, c := range r.Rows {
		if c.Table == "tsdb" && len(c.Qualifier)%4 == 2 {
			want = append(want, c.Row+" "+c.Family+" "+c.Qualifier+" "+c.Value)
		}
	}
	for rows, err := range store.Blocks(t.Context(), st, store.Scan{Table: "tsdb", Family: encoding.FamilyData}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			for _, c := range row.Cells {
				if encoding.IsHistogram(c.Qualifier) {
					got = append(got, fmt.Sprintf("%x %s %x %x", row.Key, encoding.FamilyData, c.Qualifier, c.Value))
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 900 {
		t.Errorf("%d cells are recorded, want 900 or more; want -, got +: %s", len(want), diff)
	}
	// Each decodes, and encodes to the same bytes again.
	for _, c := range want {
		value, err := hex.DecodeString(c[strings.LastIndexByte(c, ' ')+1:])
		if err != nil {
			t.Fatal(err)
		}
		var h encoding.Histogram
		if err := encoding.ParseHistogram(value[1:], &h); err != nil {
			t.Errorf("%s: %v", c, err)
		}
		if again := encoding.AppendHistogram(value[:1:1], &h); !bytes.Equal(again, value) {
			t.Errorf("%s: encoded again it is %x", c, again)
		}
	}
}

// replayHistograms asks the queries; again it asks the first two of each eight, one at each front.
func replayHistograms(t *testing.T, again string, queries []conformance.Query, at gatewaytest.Fronts) {
	t.Helper()
	for i, q := range queries {
		if again != "" && i%8 > 1 && !*gatewaytest.Whole {
			continue
		}
		for _, g := range at.Of(i) {
			status, body := gatewaytest.Ask(t, q.Method, g.URL()+strings.TrimPrefix(q.Path, "/"), q.Body)
			report, err := recorded.Answers(compare.Answer{Status: q.Status, Body: q.Response},
				compare.Answer{Status: status, Body: body})
			if err != nil {
				t.Fatalf("%s %s: query %d: %v: %.200s", g.How, again, i, err, body)
			}
			if !report.Equal() {
				t.Errorf("%s %s: query %d %s %s %s: %d differences, the first: %s (status %d, %.150s)",
					g.How, again, i, q.Method, q.Path, q.Body, len(report.Differences), report.Differences[0],
					status, body)
			}
		}
	}
}
