package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// follower is a live query over WebSocket, of a client that comes back when its connection ends.
type follower struct {
	c     *clients
	query subQuery
	// ordered is set if each series that it follows gets points in order only.
	ordered bool

	mu     sync.Mutex
	groups map[int]*group // nil without a snapshot
	final  int64          // the last finalBefore
	conn   *websocket.Conn
	ended  bool
}

// subQuery is what is queried, once or live.
type subQuery struct {
	Aggregator string            `json:"aggregator"`
	Downsample string            `json:"downsample,omitempty"`
	Metric     string            `json:"metric"`
	Tags       map[string]string `json:"tags,omitempty"`
}

// raw reports whether the answer has all points as they were put.
func (q subQuery) raw() bool { return q.Aggregator == "none" && q.Downsample == "" }

// body returns a query over all points.
func (w *World) body(q subQuery) string {
	text, _ := json.Marshal(q)
	return fmt.Sprintf(`{"start":%d,"queries":[%s]}`, w.began.Unix()-before, text)
}

// group is one of a live answer.
type group struct {
	Group  int
	Tags   map[string]string
	Dps    [][2]json.Number
	points map[int64]json.Number
}

// news is a message of a live query.
type news struct {
	Type            string
	Results, Groups []*group
	Upserts         []*group
	Removed         []int
	Deletes         []struct {
		Group int
		TS    []json.Number
	}
	FinalBefore int64
	Error       json.RawMessage
}

// follow begins to follow a query, until the follower ends.
func (c *clients) follow(q subQuery, ordered bool) {
	f := &follower{c: c, query: q, ordered: ordered}
	i := len(c.following)
	c.following = append(c.following, f)
	r := c.w.rand(fmt.Sprint("follower ", i))
	c.followers.Go(func() {
		for {
			gateway := r.IntN(len(c.w.gateways))
			if err := f.once(gateway); err != nil {
				c.w.note("follower %d of %v leaves gateway %d: %v", i, q, gateway, err)
			}
			if f.isEnded() {
				return
			}
			pass(time.Second + time.Duration(r.Int64N(int64(5*time.Second))))
		}
	})
}

// once subscribes, and takes news until the connection or the query ends.
func (f *follower) once(gateway int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d := websocket.Dialer{
		Subprotocols: []string{"downpour.v1", "bearer." + f.c.w.token}, NetDialContext: f.c.host.DialContext,
	}
	conn, _, err := d.DialContext(ctx, "ws://"+gatewayAddress(gateway)+"/api/ws", nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if !f.begin(conn) {
		return nil
	}
	subscribe := fmt.Sprintf(`{"type":"subscribe","id":"a","query":%s}`, f.c.w.body(f.query))
	began := time.Now()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(subscribe)); err != nil {
		return err
	}
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		var n news
		if err := json.Unmarshal(data, &n); err != nil {
			return fmt.Errorf("%w in %.300s", err, data)
		}
		if n.Type == "error" {
			return fmt.Errorf("error after %v: %.300s", time.Since(began), n.Error)
		}
		f.take(gateway, n)
	}
}

func (f *follower) begin(conn *websocket.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.groups, f.final, f.conn = nil, 0, conn
	return !f.ended
}

func (f *follower) isEnded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

func (f *follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended = true; f.conn != nil {
		f.conn.Close()
	}
}

// take applies a message to the groups, as a client does.
func (f *follower) take(gateway int, n news) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.c.w.counted(func(c *Counts) { c.News++ })
	f.c.w.checked("live")
	was := map[point]json.Number{} // what the message may change
	remember := func(g *group, at int64) {
		p := point{f.query.Metric, g.Tags["host"], at}
		if _, ok := was[p]; !ok {
			was[p] = g.points[at]
		}
	}
	forget := func(i int) {
		if g := f.groups[i]; g != nil {
			for at := range g.points {
				remember(g, at)
			}
			delete(f.groups, i)
		}
	}
	if n.Type == "snapshot" {
		for i := range f.groups {
			forget(i)
		}
		f.groups = map[int]*group{}
		for i, g := range n.Results {
			g.Group = i
		}
		n.Groups, n.Upserts = n.Results, n.Results
	}
	for _, g := range n.Groups {
		forget(g.Group)
		g.points = map[int64]json.Number{}
		f.groups[g.Group] = g
	}
	for _, i := range n.Removed {
		forget(i)
	}
	for _, u := range n.Upserts {
		g := f.groups[u.Group]
		for _, p := range u.Dps {
			at, _ := p[0].Int64()
			remember(g, at)
			g.points[at] = p[1]
		}
	}
	for _, d := range n.Deletes {
		g := f.groups[d.Group]
		for _, at := range d.TS {
			n, _ := at.Int64()
			remember(g, n)
			delete(g.points, n)
		}
	}
	f.judge(gateway, was)
	if n.Type != "heartbeat" {
		f.final = n.FinalBefore
	}
}

// judge checks what a message has changed. Of points as they were put: whatever is shown was put once, and nothing is
// taken back that nobody has taken back. Of points in order: none is before what was called final.
func (f *follower) judge(gateway int, was map[point]json.Number) {
	put, hosts := f.c.w.model.snapshot(), map[string]*group{}
	for _, g := range f.groups {
		hosts[g.Tags["host"]] = g
	}
	for p, before := range was {
		now := json.Number("")
		if g := hosts[p.host]; g != nil {
			now = g.points[p.at]
		}
		if f.query.raw() && !put[p].follows(number(before), number(now)) {
			f.c.wrong(gateway, "a live query shows %q of %v after %q, and it was %v", now, p, before, put[p].values)
		}
		if f.ordered && p.at < f.final && now != before {
			f.c.wrong(gateway, "%v of %v was %q and is %q, but final before %d", p, f.query, before, now, f.final)
		}
	}
}

// number returns the value of a point.
func number(text json.Number) int64 {
	v, _ := text.Int64()
	return v // absent for none
}

// shows returns all points that the follower sees, false before its first snapshot.
func (f *follower) shows() (map[point]json.Number, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[point]json.Number{}
	for _, g := range f.groups {
		for at, v := range g.points {
			all[point{f.query.Metric, g.Tags["host"], at}] = v
		}
	}
	return all, f.groups != nil
}
