package gateway_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/ipc"

	"downpour/encoding/batch"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
)

// load puts three series over 6 hours, with a point a minute.
func putSixHours(b *bench) {
	b.Helper()
	var lines []string
	for i := range 6 * 60 {
		for h := range 3 {
			lines = append(lines, fmt.Sprintf("m %d %d.%d host=h%d", 1356998400+60*i, i, h, h))
		}
	}
	b.Put(lines...)
}

const sixHours = "/api/query?start=1356998400&end=1357020000&m="

// tree is a node of a trace, with those below it.
type tree struct {
	Name       string
	Attributes map[string]any
	Children   []*tree
}

// find returns all nodes with a name.
func (n *tree) find(name string) (found []*tree) {
	if n.Name == name {
		found = append(found, n)
	}
	for _, c := range n.Children {
		found = append(found, c.find(name)...)
	}
	return found
}

// traced returns the results of an answer and the trace behind them.
func traced(t *testing.T, a answer) (results string, root *tree) {
	t.Helper()
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(a.Body), &all); err != nil || len(all) == 0 {
		t.Fatalf("%d %v: %.300s", a.Status, err, a.Body)
	}
	var last struct{ Trace *tree }
	if err := json.Unmarshal(all[len(all)-1], &last); err != nil || last.Trace == nil {
		t.Fatalf("no trace in %s", all[len(all)-1])
	}
	return fmt.Sprint(string(all[0])), last.Trace
}

// On a pushdown server a sum is made of partial aggregates, with the same bits as per-series
// aggregation gives. The trace names the server and the mode of each part.
func TestMode_andTrace(t *testing.T) {
	b := open(t, nil)
	putSixHours(b)
	cfg := config(0)
	cfg.Pushdown = []string{gatewaytest.Pushdown(t, cfg, b.Store)}
	pushed := serve(t, cfg, b.Store)
	// The first query is cut into parts by hours. After it the gateway knows the size of the rows,
	// which are few enough for one part.
	f := func(query, wantMode string, wantParts int, wantSizes bool) {
		t.Helper()
		results, root := traced(t, pushed.Get(sixHours+query+"&trace=true"))
		want, _ := traced(t, b.Get(sixHours+strings.Split(query, "&")[0]+"&trace=true"))
		if results != want {
			t.Errorf("%s: %.200s, want %.200s", query, results, want)
		}
		rows := 0.0
		for _, p := range root.find("part") {
			stats := p.Attributes["stats"].(map[string]any)
			if p.Attributes["server"] != cfg.Pushdown[0] || p.Attributes["mode"] != wantMode ||
				p.Attributes["accepted"] != true || len(p.find("scan")) != 1 {
				t.Errorf("%s: part %v, want mode %s", query, p.Attributes, wantMode)
			}
			rows += stats["rows"].(float64)
			told, ok := p.Attributes["estimatedBytes"].(float64)
			if read := stats["bytes"].(float64); ok != wantSizes || ok && math.Abs(told-read) > read/100 {
				t.Errorf("%s: a part read %v bytes, estimated were %v", query, read, told)
			}
		}
		if rows != 18 || len(root.find("part")) != wantParts || len(root.find("merge")) != 1 {
			t.Errorf("%s: %d parts, %v rows, want %d and 18", query, len(root.find("part")), rows, wantParts)
		}
	}
	f("sum:5m-avg:m", "partial", 7, false)
	f("sum:5m-avg:m&mode=strict", "strict", 1, true)
	f("median:5m-avg:m", "partial", 1, true)
	f("none:5m-avg:m", "strict", 1, true)
	f("sum:rate:5m-avg:m", "strict", 1, true)
	f("count:5m-avg:m&mode=partial", "partial", 1, true)
	explained := pushed.Get(sixHours + "sum:5m-avg:m&explain=true").Body
	if !strings.Contains(explained, `"mode":"partial"`) ||
		!strings.Contains(explained, `"why":"the same bits, less to ship"`) ||
		!strings.Contains(explained, `"bytes":`) {
		t.Errorf("explain: %.300s", explained)
	}
}

