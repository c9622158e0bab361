package gateway_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/integration/compare"
	"downpour/pushdown/store"
)

// metadataSession replays the whole recorded session at the gateway that on starts, and returns the differences by
// step.
func metadataSession(t *testing.T, on func(*testing.T, func(*gateway.Config)) *bench) (
	*bench, *session, map[int]string) {
	t.Helper()
	s := new(session)
	gatewaytest.Decode(t, "api", s)
	b := on(t, func(cfg *gateway.Config) {
		cfg.AllowOrigins = []string{"http://ok.example"}
		cfg.AllowDelete = true
		cfg.MetaTracking, cfg.MetaIncrementing, cfg.MetaRealtimeTS, cfg.MetaRealtimeUID = "true", "true", "true", "true"
	})
	// The order in which OpenTSDB assigned the UIDs of the session's tags, that of a hash map.
	for _, names := range []string{"tagk=host,dc,os", "tagv=web01,lga,web02,linux,web00,sjc"} {
		if a := b.Get("api/uid/assign?" + names); a.Status != 200 {
			t.Fatalf("assign: %d %s", a.Status, a.Body)
		}
	}
	wrong := map[int]string{}
	for i, st := range s.Steps {
		if d := b.Replay(st); d != "" {
			wrong[i] = fmt.Sprintf("%s %s %s: %s", st.Method, st.Path, st.Body, d)
		}
	}
	return b, s, wrong
}

// Every step of the recorded session about names, series, annotations, lookups, last points or
// deletion is answered as recorded.
func TestMetadata_session(t *testing.T) {
	_, s, wrong := metadataSession(t, open)
	mine := []string{"/api/uid", "/api/search", "/api/annotation", "/api/query/last", "/api/stats", "/stats"}
	compared := 0
	for i, st := range s.Steps {
		ours := st.Method == "DELETE" || strings.Contains(st.Path, "annotations") || strings.Contains(st.Path, "jsonp")
		for _, route := range mine {
			ours = ours || strings.HasPrefix(st.Path, route)
		}
		if !ours {
			continue
		}
		compared++
		if d := wrong[i]; d != "" {
			t.Errorf("step %d: %s", i, d)
		}
	}
	if compared < 33 {
		t.Errorf("%d steps were compared, want 33 or more", compared)
	}
	t.Logf("%d steps of these routes compared; of all %d steps %d differ", compared, len(s.Steps), len(wrong))
}

// cellOf is a cell as the recorded rows name it.
type cellOf struct{ Table, Family, Row, Qualifier string }

// recordedCells returns the cells that OpenTSDB had stored after the session.
func recordedCells(t *testing.T) map[cellOf]string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "encoding", "testdata", "rows", "plain.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[cellOf]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct{ Table, Family, Row, Qualifier, Value string }
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		out[cellOf{strings.TrimSuffix(c.Table, "2"), c.Family, c.Row, c.Qualifier}] = c.Value
	}
	return out
}

// storedCells returns all cells of the gateway's tables.
func storedCells(t *testing.T, st store.Reader) map[cellOf]string {
	t.Helper()
	out := map[cellOf]string{}
	for _, table := range []string{"tsdb", "tsdb-uid", "tsdb-meta"} {
		sc, err := st.Scan(t.Context(), store.Scan{Table: table})
		if err != nil {
			t.Fatal(err)
		}
		defer sc.Close()
		for {
			rows, err := sc.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				for _, c := range r.Cells {
					at := cellOf{table, string(c.Family), hex.EncodeToString(r.Key), hex.EncodeToString(c.Qualifier)}
					out[at] = hex.EncodeToString(c.Value)
				}
			}
		}
	}
	return out
}

// comparable leaves out points, which the embedded store keeps in another form, and the second in
// which a meta cell was made.
func comparable(t *testing.T, cells map[cellOf]string) map[cellOf]string {
	t.Helper()
	out := map[cellOf]string{}
	for at, value := range cells {
		if at.Table == "tsdb" && !strings.HasPrefix(at.Qualifier, "01") ||
			at.Table == "tsdb" && len(at.Qualifier)%4 == 0 {
			continue
		}
		raw, err := hex.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		qualifier, _ := hex.DecodeString(at.Qualifier)
		switch name := string(qualifier); {
		case name == encoding.TSMetaQualifier:
			m, err := encoding.ParseTSMeta(raw)
			if err != nil || m.Created == 0 {
				t.Errorf("%v: %s: %v", at, raw, err)
			}
			m.Created = 1
			raw = encoding.AppendTSMeta(nil, m)
		case strings.HasSuffix(name, "_meta"):
			m, err := encoding.ParseUIDMeta(raw)
			if err != nil || m.Created == 0 {
				t.Errorf("%v: %s: %v", at, raw, err)
			}
			m.Created = 1
			raw = encoding.AppendUIDMeta(nil, m)
		}
		out[at] = fmt.Sprintf("%q", raw)
	}
	return out
}

