package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"downpour/encoding"
	_ "downpour/encoding/seedtest" // gives rapid its seed
)

// truthModel is the data that the query reads. Random changes rewrite it.
type truthModel struct {
	groups []*truthGroup
	made   int
}

type truthGroup struct {
	key    string // given to the hub, or empty
	tags   map[string]string
	agg    []string
	points map[int64]encoding.Value // by ms
	null   bool                     // NaN is null
}

func (m *truthModel) answer() Answer {
	var a Answer
	for _, g := range m.groups {
		a.Results = append(a.Results, g.result())
	}
	return a
}

// index returns the sub-query of a group: 0, which may be kept, if it has a key, else 1.
func (g *truthGroup) index() int {
	if g.key == "" {
		return 1
	}
	return 0
}

func (g *truthGroup) result() Result {
	r := Result{
		QueryIndex:    g.index(),
		Metric:        "cpu.user",
		Tags:          maps.Clone(g.tags),
		AggregateTags: slices.Clone(g.agg),
		Key:           g.key,
		NaNIsNull:     g.null,
	}
	r.Points = g.between(math.MinInt64, math.MaxInt64)
	return r
}

func (g *truthGroup) between(from, to int64) (p encoding.Points) {
	for _, t := range slices.Sorted(maps.Keys(g.points)) {
		if t >= from && t <= to {
			p.Append(t, g.points[t])
		}
	}
	return p
}

// news returns the answer of a source that has kept sub-query 0 since before. It returns false if a
// group of that has gone.
func (m *truthModel) news(rt *rapid.T, before map[string]*truthGroup) (a Answer, ok bool) {
	a.Kept = map[int]bool{0: true}
	keyed := 0
	for _, g := range m.groups {
		if g.key == "" {
			a.Results = append(a.Results, g.result())
			continue
		}
		old := before[g.key]
		if old != nil {
			keyed++
		}
		if old == nil || !slices.Equal(old.agg, g.agg) {
			r := g.result()
			a.Changes = append(a.Changes, Change{Key: g.key, Full: &r})
		} else if c := g.windows(rt, old); len(c.Windows) > 0 {
			a.Changes = append(a.Changes, c)
		}
	}
	return a, keyed == len(before)
}

// windows returns windows over all that differs from old, and some more.
func (g *truthGroup) windows(rt *rapid.T, old *truthGroup) Change {
	c := Change{Key: g.key}
	for second := int64(-3); second <= 8; second++ {
		w := Window{From: second * 1000, To: second*1000 + 999}
		w.Points = g.between(w.From, w.To)
		before := old.between(w.From, w.To)
		same := slices.Equal(before.Time, w.Points.Time) && slices.Equal(before.Bits, w.Points.Bits) &&
			slices.Equal(before.Float, w.Points.Float)
		if same && rapid.IntRange(0, 4).Draw(rt, "wide") > 0 {
			continue
		}
		if n := len(c.Windows); n > 0 && c.Windows[n-1].To+1 == w.From && rapid.Bool().Draw(rt, "joined") {
			w.From = c.Windows[n-1].From
			w.Points = g.between(w.From, w.To)
			c.Windows = c.Windows[:n-1]
		}
		c.Windows = append(c.Windows, w)
	}
	return c
}

// keyed returns a copy of what sub-query 0 shows.
func (m *truthModel) keyed() map[string]*truthGroup {
	out := map[string]*truthGroup{}
	for _, g := range m.groups {
		if g.key != "" {
			out[g.key] = &truthGroup{agg: slices.Clone(g.agg), points: maps.Clone(g.points)}
		}
	}
	return out
}

