package gateway_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"downpour/encoding/seedtest"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// expSocket is a WebSocket with one live request for expressions, and what a client keeps
// of it.
type expSocket struct {
	b      *bench
	conn   *websocket.Conn
	body   string
	epoch  string
	seq    uint64
	groups map[int]*expLiveGroup
}

// expLiveGroup is a group: what describes it, and its values by time in ms.
type expLiveGroup struct {
	about  string
	points map[int64]float64
}

// expMessage is a message of the server.
type expMessage struct {
	Type            string
	Epoch           string
	Seq             uint64
	Binary          bool
	Results, Groups []struct {
		Group, QueryIndex int
		Metric            string
		Tags              map[string]string
		AggregateTags     []string
		DPS               [][2]json.RawMessage
	}
	Removed []int
	Upserts []struct {
		Group int
		DPS   [][2]json.RawMessage
	}
	Deletes []struct {
		Group int
		TS    []int64
	}
	Error struct {
		Code      int
		Message   string
		Temporary bool
	}
}

// subscribeExp subscribes to a request; more are further fields of the message.
func subscribeExp(b *bench, body, more string) *expSocket {
	b.Helper()
	conn, _, err := (&websocket.Dialer{Subprotocols: []string{"downpour.v1"}}).Dial("ws://"+b.Address()+"/api/ws", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	if err := conn.WriteMessage(websocket.TextMessage,
		[]byte(`{"type":"subscribe","id":"a","exp":`+body+more+`}`)); err != nil {
		b.Fatal(err)
	}
	return &expSocket{b: b, conn: conn, body: body, groups: map[int]*expLiveGroup{}}
}

// next reads the next message about the subscription and takes it in.
func (s *expSocket) next() *expMessage {
	s.b.Helper()
	for {
		m := new(expMessage)
		if err := json.Unmarshal(s.read(), m); err != nil {
			s.b.Fatal(err)
		}
		if m.Type != "heartbeat" {
			s.take(m)
			return m
		}
	}
}

func (s *expSocket) read() []byte {
	s.b.Helper()
	s.conn.SetReadDeadline(time.Now().Add(gatewaytest.Patience))
	_, data, err := s.conn.ReadMessage()
	if err != nil {
		s.b.Fatal(err)
	}
	return data
}

// take keeps the groups as a client would.
func (s *expSocket) take(m *expMessage) {
	s.b.Helper()
	if m.Type != "snapshot" && m.Type != "delta" {
		return
	}
	s.seq = m.Seq
	if m.Type == "snapshot" {
		s.epoch, s.groups = m.Epoch, map[int]*expLiveGroup{}
	}
	for i, g := range slices.Concat(m.Results, m.Groups) {
		if m.Type == "snapshot" {
			g.Group = i
		}
		if s.groups[g.Group] == nil {
			s.groups[g.Group] = &expLiveGroup{points: map[int64]float64{}}
		}
		s.groups[g.Group].about = fmt.Sprint(g.QueryIndex, " ", g.Metric, " ", g.Tags, " ", g.AggregateTags)
		s.set(g.Group, g.DPS)
	}
	for _, i := range m.Removed {
		delete(s.groups, i)
	}
	for _, u := range m.Upserts {
		s.set(u.Group, u.DPS)
	}
	for _, d := range m.Deletes {
		for _, t := range d.TS {
			delete(s.groups[d.Group].points, t)
		}
	}
	if m.Binary {
		s.takeArrow(s.read())
	}
}

func (s *expSocket) set(group int, dps [][2]json.RawMessage) {
	s.b.Helper()
	for _, p := range dps {
		t, err := strconv.ParseInt(string(p[0]), 10, 64)
		if err != nil {
			s.b.Fatal(err)
		}
		s.groups[group].points[t] = floatOf(s.b, p[1])
	}
}

// float reads a value of either form of answer.
func floatOf(b *bench, text json.RawMessage) float64 {
	b.Helper()
	v, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// takeArrow takes in the points of a binary message.
func (s *expSocket) takeArrow(data []byte) {
	s.b.Helper()
	r, err := ipc.NewReader(strings.NewReader(string(data)))
	if err != nil {
		s.b.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		rec := r.Record()
		column := func(name string) int { return r.Schema().FieldIndices(name)[0] }
		for i := range int(rec.NumRows()) {
			group := int(rec.Column(column("group")).(*array.Int32).Value(i))
			t := int64(rec.Column(column("timestamp")).(*array.Timestamp).Value(i))
			if rec.Column(column("op")).(*array.Uint8).Value(i) == 1 {
				delete(s.groups[group].points, t)
				continue
			}
			s.groups[group].points[t] = rec.Column(column("value")).(*array.Float64).Value(i)
		}
	}
	if r.Err() != nil {
		s.b.Fatal(r.Err())
	}
}

// lines returns the groups and points as texts, without the numbers of the groups.
func (s *expSocket) lines() (all []string) {
	for _, g := range s.groups {
		all = append(all, g.about)
		for t, v := range g.points {
			all = append(all, fmt.Sprint(g.about, " ", t, " ", v))
		}
	}
	slices.Sort(all)
	return all
}

// fresh asks the same over HTTP and returns the answer as lines does, or the error's message.
func (s *expSocket) fresh() (all []string, fault string) {
	s.b.Helper()
	var out struct {
		Outputs []struct {
			ID   string
			DPS  [][]json.RawMessage
			Meta []struct {
				CommonTags     map[string]string
				AggregatedTags []string
			}
		}
		Error struct{ Message string }
	}
	a := s.b.Post("/api/query/exp", s.body)
	if err := json.Unmarshal([]byte(a.Body), &out); err != nil {
		s.b.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
	for i, o := range out.Outputs {
		for column := 1; column < len(o.Meta); column++ { // the first is that of the times
			m := o.Meta[column]
			about := fmt.Sprint(i, " ", o.ID, " ", m.CommonTags, " ", m.AggregatedTags)
			all = append(all, about)
			for _, row := range o.DPS {
				all = append(all, fmt.Sprint(about, " ", string(row[0]), " ", floatOf(s.b, row[column])))
			}
		}
	}
	slices.Sort(all)
	return all, out.Error.Message
}

// settle takes messages in until the groups, or the error, are those of a fresh request.
func (s *expSocket) settle(last *expMessage) *expMessage {
	s.b.Helper()
	want, fault := s.fresh()
	for {
		if last != nil && fault != "" && last.Type == "error" && last.Error.Message == fault {
			return last
		}
		if fault == "" && (last == nil || last.Type != "error") && cmp.Equal(want, s.lines()) {
			return last
		}
		s.b.Logf("waiting for %d lines and the error %q; there are %d", len(want), fault, len(s.lines()))
		last = s.next()
	}
}

// liveRatio is a request with three outputs: an expression, one that uses it, and a metric.
func liveRatio(operator, downsampler string) string {
	return fmt.Sprintf(`{"time":{"start":1356998400,"aggregator":"sum"%s},`+
		`"filters":[{"id":"f","tags":[{"type":"wildcard","tagk":"host","filter":"*","groupBy":true}]}],
	"metrics":[{"id":"a","metric":"m","filter":"f","fillPolicy":{"policy":"nan"}},{"id":"b","metric":"n","filter":"f"}],
	"expressions":[{"id":"e","expr":"a / (a + b) * 100","join":{"operator":%q}},{"id":"g","expr":"e - 50"}],`+
		`"outputs":[{"id":"g","alias":"x"},{"id":"e"},{"id":"a"}]}`, downsampler, operator)
}

// After any puts snapshot and deltas give what POST /api/query/exp answers, as JSON and as Arrow:
// after late points, corrected ones, new series and series without a partner in the expression.
func TestExpLive_law(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }

	for range 4 {
		b := open(t, nil)
		point := func() string {
			return fmt.Sprintf("%s %d %d host=%s",
				pick("m", "n"), 1356998400+rng.IntN(600)*10, rng.IntN(9), pick("x", "y", "z")) + pick("", "", " dc=u")
		}
		b.Put("m 1356998400 1 host=x", "n 1356998400 3 host=x")

		body := liveRatio(pick("union", "intersection"), pick("", `,"downsampler":{"interval":"1m","aggregator":"avg"}`,
			`,"downsampler":{"interval":"90d","aggregator":"avg"}`))
		sockets := []*expSocket{subscribeExp(b, body, ""), subscribeExp(b, body, `,"format":"arrow"`)}
		last := make([]*expMessage, len(sockets))
		for range 8 {
			for i, s := range sockets {
				last[i] = s.settle(last[i])
			}
			points := make([]string, 1+rng.IntN(4))
			for i := range points {
				points[i] = point()
			}
			t.Log(points)
			b.Put(points...)
		}
		for i, s := range sockets {
			s.settle(last[i])
		}
		if metrics := b.Get("/metrics").Body; !strings.Contains(metrics, "\ndownpour_live_queries 1\n") ||
			!strings.Contains(metrics, "\ndownpour_live_subscribers 2\n") {
			t.Error("equal requests do not share an evaluator")
		}
	}
}

// The memory of a live request's tables is reserved before they are computed; a request for which
// there is not enough is refused.
func TestExpLive_memory(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.Memory = "64MiB" })
	b.Put("m 1356998400 1 host=x")
	// 40,000 points, a second apart: the tables of 60 expressions over them do not fit in 64 MiB.
	lines := make([]string, 0, 40_000)
	for i := range cap(lines) {
		lines = append(lines, fmt.Sprintf("m %d 1 host=x", 1356998400+i))
	}
	b.Put(lines...)
	var expressions []string
	for i := range 60 {
		expressions = append(expressions, fmt.Sprintf(`{"id":"e%d","expr":"a + %dd"}`, i, i))
	}
	s := subscribeExp(b, `{"time":{"start":1356998400,"aggregator":"sum"},"metrics":[{"id":"a","metric":"m"}],`+
		`"expressions":[`+strings.Join(expressions, ",")+`]}`, "")
	if m := s.next(); m.Type != "error" || m.Error.Code != 413 {
		t.Errorf("got a %s, %+v; want 413", m.Type, m.Error)
	}
	s.conn.Close()
	b.Settled()
}
