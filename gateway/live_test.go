package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"downpour/gateway"
)

// socket is a WebSocket with one subscription, and what it was told.
type socket struct {
	b      *bench
	conn   *websocket.Conn
	query  string
	epoch  string
	seq    uint64
	groups map[int]*liveGroup
}

// liveGroup is a group as messages have it.
type liveGroup struct {
	Group         int
	QueryIndex    int
	Metric        string
	Tags          map[string]string
	AggregateTags []string
	DPS           [][2]json.Number
}

type liveMessage struct {
	Type    string
	ID      string
	Epoch   string
	Seq     uint64
	Results []*liveGroup
	Groups  []*liveGroup
	Removed []int
	Damaged *struct{ Rows int }
	Upserts []struct {
		Group int
		DPS   [][2]json.Number
	}
	Deletes []struct {
		Group int
		TS    []json.Number
	}
	Error *struct {
		Code      int
		Message   string
		Temporary bool
	}
}

func (b *bench) subscribe(query, resume string) *socket {
	b.Helper()
	conn, _, err := (&websocket.Dialer{Subprotocols: []string{"downpour.v1"}}).Dial("ws://"+b.address()+"/api/ws", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	if resume != "" {
		resume = `,"resume":` + resume
	}
	if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"subscribe","id":"a","query":`+query+resume+`}`)); err != nil {
		b.Fatal(err)
	}
	return &socket{b: b, conn: conn, query: query, groups: map[int]*liveGroup{}}
}

// next reads the next message about the subscription and takes it in.
func (s *socket) next() *liveMessage {
	s.b.Helper()
	s.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		_, data, err := s.conn.ReadMessage()
		if err != nil {
			s.b.Fatal(err)
		}
		m := new(liveMessage)
		if err := json.Unmarshal(data, m); err != nil {
			s.b.Fatalf("%s: %v", data, err)
		}
		if m.Type != "heartbeat" {
			s.take(m)
			return m
		}
	}
}

// until reads on until a message is as wanted. Before it only temporary errors may come: with a
// short timeout, a query runs out of time on a busy machine.
func (s *socket) until(what string, wanted func(*liveMessage) bool) {
	s.b.Helper()
	for {
		m := s.next()
		if wanted(m) {
			return
		}
		if m.Type != "error" || !m.Error.Temporary {
			s.b.Fatalf("got %+v, %+v; want %s", m, m.Error, what)
		}
	}
}

func news(m *liveMessage) bool { return m.Type == "delta" || m.Type == "snapshot" }

// take keeps the groups as a client would.
func (s *socket) take(m *liveMessage) {
	if m.Type != "snapshot" && m.Type != "delta" {
		return
	}
	s.seq = m.Seq
	if m.Type == "snapshot" {
		s.epoch, s.groups = m.Epoch, map[int]*liveGroup{}
		for i, g := range m.Results {
			s.groups[i] = g
		}
	}
	for _, g := range m.Groups {
		if old := s.groups[g.Group]; old != nil {
			g.DPS = old.DPS
		}
		s.groups[g.Group] = g
	}
	for _, i := range m.Removed {
		delete(s.groups, i)
	}
	for _, d := range m.Deletes {
		for _, at := range d.TS {
			s.groups[d.Group].set(at, "")
		}
	}
	for _, u := range m.Upserts {
		for _, p := range u.DPS {
			s.groups[u.Group].set(p[0], p[1])
		}
	}
}

// set puts a point into its place, or removes it.
func (g *liveGroup) set(at, value json.Number) {
	i := 0
	for i < len(g.DPS) && number(g.DPS[i][0]) < number(at) {
		i++
	}
	there := i < len(g.DPS) && g.DPS[i][0] == at
	switch {
	case value == "" && there:
		g.DPS = append(g.DPS[:i], g.DPS[i+1:]...)
	case there:
		g.DPS[i][1] = value
	case value != "":
		g.DPS = append(g.DPS[:i], append([][2]json.Number{{at, value}}, g.DPS[i:]...)...)
	}
}

func number(n json.Number) int64 { i, _ := n.Int64(); return i }

// lines returns all points, as metric, tags, aggregate tags, time and value, without the numbers of
// their groups.
func lines(groups []*liveGroup) map[string]bool {
	out := map[string]bool{}
	for _, g := range groups {
		for _, p := range g.DPS {
			out[fmt.Sprint(g.Metric, " ", g.Tags, " ", g.AggregateTags, " ", p[0], " ", p[1])] = true
		}
	}
	return out
}

func (s *socket) lines() map[string]bool {
	var all []*liveGroup
	for _, g := range s.groups {
		all = append(all, g)
	}
	return lines(all)
}

// fresh asks the same over HTTP.
func (s *socket) fresh() map[string]bool {
	s.b.Helper()
	var a answer
	for end := time.Now().Add(patience); ; {
		if a = s.b.post("/api/query?arrays", s.query); a.status != http.StatusRequestTimeout || time.Now().After(end) {
			break
		}
	}
	var results []*liveGroup
	if err := json.Unmarshal([]byte(a.body), &results); err != nil || a.status != http.StatusOK {
		s.b.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return lines(results)
}

// settle takes messages in until the points are those of a fresh query.
func (s *socket) settle() {
	s.b.Helper()
	for want := s.fresh(); ; {
		diff := cmp.Diff(want, s.lines())
		if diff == "" {
			return
		}
		s.b.Logf("waiting: %d points of %d", len(s.lines()), len(want))
		s.next()
	}
}

const liveQuery = `{"start":1356998400,"queries":[{"aggregator":"sum","metric":"m","tags":{"host":"*"}},{"aggregator":"sum","metric":"m","downsample":"1m-avg"}]}`

// A live query waits for a metric that does not exist yet. Its first points come as a snapshot,
// further ones as deltas, which together are what a fresh query answers: after new points, late
// ones, corrected ones and new series.
func TestLive(t *testing.T) {
	b := open(t, nil)
	s := b.subscribe(liveQuery, "")
	m := s.next()
	if m.Type != "error" || m.Error.Code != 400 || !m.Error.Temporary || m.Error.Message != "No such name for 'metrics': 'm'" {
		t.Fatalf("an unknown metric: %+v, %+v; want a temporary 400", m, m.Error)
	}
	began := time.Now()
	b.put("m 1356998500 1 host=a")
	// It may be asked between the names of the put, and before its point: a temporary error for each of
	// the names, or a snapshot without points.
	s.until("a snapshot after the first put", func(m *liveMessage) bool { return m.Type == "snapshot" })
	s.settle()
	if n := len(s.lines()); n != 2 {
		t.Fatalf("after the first put: %d points, want two", n)
	}
	t.Logf("put to snapshot: %s", time.Since(began))
	for _, step := range [][]string{
		{"m 1356998510 2 host=a"},
		{"m 1356998510 2.5 host=a"},
		{"m 1356998400 7 host=a", "m 1357009000 8 host=a"},
		{"m 1356998510 3 host=b", "m 1356998511 3 host=c dc=x"},
	} {
		began := time.Now()
		b.put(step...)
		if m := s.next(); m.Type != "delta" {
			t.Fatalf("after %q: %+v, want a delta", step, m)
		}
		t.Logf("put to delta: %s", time.Since(began))
		s.settle()
	}
}

// A client that resumes on another socket misses nothing: it gets a delta from the same gateway, a
// snapshot from another one.
func TestLive_resume(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998500 1 host=a")
	s := b.subscribe(liveQuery, "")
	s.next()
	s.conn.Close()
	b.put("m 1356998501 2 host=a")
	back := b.subscribe(liveQuery, fmt.Sprintf(`{"epoch":%q,"seq":%d}`, s.epoch, s.seq))
	back.groups, back.epoch = s.groups, s.epoch
	if m := back.next(); m.Type != "delta" {
		t.Errorf("resumed with %+v, want a delta", m)
	}
	back.settle()

	other := &bench{T: t, cfg: b.cfg, store: b.store, g: start(t, b.cfg, b.store)}
	s = other.subscribe(liveQuery, fmt.Sprintf(`{"epoch":%q,"seq":%d}`, back.epoch, back.seq))
	if m := s.next(); m.Type != "snapshot" {
		t.Errorf("another gateway resumed with %+v, want a snapshot", m)
	}
	s.settle()
}

// A query that can never be answered is refused for good; one with an end is answered once.
func TestLive_ends(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998500 1 host=a")
	s := b.subscribe(`{"start":1356998400,"queries":[{"aggregator":"nope","metric":"m"}]}`, "")
	if m := s.next(); m.Type != "error" || m.Error.Temporary || m.Error.Message != "No such aggregation function: nope" {
		t.Errorf("got %+v, %+v; want a final error", m, m.Error)
	}
	s = b.subscribe(`{"start":1356998400,"end":1356998600,"queries":[{"aggregator":"sum","metric":"m"}]}`, "")
	if m := s.next(); m.Type != "snapshot" {
		t.Errorf("got %+v, want a snapshot", m)
	}
	if m := s.next(); m.Type != "complete" {
		t.Errorf("got %+v, want complete", m)
	}
}

// While the store is away a subscriber gets a temporary error, and goes on when it is back.
func TestLive_storeComesBack(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.QueryTimeout = little(t) })
	b.put("m 1356998500 1 host=a")
	s := b.subscribe(liveQuery, "")
	s.until("a snapshot", news)
	b.store.down.Store(true)
	judge := unreachable
	b.store.judge.Store(&judge)
	b.put("m 1356998502 1 host=a") // a change that cannot be read
	s.until("a temporary 424", func(m *liveMessage) bool { return m.Type == "error" && m.Error.Code == 424 && m.Error.Temporary })
	b.store.judge.Store(nil)
	b.put("m 1356998501 1 host=a")
	s.until("news", news)
	s.settle()
}

// A subscriber learns that the store has gone, and that it is back, although nobody writes.
func TestLive_idleStoreGoes(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	b.put("m 1356998500 1 host=a")
	s := b.subscribe(liveQuery, "")
	s.next()
	judge := unreachable
	b.store.judge.Store(&judge)
	if m := s.next(); m.Type != "error" || m.Error.Code != 424 || !m.Error.Temporary {
		t.Errorf("got %+v, %+v; want a temporary 424", m, m.Error)
	}
	b.store.judge.Store(nil)
	if m := s.next(); m.Type != "delta" {
		t.Errorf("got %+v, want a sign that it is there again", m)
	}
	s.settle()
}

// The gateway serves the page.
func TestPage(t *testing.T) {
	b := open(t, nil)
	if a := b.get("/"); a.status != 200 || !strings.Contains(a.body, "<html") && !strings.Contains(a.body, "<!doctype") {
		t.Errorf("got %d %.100s, want a page of HTML", a.status, a.body)
	}
}