// picture returns what a fresh query would show, computed from the data alone.
func (m *truthModel) picture(seconds bool) string {
	var lines []string
	for _, g := range m.groups {
		c := clientGroup{about: fmt.Sprintf("%d cpu.user %v %v", g.index(), g.tags, g.agg), dps: map[string]string{}}
		for _, t := range slices.Sorted(maps.Keys(g.points)) {
			at := t
			if seconds {
				at = int64(math.Floor(float64(t) / 1000))
			}
			c.dps[strconv.FormatInt(at, 10)] = g.spelled(g.points[t])
		}
		lines = append(lines, c.line())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (g *truthGroup) spelled(v encoding.Value) string {
	switch f := v.Double(); {
	case math.IsNaN(f) && g.null:
		return "null"
	case math.IsNaN(f):
		return `"NaN"`
	case v.Float:
		return fmt.Sprintf("%.1f", f)
	}
	return strconv.FormatInt(v.Int(), 10)
}

func (m *truthModel) change(rt *rapid.T) {
	kind := rapid.SampledFrom([]string{"point", "point", "point", "drop", "add", "remove", "retag"}).Draw(rt, "change")
	if len(m.groups) == 0 {
		kind = "add"
	}
	if kind == "add" {
		m.made++
		g := &truthGroup{tags: map[string]string{"host": strconv.Itoa(m.made)}, points: map[int64]encoding.Value{}}
		g.null = rapid.Bool().Draw(rt, "null")
		if rapid.Bool().Draw(rt, "keyed") {
			g.key = "host=" + strconv.Itoa(m.made)
		}
		m.groups = append(m.groups, g)
		return
	}
	i := rapid.IntRange(0, len(m.groups)-1).Draw(rt, "group")
	m.groups[i].change(rt, kind)
	if kind == "remove" {
		m.groups = slices.Delete(m.groups, i, i+1)
	}
}

func (g *truthGroup) change(rt *rapid.T, kind string) {
	// Few times, half a second apart, some before 1970: so that overwriting,
	// late points and several points of one second are common.
	ms := rapid.Int64Range(-3, 12).Draw(rt, "half") * 500
	switch kind {
	case "point":
		g.points[ms] = rapid.SampledFrom([]encoding.Value{encoding.IntValue(1), encoding.FloatValue(1),
			encoding.IntValue(-7),
			encoding.FloatValue(0.5), encoding.IntValue(0), encoding.FloatValue(0), encoding.FloatValue(math.NaN()),
			{Float: true, Bits: 0x7FF8000000000005}}).Draw(rt, "value")
	case "drop":
		delete(g.points, ms)
	case "retag":
		g.agg = append(g.agg, "cpu"+strconv.Itoa(len(g.agg)))
	}
}

// blockedHub returns a hub that asks nothing by itself: the test publishes answers.
func blockedHub() *Hub {
	return New(Config{
		Linger: time.Hour,
		Asks:   1000,
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
		Ask: func(ctx context.Context, _ Question, _ time.Time) (Answer, error) {
			<-ctx.Done()
			return Answer{}, ctx.Err()
		},
	})
}

// Whatever changes, however slow a subscriber is and wherever it resumes, snapshot and deltas give
// the fresh answer.
func TestLaw(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := &law{rt: rt, hub: blockedHub(), seconds: rapid.Bool().Draw(rt, "seconds")}
		defer l.hub.Close()
		l.request.Query = json.RawMessage(fmt.Sprintf(`{"start":"1h-ago","msResolution":%t}`, !l.seconds))
		l.join(nil)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			l.step()
		}
		for _, c := range l.clients {
			l.check(c)
		}
	})
}

type law struct {
	rt      *rapid.T
	hub     *Hub
	request Request
	seconds bool
	model   truthModel
	clients []*client
	shown   string // the picture that was published last
	asked   bool
	before  map[string]*truthGroup // what that showed of sub-query 0
	kept    bool                   // the source has answered whole before
}

func (l *law) join(r *Resume) *client {
	l.request.Resume = r
	s, err := l.hub.Subscribe(l.request, func() {})
	if err != nil {
		l.rt.Fatal(err)
	}
	c := &client{sub: s, clears: rapid.Bool().Draw(l.rt, "clears")}
	l.clients = append(l.clients, c)
	return c
}

func (l *law) evaluator() *evaluator { return l.clients[0].sub.evaluator }

func (l *law) publish(err error) {
	answer := l.model.answer()
	if err == nil {
		if news, ok := l.model.news(l.rt, l.before); ok && l.kept && rapid.IntRange(0, 3).Draw(l.rt, "kept") > 0 {
			answer = news
		}
		l.shown, l.asked, l.before, l.kept = l.model.picture(l.seconds), true, l.model.keyed(), true
	}
	l.evaluator().publish(context.Background(), answer, err)
	if e := l.evaluator(); err == nil && e.mu.errIsFinal {
		l.rt.Fatal(e.mu.err)
	}
}

func (l *law) step() {
	switch rapid.SampledFrom([]string{"change", "change", "publish", "publish", "read", "read", "join", "resume",
		"fail", "burst"}).Draw(l.rt, "step") {
	case "change":
		l.model.change(l.rt)
	case "publish":
		l.publish(nil)
	case "burst": // about as many ticks as the history keeps
		for range rapid.IntRange(historyTicks-1, historyTicks+2).Draw(l.rt, "ticks") {
			l.model.change(l.rt)
			l.publish(nil)
		}
	case "fail":
		l.publish(&Error{Code: 503, Message: "no region server", Temporary: true})
	case "read":
		l.check(rapid.SampledFrom(l.clients).Draw(l.rt, "client"))
	case "join":
		l.join(nil)
	case "resume":
		l.resume()
	}
}

// resume closes a client, perhaps the last one, may publish, and subscribes again with what the
// client had.
func (l *law) resume() {
	i := rapid.IntRange(0, len(l.clients)-1).Draw(l.rt, "resumed")
	old := l.clients[i]
	old.sub.Close()
	if len(l.clients) > 1 {
		l.publish(nil)
	}
	l.clients = slices.Delete(l.clients, i, i+1)
	alone := len(l.clients) == 0
	l.kept = l.kept && !alone // a new source is opened
	c := l.join(&old.resume)
	c.groups, c.resume = old.groups, old.resume
	if alone { // its evaluator had stopped, and what that holds is old
		if u := c.sub.Next(); u != nil && u.Kind != KindError {
			l.rt.Fatalf("%s before the query was asked again", u.Kind)
		}
		l.publish(nil)
	}
}

func (l *law) check(c *client) {
	if err := c.drain(); err != nil {
		l.rt.Fatal(err)
	}
	if !l.asked {
		return
	}
	if got := c.picture(); got != l.shown {
		l.rt.Fatalf("client sees\n%s\nwant\n%s", got, l.shown)
	}
}