// For many series partial aggregates are at most a tenth of the bytes that their buckets are.
func TestMode_shipsLess(t *testing.T) {
	b := open(t, nil)
	var lines []string
	for h := range 300 {
		for i := range 60 {
			lines = append(lines, fmt.Sprintf("wide %d %d host=h%d", 1356998400+60*i, i+h, h))
		}
	}
	b.Put(lines...)
	cfg := config(0)
	cfg.Pushdown = []string{gatewaytest.Pushdown(t, cfg, b.Store)}
	pushed := serve(t, cfg, b.Store)
	shipped := func(mode string) (bytes float64) {
		_, root := traced(t,
			pushed.Get("/api/query?start=1356998400&end=1357001999&m=sum:1m-avg:wide&trace=true&mode="+mode))
		for _, p := range root.find("part") {
			bytes += p.Attributes["stats"].(map[string]any)["shippedBytes"].(float64)
		}
		return bytes
	}
	if partial, strict := shipped("partial"), shipped("strict"); partial > strict/10 {
		t.Errorf("%v bytes of partial aggregates, %v of series, want at most a tenth", partial, strict)
	}
}

// A series with a gap across the border of two parts makes a sum of partial aggregates inexact. The
// gateway notices, asks again with per-series aggregation, and does so at once at the next query of
// the kind.
func TestMode_fallsBack(t *testing.T) {
	b := open(t, nil)
	putSixHours(b)
	b.Put("m 1356998460 7.5 host=x", "m 1357012800 8.25 host=x")
	cfg := config(0)
	cfg.Pushdown = []string{gatewaytest.Pushdown(t, cfg, b.Store)}
	pushed := serve(t, cfg, b.Store)
	want, _ := traced(t, b.Get(sixHours+"sum:5m-avg:m&trace=true"))
	for i, wantAgain := range []int{1, 0} {
		got, root := traced(t, pushed.Get(sixHours+"sum:5m-avg:m&trace=true"))
		if again := len(root.find("again with per-series aggregation")); got != want || again != wantAgain {
			t.Errorf("time %d: asked again %d times, want %d; %.200s, want %.200s", i, again, wantAgain, got, want)
		}
	}
}

// A partial aggregate has all buckets of its part's hours, with points or not. If they are too
// many, the plan has per-series aggregation from the start; if only the number of groups makes
// them too many, a part finds out and the gateway asks again.
func TestMode_manyBuckets(t *testing.T) {
	b := open(t, nil)
	for h := range 20 {
		b.Put(fmt.Sprintf("few 1356998401 %d host=h%d", h, h), fmt.Sprintf("few 1357019999 %d host=h%d", 2*h, h))
	}
	cfg := config(0)
	cfg.LimitMemory = 8 << 20
	cfg.Pushdown = []string{gatewaytest.Pushdown(t, cfg, b.Store)}
	pushed := serve(t, cfg, b.Store)
	f := func(query, mode string, wantAgain int) {
		t.Helper()
		want, _ := traced(t, b.Get("/api/query?"+query+"&trace=true"))
		got, root := traced(t, pushed.Get("/api/query?"+query+"&trace=true"))
		again := len(root.find("again with per-series aggregation"))
		if got != want || again != wantAgain || !strings.Contains(got, "1357019999") {
			t.Errorf("%s: asked again %d times, want %d; %.200s, want %.200s", query, again, wantAgain, got, want)
		}
		explained := pushed.Get("/api/query?" + query + "&explain=true").Body
		if !strings.Contains(explained, `"mode":"`+mode+`"`) {
			t.Errorf("%s: want mode %s: %.300s", query, mode, explained)
		}
	}
	f("start=1356998400&end=1357020000&m=sum:1s-avg:few", "partial", 0)
	f("start=1&end=1357020000&m=sum:1s-avg:few", "strict", 0)
	f("start=1&end=1357020000&m=sum:1s-avg:few&mode=partial", "strict", 0)
	f("start=1356998400&end=1357020000&m=sum:1s-avg:few%7Bhost=*%7D&mode=partial", "partial", 1)
}

