//go:build integration

package integration

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"downpour/integration/e2e"
)

// growthLimit is how much memory bad input may cost the process, at its worst
// moment.
const growthLimit = 256 << 20

// Bad input gets a clear error, the process lives, its memory grows little, and
// what was acknowledged before is still there.
func TestBadInput(t *testing.T) {
	t.Parallel()
	ours := embedded(t, nil)
	ctx := within(t, 5*time.Minute)
	put(ctx, t, ours.URL, introduce())
	before := must[e2e.Memory](t)(ours.Process.Memory())
	for _, c := range []struct {
		name string
		try  func(ctx context.Context, t *testing.T, p *e2e.Program)
	}{
		{"broken telnet lines", brokenLines},
		{"telnet line without end", endlessLine},
		{"bad JSON", badJSON},
		{"unknown names", unknownNames},
		{"body of 100 MB", hugeBody},
		{"gzip bomb", gzipBomb},
		{"end before start", endBeforeStart},
		{"1,000 sub-queries", manySubQueries},
		{"a picture of 10^10 pixels", hugePicture},
		{"foreign origin", foreignOrigin},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.try(within(t, time.Minute), t, ours)
			alive(within(t, time.Minute), t, ours)
			after := must[e2e.Memory](t)(ours.Process.Memory())
			if grown := after.Peak - before.Resident; grown > growthLimit {
				t.Errorf("memory grew by %d MiB at its peak, want at most %d", grown>>20, growthLimit>>20)
			}
		})
	}
	after := must[e2e.Memory](t)(ours.Process.Memory())
	t.Logf("resident before %d MiB, peak %d MiB", before.Resident>>20, after.Peak>>20)
}

// alive checks that the process answers and still has the points that were put at first.
func alive(ctx context.Context, t *testing.T, p *e2e.Program) {
	t.Helper()
	if err := p.Process.Err(); err != nil {
		t.Fatalf("the process ended: %v\n%s", err, p.Process.LogTail(30))
	}
	a := must[e2e.Answer](t)(e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&m=count:1h-count:load.int",
		p.URL, dataStart-7200, dataStart)))
	if a.Status != http.StatusOK || !strings.Contains(string(a.Body), "load.int") {
		t.Errorf("query afterwards: status %d: %.300s", a.Status, a.Body)
	}
}

// refused checks that an answer is an error in OpenTSDB's form.
func refused(t *testing.T, a e2e.Answer, status int, message string) {
	t.Helper()
	var body struct {
		Error struct {
			Code    int
			Message string
		}
	}
	err := json.Unmarshal(a.Body, &body)
	if err != nil || a.Status != status || body.Error.Code != status || !strings.Contains(body.Error.Message, message) {
		t.Errorf("status %d, %v, %.300s; want %d and a message with %q", a.Status, err, a.Body, status, message)
	}
}

func brokenLines(ctx context.Context, t *testing.T, p *e2e.Program) {
	for _, line := range []string{
		"put", "put x", "put load.int now 1 host=a", "put load.int 1356998400 x host=a", "put load.int 1356998400 1",
		"put load.int 1356998400 1 host", "put bad!name 1356998400 1 host=a", "put load.int -5 1 host=a",
		"put load.int 1356998400 1 host=a=b=c", "nonsense", "\x00\x01\x02\xff\xfe",
		"put load.int 1356998400 99999999999999999999 host=a",
	} {
		c := must[*telnet](t)(dialTelnet(ctx, p.Addr))
		fmt.Fprintf(c.out, "%s\n", line)
		answer, err := c.halfClose()
		if err != nil || strings.TrimSpace(answer) == "" {
			t.Errorf("line %q: answer %q, %v; want an error line", line, answer, err)
		}
		c.Close()
	}
}

// hugePicture asks for pictures that no memory could hold.
func hugePicture(ctx context.Context, t *testing.T, p *e2e.Program) {
	for wxh, status := range map[string]int{
		"100000x100000":            400,
		"32767x32767":              413,
		"99999999999999999999x100": 400,
		"32767x300":                413,
	} {
		url := fmt.Sprintf("%s/q?start=%d&end=%d&m=sum:load.int&wxh=%s", p.URL, dataStart-7200, dataStart, wxh)
		for _, form := range []string{"png", "svg", "json"} {
			a := must[e2e.Answer](t)(e2e.Get(ctx, url+"&"+form))
			if a.Status != status || len(a.Body) > 4096 {
				t.Errorf("%s of %s: status %d, %d bytes, want %d", form, wxh, a.Status, len(a.Body), status)
			}
		}
	}
}

// endlessLine sends 64 MiB without a newline; the server must cut it off or
// answer, and must not keep it.
func endlessLine(ctx context.Context, t *testing.T, p *e2e.Program) {
	c := must[*telnet](t)(dialTelnet(ctx, p.Addr))
	defer c.Close()
	var err error
	chunk := bytes.Repeat([]byte("put "), 1<<14)
	for range 1 << 10 {
		if _, err = c.Write(chunk); err != nil {
			break
		}
	}
	if err == nil {
		answer, err := c.halfClose()
		if err == nil && strings.TrimSpace(answer) == "" {
			t.Error("64 MiB without a newline: no error and no answer, want one of them")
		}
	}
}

