package story

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// live is a live query, with what it shows.
type live struct {
	at     *known // where it is
	conn   Socket
	in     chan received
	kind   string // query or exp
	query  string
	epoch  string
	seq    uint64
	groups map[int]*group
}

// group is one of a live answer.
type group struct {
	Group         int               `json:"-"`
	Metric        string            `json:"metric"`
	Tags          map[string]string `json:"tags"`
	AggregateTags []string          `json:"aggregateTags"`
	DPS           [][2]json.Number  `json:"dps"`
}

// message is one of a live query.
type message struct {
	Type    string
	Epoch   string
	Seq     uint64
	Results []*group
	Groups  []struct {
		group
		Group int
	}
	Removed []int
	Upserts []struct {
		Group int
		DPS   [][2]json.Number
	}
	Deletes []struct {
		Group int
		TS    []json.Number
	}
}

func (r *run) subscribe(s *Step) (string, error) {
	name, kind, _ := strings.Cut(s.Args, " ")
	return "", r.follow(name, cmp.Or(kind, "query"), strings.Join(s.Input, ""), "")
}

func (r *run) resume(s *Step) (string, error) {
	from, to, _ := strings.Cut(s.Args, " AS ")
	old, err := r.live(from)
	if err != nil {
		return "", err
	}
	from = fmt.Sprintf(`,"resume":{"epoch":%q,"seq":%d}`, old.epoch, old.seq)
	if err := r.follow(to, old.kind, old.query, from); err != nil {
		return "", err
	}
	l := r.lives[to]
	l.epoch, l.seq, l.groups = old.epoch, old.seq, maps.Clone(old.groups)
	return "", nil
}

// follow subscribes to a query, or to expressions, on a socket of its own.
func (r *run) follow(name, kind, query, more string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := r.place.Socket(ctx, "ws://"+r.address+"/api/ws")
	if err != nil {
		return err
	}
	l := &live{
		at:     r.known,
		conn:   conn,
		in:     make(chan received, backlog),
		kind:   kind,
		query:  query,
		groups: map[int]*group{},
	}
	r.lives[name] = l
	go l.read()
	const text = 1
	return conn.WriteMessage(text, []byte(`{"type":"subscribe","id":"a","`+kind+`":`+query+more+`}`))
}

func (r *run) leave(s *Step) (string, error) {
	l, err := r.live(s.Args)
	if err != nil {
		return "", err
	}
	return "", l.conn.Close()
}

func (r *run) live(name string) (*live, error) {
	l := r.lives[name]
	if l == nil {
		return nil, fmt.Errorf("got the live query %q, want one of %v", name, slices.Collect(maps.Keys(r.lives)))
	}
	return l, nil
}

// unnamed are the parts of a message that say nothing in a story: its epoch is drawn, its id is always the same, and
// its watermark depends on the moment.
var unnamed = regexp.MustCompile(`,"id":"a"|,"epoch":"[^"]*"|,"finalBefore":\d+`)

func (r *run) next(s *Step) (string, error) {
	l, err := r.live(s.Args)
	if err != nil {
		return "", err
	}
	text, err := l.receive()
	text = planted.ReplaceAllString(unnamed.ReplaceAllString(text, ""), "")
	if len(s.Input) > 0 {
		only, err := regexp.Compile(strings.TrimPrefix(s.Input[0], "Match: "))
		if err != nil {
			return "", err
		}
		text = strings.Join(only.FindAllString(text, -1), "\n")
	}
	return text, err
}

// received is a message of a live query, or why no other comes.
type received struct {
	data []byte
	err  error
}

// backlog is how many messages a story can leave unread.
const backlog = 10_000

// read reads until the socket is closed: a client that reads nothing is cut off.
func (l *live) read() {
	for {
		_, data, err := l.conn.ReadMessage()
		l.in <- received{data, err}
		if err != nil {
			return
		}
	}
}

// receive takes the next message, and returns its text.
func (l *live) receive() (string, error) {
	over := time.After(patience) // heartbeats come as long as the socket is open
	for {
		var next received
		select {
		case next = <-l.in:
		case <-over:
			return "", fmt.Errorf("no message in %v", patience)
		}
		if next.err != nil {
			return "", next.err
		}
		var m message
		if err := json.Unmarshal(next.data, &m); err != nil {
			return string(next.data), err
		}
		if m.Type != "heartbeat" {
			return string(next.data), l.take(m)
		}
	}
}

// take changes what the live query shows, as a client does.
func (l *live) take(m message) error {
	switch m.Type {
	case "snapshot":
		l.epoch, l.groups = m.Epoch, map[int]*group{}
		for i, g := range m.Results {
			l.groups[i] = g
		}
	case "delta":
	default:
		return nil
	}
	l.seq = m.Seq
	for _, described := range m.Groups {
		g := described.group
		if old := l.groups[described.Group]; old != nil {
			g.DPS = old.DPS
		}
		l.groups[described.Group] = &g
	}
	for _, i := range m.Removed {
		delete(l.groups, i)
	}
	for _, u := range m.Upserts {
		g := l.groups[u.Group]
		if g == nil {
			return fmt.Errorf("points of group %d, which is not there", u.Group)
		}
		for _, p := range u.DPS {
			g.set(p)
		}
	}
	for _, d := range m.Deletes {
		if g := l.groups[d.Group]; g != nil {
			g.DPS = slices.DeleteFunc(g.DPS, func(p [2]json.Number) bool { return slices.Contains(d.TS, p[0]) })
		}
	}
	return nil
}

// set puts a point into its place.
func (g *group) set(p [2]json.Number) {
	at := func(n json.Number) int64 { i, _ := n.Int64(); return i }
	i, found := slices.BinarySearchFunc(g.DPS, at(p[0]), func(q [2]json.Number, t int64) int {
		return int(at(q[0]) - t)
	})
	if found {
		g.DPS[i] = p
		return
	}
	g.DPS = slices.Insert(g.DPS, i, p)
}

// shown waits until a live query shows what the query answers over HTTP, and prints that.
func (r *run) shown(s *Step) (string, error) {
	l, err := r.live(s.Args)
	if err != nil {
		return "", err
	}
	for {
		a, err := r.ask("POST", "/api/query?arrays", []byte(l.query), nil)
		if err != nil {
			return "", err
		}
		var fresh []*group
		if err := json.Unmarshal([]byte(a.body), &fresh); err != nil {
			return "", fmt.Errorf("%w: %d %s", err, a.status, a.body)
		}
		want, got := shownLines(fresh), shownLines(slices.Collect(maps.Values(l.groups)))
		if want == got {
			return got, nil
		}
		if _, err := l.receive(); err != nil {
			return "", fmt.Errorf("%w; it does not show what the query answers (-want +got):\n%s",
				err, gocmp.Diff(want, got))
		}
	}
}

// shownLines returns each group on a line.
func shownLines(groups []*group) string {
	var lines []string
	for _, g := range groups {
		text, _ := json.Marshal(g)
		lines = append(lines, string(text))
	}
	slices.Sort(lines)
	return joined(lines)
}
