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

	"downpour/gateway/gatewaytest"
)

// socket is a WebSocket with one subscription, and what it has received.
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

func subscribe(b *bench, query, resume string) *socket {
	b.Helper()
	conn, _, err := (&websocket.Dialer{Subprotocols: []string{"downpour.v1"}}).Dial("ws://"+b.Address()+"/api/ws", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	if resume != "" {
		resume = `,"resume":` + resume
	}
	if err := conn.WriteMessage(websocket.TextMessage,
		[]byte(`{"type":"subscribe","id":"a","query":`+query+resume+`}`)); err != nil {
		b.Fatal(err)
	}
	return &socket{b: b, conn: conn, query: query, groups: map[int]*liveGroup{}}
}

// next reads the next message about the subscription and takes it in.
func (s *socket) next() *liveMessage {
	s.b.Helper()
	s.conn.SetReadDeadline(time.Now().Add(gatewaytest.Patience))
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
	for end := time.Now().Add(gatewaytest.Patience); ; {
		if a = s.b.Post("/api/query?arrays", s.query); a.Status != http.StatusRequestTimeout || time.Now().After(end) {
			break
		}
	}
	var results []*liveGroup
	if err := json.Unmarshal([]byte(a.Body), &results); err != nil || a.Status != http.StatusOK {
		s.b.Fatalf("%d %s: %v", a.Status, a.Body, err)
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

// The gateway serves the page.
func TestPage(t *testing.T) {
	b := open(t, nil)
	a := b.Get("/")
	if a.Status != 200 || !strings.Contains(a.Body, "<html") && !strings.Contains(a.Body, "<!doctype") {
		t.Errorf("got %d %.100s, want a page of HTML", a.Status, a.Body)
	}
}