func badJSON(ctx context.Context, t *testing.T, p *e2e.Program) {
	for _, path := range []string{"/api/put", "/api/query"} {
		for _, body := range []string{`{`, `[{"metric":}]`, `{bad`, "\x00", strings.Repeat("[", 100000)} {
			refused(t, must[e2e.Answer](t)(e2e.Post(ctx, p.URL+path, body)), 400, "")
		}
	}
}

func unknownNames(ctx context.Context, t *testing.T, p *e2e.Program) {
	f := func(m, message string) {
		t.Helper()
		a := must[e2e.Answer](t)(e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&m=%s", p.URL, dataStart, m)))
		refused(t, a, 400, message)
	}
	f("sum:no.such.metric", "No such name for 'metrics': 'no.such.metric'")
	f("sum:load.int%7Bnokey=web01%7D", "No such name for 'tagk': 'nokey'")
	f("sum:load.int%7Bhost=nobody%7D", "No such name for 'tagv': 'nobody'")
}

// hugeBody puts 100 MB: one valid array of points, streamed.
func hugeBody(ctx context.Context, t *testing.T, p *e2e.Program) {
	point := `{"metric":"load.int","timestamp":1356998400,"value":1,"tags":{"host":"web01","dc":"lga"}},`
	body := io.MultiReader(strings.NewReader("["), io.LimitReader(&repeat{text: point}, 100<<20))
	refusedOrCut(ctx, t, p.URL+"/api/put", body, nil)
}

// gzipBomb sends 1 GiB of blanks, compressed to 1 MB, as a put and as a query.
func gzipBomb(ctx context.Context, t *testing.T, p *e2e.Program) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.CopyN(z, &repeat{text: strings.Repeat(" ", 1<<16)}, 1<<30); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/put", "/api/query"} {
		refusedOrCut(ctx, t, p.URL+path, bytes.NewReader(packed.Bytes()), http.Header{"Content-Encoding": {"gzip"}})
	}
}

// refusedOrCut sends a body that is too large. The server may answer while the body is still sent,
// and then cut the connection.
func refusedOrCut(ctx context.Context, t *testing.T, url string, body io.Reader, header http.Header) {
	t.Helper()
	req := must[*http.Request](t)(http.NewRequestWithContext(ctx, http.MethodPost, url, body))
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			t.Errorf("%s: no answer: %v", url, err)
		}
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%s: status %d: %s; want 413", url, resp.StatusCode, text)
	}
}

// repeat reads as its text for ever.
type repeat struct {
	text string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	for n := 0; n < len(p); {
		c := copy(p[n:], r.text[r.at:])
		n += c
		r.at = (r.at + c) % len(r.text)
	}
	return len(p), nil
}

func endBeforeStart(ctx context.Context, t *testing.T, p *e2e.Program) {
	a := must[e2e.Answer](t)(e2e.Get(ctx, p.URL+"/api/query?start=1356998410&end=1356998400&m=sum:load.int"))
	refused(t, a, 400, "End time [1356998400000] must be greater than the start time [1356998410000]")
}

// manySubQueries asks 1,000 sub-queries at once: they may be answered or refused, but must end.
func manySubQueries(ctx context.Context, t *testing.T, p *e2e.Program) {
	sub := strings.TrimSuffix(strings.Repeat(`{"metric":"load.int","aggregator":"sum"},`, 1000), ",")
	a := must[e2e.Answer](t)(e2e.Post(ctx, p.URL+"/api/query",
		fmt.Sprintf(`{"start":%d,"end":%d,"queries":[%s]}`, dataStart-7200, dataStart+7200, sub)))
	if a.Status != 200 {
		refused(t, a, a.Status, "")
		if a.Status != 400 && a.Status != 413 {
			t.Errorf("status %d, want 200, 400 or 413", a.Status)
		}
	}
}

func foreignOrigin(ctx context.Context, t *testing.T, p *e2e.Program) {
	header := http.Header{"Origin": {"http://evil.example"}}
	dialer := websocket.Dialer{Subprotocols: []string{"downpour.v1"}}
	conn, resp, err := dialer.DialContext(ctx, "ws://"+p.Addr+"/api/ws", header)
	if err == nil {
		conn.Close()
		t.Fatal("a WebSocket from another origin was opened")
	}
	if resp == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("answer %+v, %v; want 403", resp, err)
	}
	conn, _, err = dialer.DialContext(ctx, "ws://"+p.Addr+"/api/ws", http.Header{"Origin": {p.URL}})
	if err != nil {
		t.Fatalf("a WebSocket from the gateway's own page: error %v, want none", err)
	}
	conn.Close()
}
