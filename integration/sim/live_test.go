package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// follower is a live query over WebSocket, of a client that comes back when its connection ends.
type follower struct {
	c      *clients
	metric string

	mu     sync.Mutex
	groups map[int]*group // nil without a snapshot
	conn   *websocket.Conn
	ended  bool
}

// group is one of a live answer.
type group struct {
	Group  int
	Tags   map[string]string
	Dps    [][2]json.Number
	points map[int64]int64
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
	Error json.RawMessage
}

// follow follows all points of a metric until the follower ends.
func (c *clients) follow(i int) *follower {
	f := &follower{c: c, metric: fmt.Sprint("m", i%2)}
	r := c.w.rand(fmt.Sprint("follower ", i))
	c.followers.Go(func() {
		for {
			gateway := r.IntN(len(c.w.gateways))
			if err := f.once(gateway); err != nil {
				c.w.note("follower %d of %s leaves gateway %d: %v", i, f.metric, gateway, err)
			}
			if f.isEnded() {
				return
			}
			pass(time.Second + time.Duration(r.Int64N(int64(5*time.Second))))
		}
	})
	return f
}

// once subscribes, and takes news until the connection or the query ends.
func (f *follower) once(gateway int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d := websocket.Dialer{Subprotocols: []string{"downpour.v1"}, NetDialContext: f.c.host.DialContext}
	conn, _, err := d.DialContext(ctx, "ws://"+gatewayAddress(gateway)+"/api/ws", nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if !f.begin(conn) {
		return nil
	}
	subscribe := fmt.Sprintf(`{"type":"subscribe","id":"a","query":{"start":%d,"queries":[{"aggregator":"none",`+
		`"metric":%q}]}}`, f.c.w.began.Unix()-before, f.metric)
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
	f.groups, f.conn = nil, conn
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

// take applies a message to the groups, as a client does. Whatever is shown was put once.
func (f *follower) take(gateway int, n news) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.c.w.counted(func(c *Counts) { c.News++ })
	f.c.w.checked("live")
	if n.Type == "snapshot" {
		f.groups = map[int]*group{}
		for i, g := range n.Results {
			g.Group = i
		}
		n.Groups, n.Upserts = n.Results, n.Results
	}
	for _, g := range n.Groups {
		g.points = map[int64]int64{}
		f.groups[g.Group] = g
	}
	for _, i := range n.Removed {
		delete(f.groups, i)
	}
	put := f.c.w.model.snapshot()
	for _, u := range n.Upserts {
		g := f.groups[u.Group]
		for _, p := range u.Dps {
			at, _ := strconv.ParseInt(p[0].String(), 10, 64)
			v, _ := p[1].Int64()
			g.points[at] = v
			id := point{f.metric, g.Tags["host"], at}
			if !put[id].ever(v) {
				f.c.wrong(gateway, "a live query shows %d of %v, and nobody has put it", v, id)
			}
		}
	}
	for _, d := range n.Deletes {
		for _, at := range d.TS {
			n, _ := at.Int64()
			delete(f.groups[d.Group].points, n)
		}
	}
}

// shows returns all points that the follower sees, false before its first snapshot.
func (f *follower) shows() (map[point]int64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[point]int64{}
	for _, g := range f.groups {
		for at, v := range g.points {
			all[point{f.metric, g.Tags["host"], at}] = v
		}
	}
	return all, f.groups != nil
}
