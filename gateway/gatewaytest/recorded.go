package gatewaytest

import (
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/uid"
	"downpour/integration/conformance"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// Whole is set by -whole.
var Whole = flag.Bool("whole", false,
	"ask every recorded question in each way that its test has, and not in one of them")

// Front is a gateway that is asked recorded questions, by a name for messages.
type Front struct {
	How string
	*gateway.Server
}

// Fronts share out recorded questions: each is asked once, at the fronts by turns, or with -whole at
// all of them. A fault that only one front has still meets every other question.
type Fronts []Front

// Of returns the fronts that are asked question i.
func (f Fronts) Of(i int) Fronts {
	if *Whole {
		return f
	}
	at := i % len(f)
	return f[at : at+1]
}

// TwoFronts returns the gateway, which answers in process, and one that has a pushdown server
// next to the same store answer.
func TwoFronts(t *testing.T, g *gateway.Server, remote *gateway.Config, st gateway.Store) Fronts {
	t.Helper()
	remote.Pushdown = []string{Pushdown(t, remote, st)}
	return Fronts{{"in process", g}, {"pushdown", Start(t, remote, st)}}
}

// RecordedFronts returns gateways with recorded points, of two stores: one has the points as they
// were put, and the other one has them sealed. twin returns the configuration of one of them.
func RecordedFronts(t *testing.T, r *conformance.Data, twin func() *gateway.Config) (all Fronts) {
	t.Helper()
	for _, sealed := range []bool{false, true} {
		cfg, points := twin(), *r // Fill takes them
		st := Memory(t, cfg)
		g := Start(t, cfg, st)
		Fill(t, &points, g, st, cfg.Schema())
		two := TwoFronts(t, g, twin(), st)
		if sealed {
			seal(t, st, cfg.TableData)
			for i := range two {
				two[i].How += ", sealed"
			}
		}
		all = append(all, two...)
	}
	return all
}

// seal seals all rows of a store that are worth it.
func seal(t *testing.T, st *pebble.Store, table string) {
	t.Helper()
	report, err := st.Seal(t.Context(), table, time.Time{}, time.Now(), func(store.SealReport) error { return nil })
	if err != nil || report.Sealed == 0 {
		t.Fatalf("sealing: %+v, %v, want some rows sealed", report, err)
	}
	t.Logf("%d rows are sealed: %d bytes, %d before", report.Sealed, report.After, report.Before)
}

// Ask sends a request, whose body is JSON, and returns the answer.
func Ask(t testing.TB, method, url, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// Fill assigns the recorded UIDs and puts the recorded points, each in the recorded order.
func Fill(t *testing.T, r *conformance.Data, g *gateway.Server, st store.Store, schema encoding.Schema) {
	t.Helper()
	d := uid.New(uid.Config{Store: st, Table: "tsdb-uid", Schema: schema})
	kinds := map[string]encoding.UIDKind{
		"metric": encoding.UIDMetric, "metrics": encoding.UIDMetric, "tagk": encoding.UIDTagK,
		"tagv": encoding.UIDTagV,
	}
	for _, a := range r.Assign {
		kind, ok := kinds[a[0]]
		if !ok {
			t.Fatalf("unknown kind of UID %q", a[0])
		}
		if _, err := d.Assign(t.Context(), kind, a[1]); err != nil {
			t.Fatal(err)
		}
	}
	for len(r.Points) > 0 {
		n := min(len(r.Points), 2000)
		body, _ := json.Marshal(r.Points[:n])
		if status, answer := Ask(t, http.MethodPost, g.URL()+"api/put", string(body)); status != http.StatusNoContent {
			t.Fatalf("put: %d %s", status, answer)
		}
		r.Points = r.Points[n:]
	}
}

// Recordings are the recorded data sets and the salt width of their tables.
var Recordings = map[string]int{"seed1": 0, "seed2": 0, "seed3_salted": 1, "edges": 0}

// Decode reads a recording.
func Decode(t *testing.T, name string, into any) {
	t.Helper()
	if err := conformance.Decode(name, into); err != nil {
		t.Fatal(err)
	}
}

// Expected is the answer that is wanted: equal to a recorded one, or an error whose message has a
// text in it.
type Expected struct {
	Status int
	Body   json.RawMessage // recorded; nil if only status and text count
	Text   string          // in the error's message
}
