package ws

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"downpour/encoding"
	"downpour/gateway/live"
)

// page is the documentation whose conversations are replayed.
const page = "../../docs/live.md"

// script answers the queries of the page. Each event of a conversation moves it to the next step.
type script struct {
	mu   sync.Mutex
	step int
}

func (s *script) happen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step++
}

func points(pairs ...any) (p encoding.Points) {
	for i := 0; i < len(pairs); i += 2 {
		v := encoding.FloatValue(0)
		switch x := pairs[i+1].(type) {
		case int:
			v = encoding.IntValue(int64(x))
		case float64:
			v = encoding.FloatValue(x)
		}
		p.Append(1_700_000_000_000+1000*int64(pairs[i].(int)), v)
	}
	return p
}

// ask answers queries of the page's metrics.
func (s *script) ask(_ context.Context, q live.Question, _ time.Time) (live.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Exp {
		return s.percent(q)
	}
	var body struct{ Queries []struct{ Metric string } }
	if err := json.Unmarshal(q.Body, &body); err != nil {
		return live.Answer{}, err
	}
	switch metric := body.Queries[0].Metric; {
	case metric == "huge":
		return live.Answer{}, &live.Error{Code: 413, Message: "too much"}
	case metric == "late" && s.step == 0:
		return live.Answer{}, &live.Error{Code: 400, Message: "No such name for 'metrics': 'late'", Temporary: true}
	case metric != "cpu":
		return live.Answer{Results: []live.Result{{Metric: metric, Points: points(0, 1)}}}, nil
	}
	results := s.cpu()
	p := results[0].Points // a row for each series; points come in order, so what is before the last is final
	return live.Answer{Results: results, Rows: int64(len(results)), FinalBefore: p.Time[p.Len()-1]}, nil
}

// percent answers the expressions of the page.
func (s *script) percent(q live.Question) (live.Answer, error) {
	if strings.Contains(string(q.Body), `"a /"`) {
		return live.Answer{}, &live.Error{
			Code:    400,
			Message: "1:4 parsing error in 'a /': want a variable, a number or (",
		}
	}
	r := live.Result{
		Metric: "percent",
		Key:    "1",
		Tags:   map[string]string{"host": "web01"},
		Points: points(0, 25.0, 10, 50.0),
	}
	if s.step > 0 {
		r.Points = points(0, 25.0, 10, 50.0, 20, 20.0)
	}
	return live.Answer{Results: []live.Result{r}, Rows: 2}, nil
}

func (s *script) cpu() []live.Result {
	first := live.Result{Metric: "cpu", Key: "1", Tags: map[string]string{"host": "web01"}}
	second := live.Result{Metric: "cpu", Key: "2", Tags: map[string]string{"host": "web02"}, Points: points(20, 7)}
	switch s.step {
	case 0:
		first.Points = points(0, 1, 10, 2)
	case 1:
		first.Points = points(0, 1, 10, 2.5, 20, 3)
	case 2:
		first.Points = points(10, 2.5, 20, 3)
		return []live.Result{first, second}
	default:
		first.Tags, first.AggregateTags, first.Points = nil, []string{"host"}, points(10, 2.5, 20, 10)
	}
	return []live.Result{first}
}

// conversations returns the lines of each block of the page that is fenced by ```downpour.
func conversations(t *testing.T) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```downpour\n")[1:] {
		lines, _, _ := strings.Cut(block, "\n```")
		all = append(all, strings.Split(lines, "\n"))
	}
	return all
}

// The server answers each conversation of the page as the page says.
func TestPage(t *testing.T) {
	for i, lines := range conversations(t) {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			s := &script{}
			hub := live.New(live.Config{Ask: s.ask, Interval: 5 * time.Millisecond, Log: quiet})
			b := start(t, func(c *Config) { c.Hub = hub })
			t.Cleanup(hub.Close)
			r := &replay{t: t, b: b, script: s, client: b.dial(), epochs: map[string]string{}}
			for _, line := range lines {
				r.line(line)
			}
		})
	}
	if n := len(conversations(t)); n < 5 {
		t.Errorf("%d conversations on the page, want 5 or more", n)
	}
}

type replay struct {
	t      *testing.T
	b      *bench
	script *script
	client *client
	epochs map[string]string // the page's epochs to the real ones
}

func (r *replay) line(line string) {
	r.t.Helper()
	what, text, _ := strings.Cut(line, " ")
	switch {
	case what == ">":
		for shown, real := range r.epochs {
			text = strings.ReplaceAll(text, fmt.Sprintf(`"epoch":%q`, shown), fmt.Sprintf(`"epoch":%q`, real))
		}
		r.client.send(text)
	case what == "<" && strings.HasPrefix(text, "binary"):
		if m := r.client.read(); m.Type != "binary" || fmt.Sprintf("binary: %d rows", arrowRows(r.t, m.raw)) != text {
			r.t.Errorf("got %s of %d bytes, want %s", m.Type, len(m.raw), text)
		}
	case what == "<":
		r.expect(text)
	case strings.Contains(text, "connection is lost"):
		r.client.conn.Close()
		r.client = r.b.dial()
	case what == "#":
		r.script.happen()
	default:
		r.t.Errorf("line %q begins with none of > < #", line)
	}
}

func (r *replay) expect(text string) {
	r.t.Helper()
	m := r.client.read()
	for m.Type == "heartbeat" {
		m = r.client.read()
	}
	var got, want map[string]any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
	if err := json.Unmarshal([]byte(m.raw), &got); err != nil {
		r.t.Fatalf("%s: %v", m.raw, err)
	}
	if shown, ok := want["epoch"].(string); ok {
		if r.epochs[shown] == "" {
			r.epochs[shown] = m.Epoch
		}
		want["epoch"] = r.epochs[shown]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Fatalf("page (-) and server (+):\n%s", diff)
	}
}

func arrowRows(t *testing.T, data string) (n int64) {
	t.Helper()
	reader, err := ipc.NewReader(bytes.NewReader([]byte(data)))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	for reader.Next() {
		n += reader.Record().NumRows()
	}
	return n
}

// The page's table of close codes has those that the server sends.
func TestPage_closeCodes(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{websocket.CloseGoingAway, websocket.CloseProtocolError, websocket.CloseUnsupportedData,
		websocket.ClosePolicyViolation, websocket.CloseMessageTooBig, websocket.CloseTryAgainLater} {
		if !strings.Contains(string(text), fmt.Sprintf("| %d |", code)) {
			t.Errorf("close code %d is not on the page", code)
		}
	}
}