// After the session the tables hold, byte for byte, the names, UIDs, counters, meta data and
// annotations that OpenTSDB had stored, and rows of points with the same keys. The embedded store may lack a UIDMeta
// that says nothing but when its UID was assigned, because its mappings say that, too.
func TestMetadata_rows(t *testing.T) {
	t.Run("HBase", func(t *testing.T) {
		b, _, _ := metadataSession(t, onFakeHBase)
		want, got := recordedCells(t), cellsAtEnd(t, b)
		delete(got, cellOf{"tsdb-uid", "id", "00", hex.EncodeToString([]byte(encoding.ChangesQualifier))})
		compareCells(t, want, got)
	})
	t.Run("embedded", func(t *testing.T) {
		b, _, _ := metadataSession(t, open)
		want, mayLack := recordedCells(t), []cellOf{}
		for at, value := range want {
			if kind, ok := createdOnly(t, at, value); ok {
				mayLack = append(mayLack, at)
				created := &struct{ Created int64 }{}
				a := b.Get("api/uid/uidmeta?uid=" + at.Row + "&type=" + kind)
				err := json.Unmarshal([]byte(a.Body), created)
				if err != nil || created.Created < time.Now().Unix()-600 {
					t.Errorf("UIDMeta of %s %s: %d %s, %v: want when it was assigned",
						kind, at.Row, a.Status, a.Body, err)
				}
			}
		}
		got := cellsAtEnd(t, b)
		for _, at := range mayLack {
			if _, ok := got[at]; !ok {
				delete(want, at)
			}
		}
		if len(mayLack) < 10 {
			t.Errorf("%d UIDMeta say only when a UID was assigned, want 10 or more", len(mayLack))
		}
		compareCells(t, want, got)
	})
}

// createdOnly reports whether a recorded cell is a UIDMeta that says nothing but when its UID was assigned, and the
// kind of that.
func createdOnly(t *testing.T, at cellOf, value string) (kind string, ok bool) {
	t.Helper()
	raw, err := hex.DecodeString(value)
	if err != nil {
		t.Fatal(err)
	}
	qualifier, _ := hex.DecodeString(at.Qualifier)
	k, isMeta, ok := encoding.ParseUIDKind(qualifier)
	if at.Table != "tsdb-uid" || !ok || !isMeta {
		return "", false
	}
	m, err := encoding.ParseUIDMeta(raw)
	if err != nil {
		t.Fatal(err)
	}
	rest := encoding.UIDMeta{Type: m.Type, Created: m.Created}
	return k.String(), cmp.Equal(m, rest)
}

// cellsAtEnd closes the gateway, which writes the meta data that wait, and returns the cells of its tables.
func cellsAtEnd(t *testing.T, b *bench) map[cellOf]string {
	t.Helper()
	if err := b.Gateway.Close(); err != nil {
		t.Fatal(err)
	}
	return storedCells(t, b.Store)
}

// compareCells compares what is stored with what OpenTSDB had stored.
func compareCells(t *testing.T, want, got map[cellOf]string) {
	t.Helper()
	if diff := cmp.Diff(comparable(t, want), comparable(t, got)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(dataRows(want), dataRows(got)); diff != "" {
		t.Error(diff)
	}
}

func dataRows(cells map[cellOf]string) map[string]bool {
	rows := map[string]bool{}
	for at := range cells {
		if at.Table == "tsdb" {
			rows[at.Row] = true
		}
	}
	return rows
}

// metadataCall is one call of the second recorded session: names, series, annotations, lookups and
// last points, valid and invalid, by every verb.
type metadataCall struct {
	Method, Path, Body string
	Status             int
	Response           json.RawMessage
	Differs            string // why Downpour's answer differs by design; empty if it does not
}

// clockPermits permit differences that come from the clock of the recording.
var clockPermits = append([]compare.Permit{
	{
		Path:   compare.Path{"**", "lastReceived"},
		Kinds:  []compare.Kind{compare.Value},
		Reason: "when the counter was written",
	},
	{Path: compare.Path{"endTime"}, Kinds: []compare.Kind{compare.Value}, Reason: "the clock, where no end is given"},
	{Path: compare.Path{"*", "timestamp"}, Kinds: []compare.Kind{compare.Value}, Reason: "the point was put now"},
}, compare.Standard...)

// Each call gets the answer that was recorded from OpenTSDB 2.4.1, unless it differs by design. The
// integration test of the same session makes the recording.
func TestMetadata_recorded(t *testing.T) {
	var calls []metadataCall
	gatewaytest.Decode(t, "metadata", &calls)
	b := open(t, func(cfg *gateway.Config) { cfg.AllowDelete = true })
	for _, names := range []string{"metric=sys.cpu.nice,now.metric", "tagk=host,dc", "tagv=web01,lga,web02"} {
		b.Get("api/uid/assign?" + names)
	}
	b.Put(fmt.Sprintf("now.metric %d 42.5 host=web01", time.Now().Unix()),
		"sys.cpu.nice 1357009260 7 host=web01 dc=lga")
	for i := range 4 {
		b.Put(fmt.Sprintf("sys.cpu.nice %d 1 host=web01 dc=lga", 1356998400+60*i),
			fmt.Sprintf("sys.cpu.nice %d 2.5 host=web02 dc=lga", 1356998400+3600*i))
	}
	comparer := compare.Comparer{Permits: clockPermits}
	equal := 0
	for i, c := range calls {
		a := b.Do(c.Method, c.Path, strings.NewReader(c.Body))
		want := compare.Answer{Status: c.Status, Body: c.Response}
		if string(want.Body) == "null" {
			want.Body = nil
		}
		r, err := comparer.Answers(want, compare.Answer{Status: a.Status, Body: []byte(a.Body)})
		switch {
		case err == nil && r.Equal():
			equal++
		case c.Differs == "":
			t.Errorf("call %d: %s %s %s: %v, %v", i, c.Method, c.Path, c.Body, err, r)
		}
	}
	t.Logf("%d of %d answers are equal", equal, len(calls))
}
