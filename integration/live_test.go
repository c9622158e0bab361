//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"downpour/encoding"
	"downpour/integration/e2e"
)

// liveSocket is one live query over WebSocket and what it received.
type liveSocket struct {
	t      *testing.T
	query  string
	urls   []string // servers that are asked the same afresh
	news   chan liveNews
	groups map[int]*liveGroup
	counts map[string]int
}

type liveGroup struct {
	Group         int
	Metric        string
	Tags          map[string]string
	AggregateTags []string
	DPS           [][2]json.Number
	points        map[json.Number]json.Number
}

type liveNews struct {
	Type            string
	Results, Groups []*liveGroup
	Upserts         []*liveGroup
	Removed         []int
	Deletes         []struct {
		Group int
		TS    []json.Number
	}
	Error json.RawMessage
	err   error
}

func subscribeLive(t *testing.T, ours *e2e.Program, query string, urls ...string) *liveSocket {
	t.Helper()
	address := "ws" + strings.TrimPrefix(ours.URL, "http")
	conn, _, err := (&websocket.Dialer{Subprotocols: []string{"downpour.v1"}}).Dial(
		strings.TrimSuffix(address, "/")+"/api/ws", nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.WriteMessage(websocket.TextMessage,
		[]byte(`{"type":"subscribe","id":"a","query":`+query+`}`)); err != nil {
		t.Fatal(err)
	}
	s := &liveSocket{
		t:      t,
		query:  query,
		urls:   urls,
		news:   make(chan liveNews, 1000),
		groups: map[int]*liveGroup{},
		counts: map[string]int{},
	}
	go func() {
		for {
			var n liveNews
			_, data, err := conn.ReadMessage()
			if err == nil {
				err = json.Unmarshal(data, &n)
			}
			n.err = err
			s.news <- n
			if err != nil {
				return
			}
		}
	}()
	return s
}

// take applies a message to the groups, as a client does.
func (s *liveSocket) take(n liveNews) {
	s.t.Helper()
	if n.err != nil || n.Type == "error" {
		s.t.Fatalf("told %s %s, %v", n.Type, n.Error, n.err)
	}
	s.counts[n.Type]++
	if n.Type == "snapshot" {
		s.groups = map[int]*liveGroup{}
		for i, g := range n.Results {
			g.Group = i
			n.Upserts = append(n.Upserts, g)
		}
		n.Groups = n.Results
	}
	for _, g := range n.Groups {
		g.points = map[json.Number]json.Number{}
		s.groups[g.Group] = g
	}
	for _, i := range n.Removed {
		delete(s.groups, i)
	}
	for _, u := range n.Upserts {
		for _, p := range u.DPS {
			s.groups[u.Group].points[p[0]] = p[1]
		}
	}
	for _, d := range n.Deletes {
		for _, at := range d.TS {
			delete(s.groups[d.Group].points, at)
		}
	}
}

func (s *liveSocket) lines() []string {
	for _, g := range s.groups {
		g.DPS = nil
		for at, v := range g.points {
			g.DPS = append(g.DPS, [2]json.Number{at, v})
		}
	}
	return liveLines(slices.Collect(maps.Values(s.groups)))
}

// liveLines holds a line for each point. Values are compared as numbers, because the two servers
// write doubles differently.
func liveLines(groups []*liveGroup) (lines []string) {
	for _, g := range groups {
		slices.Sort(g.AggregateTags)
		for _, p := range g.DPS {
			v, _ := p[1].Float64()
			lines = append(lines, fmt.Sprint(g.Metric, " ", g.Tags, " ", g.AggregateTags, " ", p[0], " ", v))
		}
	}
	slices.Sort(lines)
	return lines
}

func (s *liveSocket) fresh(ctx context.Context, url string) []string {
	s.t.Helper()
	a := must[e2e.Answer](s.t)(e2e.Post(ctx, strings.TrimSuffix(url, "/")+"/api/query?arrays=true", s.query))
	var groups []*liveGroup
	if err := json.Unmarshal(a.Body, &groups); err != nil || a.Status != 200 {
		s.t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
	return liveLines(groups)
}

// settle takes messages in until the groups are what every server answers now, and returns how long
// that took.
func (s *liveSocket) settle(ctx context.Context, what string) time.Duration {
	s.t.Helper()
	began := time.Now()
	ticker := time.NewTicker(300 * time.Millisecond)
	defer ticker.Stop()
	for {
		diff := ""
		for _, url := range s.urls {
			if d := cmp.Diff(s.fresh(ctx, url), s.lines()); d != "" {
				diff = fmt.Sprintf("%s: fresh (-), live (+)\n%s", url, d)
			}
		}
		if diff == "" {
			took := time.Since(began).Round(10 * time.Millisecond)
			s.t.Logf("%s: settled after %s, messages so far %v", what, took, s.counts)
			return took
		}
		select {
		case n := <-s.news:
			s.take(n)
		case <-ticker.C:
		case <-ctx.Done():
			s.t.Fatalf("%s: not settled after %s; %s", what, time.Since(began), diff)
		}
	}
}

// While a real OpenTSDB writes, appends and compacts on a real HBase, a live query shows what both
// servers answer when they are asked afresh: after points in order, late, corrected, of another
// type, in milliseconds and of new series.
func TestLive_openTSDBWrites(t *testing.T) {
	t.Parallel()
	for _, l := range short("plain") {
		if l.name == "wide" {
			continue // as salted
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel() // the layouts mostly wait for late points
			ctx := within(t, 8*time.Minute)
			tables := createTables(t)
			tsd := l.openTSDB(t, tables)
			ours := l.gateway(t, tables, nil)
			now := time.Now().Unix()
			at := func(ago int64, value, host string, more ...string) e2e.Point {
				p := e2e.Point{
					Metric:    "live.m",
					Timestamp: now - ago,
					Value:     []byte(value),
					Tags:      map[string]string{"host": host},
				}
				for i := 0; i < len(more); i += 2 {
					p.Tags[more[i]] = more[i+1]
				}
				return p
			}
			var first []e2e.Point
			for ago := int64(9_000); ago > 60; ago -= 30 {
				first = append(first, at(ago, fmt.Sprint(ago%17), "a"),
					at(ago+7, fmt.Sprintf("%d.25", ago%13), "b", "dc", "x"))
			}
			putOneByOne(ctx, t, tsd.URL, first[:2])
			put(ctx, t, tsd.URL, first)
			query := `{"start":"3h-ago","queries":[{"metric":"live.m","aggregator":"sum","downsample":"1m-avg"},
				{"metric":"live.m","aggregator":"avg","tags":{"host":"*"}},` +
				`{"metric":"live.m","aggregator":"max","rate":true},
				{"metric":"live.m","aggregator":"sum","downsample":"7m-max"},` +
				`{"metric":"live.m","aggregator":"zimsum"}]}`
			s := subscribeLive(t, ours, query, ours.URL, tsd.URL)
			s.settle(ctx, "snapshot")
			ms := at(0, "5", "a")
			ms.Timestamp = (now-20)*1000 + 123
			for _, step := range []struct {
				what   string
				points []e2e.Point
			}{
				{"in order", []e2e.Point{at(30, "11", "a"), at(29, "3.5", "b", "dc", "x")}},
				{"in order again", []e2e.Point{at(28, "12", "a")}},
				{"milliseconds", []e2e.Point{ms}},
				{"corrected", []e2e.Point{at(28, "13", "a")}},
				{"late, this hour or the one before", []e2e.Point{at(1_805, "77", "a")}},
				{"late, two hours ago", []e2e.Point{at(7_205, "-4", "a")}},
				{"a new series, late", []e2e.Point{at(5_001, "9", "c", "dc", "y")}},
				{"a new series, now", []e2e.Point{at(3, "9", "d")}},
			} {
				if step.what == "corrected" && l.compacted {
					continue // a second value next to a compacted one fails queries
				}
				put(ctx, t, tsd.URL, step.points)
				s.settle(ctx, step.what)
			}
			if l.compacted {
				awaitOldCompacted(ctx, t, s, tables, now)
				s.settle(ctx, "compacted")
				put(ctx, t, tsd.URL, []e2e.Point{at(7_206, "-5", "b", "dc", "x")})
				s.settle(ctx, "late after compaction")
			}
			put(ctx, t, ours.URL, []e2e.Point{at(2, "15", "a")})
			s.settle(ctx, "put here")
		})
	}
}

// awaitOldCompacted asks the TSD until each row of past hours has one cell. In the meantime the
// live query goes on to show what both servers answer.
func awaitOldCompacted(ctx context.Context, t *testing.T, s *liveSocket, tables e2e.Tables, now int64) {
	t.Helper()
	old := encoding.KeyTime(encoding.Hour(now - 7_200))
	err := e2e.Until(ctx, 500*time.Millisecond, func(ctx context.Context) error {
		s.settle(ctx, "while compacting")
		cells, err := hbase(t).Admin.Scan(ctx, tables.Data)
		if err != nil {
			return err
		}
		rows := map[string]int{}
		for _, c := range cells {
			k, err := encoding.DefaultSchema().ParseRowKey(c.Row)
			if err != nil {
				return err
			}
			if rows[string(c.Row)]++; k.BaseTime <= old && rows[string(c.Row)] > 1 {
				return fmt.Errorf("row %x has more than one cell", c.Row)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