// On a salted table sums of partial aggregates have the bits of per-series aggregation as long as
// no addition rounds, and the query is executed once. If one rounds, the gateway asks again with
// per-series aggregation before all parts have answered, and does so at once the next time.
func TestMode_salted(t *testing.T) {
	salted := func(cfg *gateway.Config) { *cfg = *config(1) }
	b := open(t, salted)
	var lines []string
	for h := range 40 {
		for i := range 3 * 60 {
			lines = append(lines, fmt.Sprintf("whole %d %d host=h%d", 1356998400+60*i, (i*h)%1000-300, h),
				fmt.Sprintf("tenths %d %d.%d host=h%d", 1356998400+60*i, i, (i+h)%10, h))
		}
	}
	b.Put(lines...)
	cfg := config(1)
	cfg.Pushdown = []string{gatewaytest.Pushdown(t, cfg, b.Store)}
	pushed := serve(t, cfg, b.Store)
	f := func(query string, wantAgain, wantPartial int) {
		t.Helper()
		want, _ := traced(t, b.Get("/api/query?start=1356998400&end=1357009199&m="+query+"&trace=true"))
		got, root := traced(t, pushed.Get("/api/query?start=1356998400&end=1357009199&m="+query+"&trace=true"))
		again, runs := len(root.find("again with per-series aggregation")), root.find("run")
		last := runs[len(runs)-1].Attributes
		if got != want || again != wantAgain || (last["partial"] == last["parts"]) != (wantPartial > 0) ||
			last["parts"].(float64) < 20 {
			t.Errorf("%s: asked again %d times, want %d; last run %v; %.200s, want %.200s",
				query, again, wantAgain, last, got, want)
		}
		if parts := len(runs[0].find("part")); wantAgain > 0 && parts >= len(runs[1].find("part")) {
			t.Errorf("%s: %d parts were read before the gateway asked again, want fewer than all", query, parts)
		}
	}
	f("sum:5m-max:whole", 0, 1)
	f("avg:5m-sum:whole", 0, 1)
	f("squareSum:1m-last:whole", 0, 1)
	f("first:5m-max:tenths", 0, 1)
	f("sum:5m-max:tenths", 1, 0)
	f("sum:5m-max:tenths", 0, 0)
	f("dev:5m-max:whole", 0, 0)
}

// loseLastHours makes scans fail from the base time 0x50e25130, which is 2013-01-01 03:00, on.
func loseLastHours(b *bench) {
	lost := func(s store.Scan) error {
		if len(s.Start) >= 7 && string(s.Start[3:7]) >= "\x50\xe2\x51\x30" {
			return store.ErrUnavailable
		}
		return nil
	}
	b.Store.Judge.Store(&lost)
}

// Without allowPartial an incomplete answer is an error that names the missing key ranges; with it
// the answer names them: as JSON, as Arrow, and over a WebSocket.
func TestAllowPartial(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { cfg.QueryTimeout = max(2*time.Second, 4*little(t)) })
	putSixHours(b)
	loseLastHours(b)
	a := askUntil(b, sixHours+"sum:1m-avg:m", answered(503))
	if a.Status != 503 || !strings.Contains(a.Body, `"missing":[["00000150e2`) {
		t.Errorf("%d %.300s, want 503 with the missing ranges", a.Status, a.Body)
	}
	a = askUntil(b, sixHours+"sum:1m-avg:m&allowPartial=true", answered(200))
	if a.Status != 200 || a.Header.Get("Downpour-Missing-Ranges") == "" ||
		!strings.Contains(a.Body, `"1356998400":0.3`) || !strings.Contains(a.Body, `{"missing":[["00000150e2`) ||
		strings.Contains(a.Body, `"1357019940"`) {
		t.Errorf("got %d %v %.300s, want the first hours and the missing ranges", a.Status, a.Header, a.Body)
	}
	a = askUntil(b, sixHours+"sum:1m-avg:m&allowPartial=true", answered(200), "Accept", batch.StreamMediaType)
	r, err := ipc.NewReader(strings.NewReader(a.Body))
	if err != nil {
		t.Fatalf("Arrow: got %d %v, want a stream", a.Status, err)
	}
	defer r.Release()
	m := r.Schema().Metadata()
	if at := m.FindKey(batch.MissingKey); at < 0 || !strings.HasPrefix(m.Values()[at], `[["00000150e2`) {
		t.Errorf("Arrow metadata %v, want the missing ranges", m)
	}
	var text []byte
	for end := time.Now().Add(gatewaytest.Patience); time.Now().Before(end); {
		s := subscribe(b,
			`{"start":1356998400,"end":1357020000,"allowPartial":true,"queries":[{"metric":"m","aggregator":"sum"}]}`,
			"")
		s.conn.SetReadDeadline(end)
		if _, text, err = s.conn.ReadMessage(); err != nil || !strings.Contains(string(text), `"code":408`) {
			break // else it has run out of time, see askUntil
		}
	}
	if err != nil || !strings.Contains(string(text), `"missing":[["00000150e2`) ||
		!strings.Contains(string(text), `[1356998400,`) {
		t.Errorf("%v: %.300s, want a snapshot with the missing ranges", err, text)
	}
}
