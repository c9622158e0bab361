package changefeed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/gateway/live"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/exp"
	"downpour/pushdown/store"
)

// freshTables answers a request for expressions as of now.
func (w *world) freshTables(body string) (picture, error) {
	ctx := context.Background()
	x, err := engine.ReadExpressions(ctx, []byte(body), query.Parser{Now: w.clock, Fix: w.fix})
	if err != nil {
		return nil, err
	}
	results, _, err := w.engine.Run(ctx, x.Query, engine.Options{})
	if err != nil {
		return nil, err
	}

	p := picture{}
	shown, _, err := TableResults(ctx, x, results)
	for i := range shown {
		p.set(&shown[i])
	}
	return p, err
}

// openExp returns the source of a request for expressions.
func (w *world) openExp(body string, over store.Reader, poll Poll) *source {
	f := New(Config{Engine: w.engine, Store: over, Poll: poll, Fix: w.fix, Log: quiet})
	return f.Open(live.Question{Exp: true, Body: json.RawMessage(body)}).(*source)
}

// drawExp draws a request with joins, fill policies, nested expressions and outputs that repeat,
// over metrics that have views and some that have none.
func drawExp(t *rapid.T) string {
	start := draw(t, "start", `"10m-ago"`, `"1h-ago"`, `"3h-ago"`, fmt.Sprint(epoch.UnixMilli()-3_600_123))
	span := fmt.Sprintf(`"start":%s,"aggregator":"%s"`, start,
		draw(t, "aggregator", "sum", "avg", "max", "none", "count"))
	span += draw(t, "downsampler", "", "", `,"downsampler":{"interval":"1m","aggregator":"avg"}`,
		`,"downsampler":{"interval":"7m","aggregator":"max"}`, `,"downsampler":{"interval":"90d","aggregator":"sum"}`)
	span += draw(t, "rate", "", "", `,"rate":true`)

	metric := func(id, name string) string {
		m := fmt.Sprintf(`{"id":%q,"metric":%q`, id, name)
		m += draw(t, "filter", "", `,"filter":"hosts"`, `,"filter":"hosts"`, `,"filter":"all"`, `,"filter":"some"`)
		return m + draw(t, "own aggregator", "", "", `,"aggregator":"min"`) +
			draw(t, "fill", "", `,"fillPolicy":{"policy":"nan"}`, `,"fillPolicy":{"policy":"scalar","value":3}`) + "}"
	}
	join := func() string {
		return fmt.Sprintf(`{"operator":"%s","useQueryTags":%t,"includeAggTags":%t,"useGroupTags":%t}`,
			draw(t, "operator", "union", "intersection"),
			rapid.Bool().Draw(t, "query tags"), rapid.Bool().Draw(t, "aggregated tags"),
			rapid.Bool().Draw(t, "group tags"))
	}
	expressions := fmt.Sprintf(`{"id":"e","expr":"%s","join":%s}`,
		draw(t, "expression", "a / (a + b) * 100", "a + b", "a > b ? a : b", "b - 1.5", "-a % 7d", "a > 5 ? a : 0"),
		join())
	if rapid.Bool().Draw(t, "nested") {
		expressions += fmt.Sprintf(`,{"id":"f","expr":"e * 2 + c","join":%s}`, join())
	}
	outputs := draw(t, "outputs", "", `,"outputs":[{"id":"e"}]`,
		`,"outputs":[{"id":"a"},{"id":"e"},{"id":"e"},{"id":"nothing"}]`, `,"outputs":[{"id":"f"},{"id":"b"}]`)
	return fmt.Sprintf(
		`{"time":{%s},"filters":[{"id":"hosts","tags":[{"type":"wildcard","tagk":"host","filter":"*",`+
			`"groupBy":true}]},{"id":"all","tags":[]},`+
			`{"id":"some","tags":[{"type":"regexp","tagk":"host","filter":"[ab]","groupBy":true},`+
			`{"type":"literal_or","tagk":"dc","filter":"x","groupBy":false}]}],`+
			`"metrics":[%s,%s,%s],"expressions":[%s]%s}`, span, metric("a", "m"),
		metric("b", draw(t, "second", "m", "n", "n")), metric("c", "n"), expressions, outputs)
}

// tickTables compares the source's next answer with a fresh one.
func (l *law) tickTables() {
	l.world.clock = l.world.clock.Add(l.step)
	a, err := l.source.Next(context.Background(), l.world.clock)
	want, wantErr := l.world.freshTables(l.query)
	if (err == nil) != (wantErr == nil) {
		l.Fatalf("%s: live: %v, fresh: %v", l.query, err, wantErr)
	}
	if final := a.FinalBefore; err == nil && final > l.world.clock.UnixMilli() {
		l.Fatalf("%s: final before %d, which is in the future", l.query, final)
	}
	l.take(a, err, want)
}

func (l *law) runTables(over store.Reader, poll Poll) {
	defer l.world.close()
	for _, k := range []string{"host", "dc"} {
		l.world.uid(encoding.UIDTagK, k)
	}
	for _, v := range []string{"a", "b", "x"} {
		l.world.uid(encoding.UIDTagV, v)
	}
	for _, m := range []string{"m", "n"} {
		l.world.uid(encoding.UIDMetric, m)
	}
	l.query, l.seen = drawExp(l.T), picture{}
	l.source = l.world.openExp(l.query, over, poll)
	defer l.source.Close()

	act := func() {
		l.world.metric = draw(l.T, "metric", "m", "n")
		l.act()
	}
	for range rapid.IntRange(0, 25).Draw(l.T, "before") {
		act()
	}
	for range rapid.IntRange(1, 25).Draw(l.T, "steps") {
		act()
		if rapid.IntRange(0, 2).Draw(l.T, "tick") > 0 {
			l.tickTables()
		}
	}
	l.tickTables()
}

// At every tick the tables of a live request are those of a fresh one, whatever was written: on a
// store that can be watched and on one that must be polled.
func TestExpLaw(t *testing.T) {
	t.Run("watched", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			l := &law{T: rt, world: newWorld(t, false), deletes: true}
			l.runTables(l.world.store, Poll{})
		})
	})
	t.Run("polled", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			l := &law{T: rt, world: newWorld(t, false), deletes: true, step: time.Millisecond}
			l.runTables(unwatched{l.world.store}, Poll{Late: 1, CheapLoad: time.Hour})
		})
	})
}

// ratio is a request for m / n by host.
const ratio = `{"time":{"start":"10m-ago","aggregator":"sum"},` +
	`"filters":[{"id":"f","tags":[{"type":"wildcard","tagk":"host","filter":"*","groupBy":true}]}],
	"metrics":[{"id":"a","metric":"m","filter":"f"},{"id":"b","metric":"n","filter":"f"}],` +
	`"expressions":[{"id":"e","expr":"a / b","join":{"operator":"intersection"}}]}`

// expWorld returns a world with a point of m, a source of the request, and a function that puts
// points.
func expWorld(t *testing.T, body string) (w *world, s *source, put func(metric string, ms int64, value float64)) {
	t.Helper()
	w = newWorld(t, false)
	t.Cleanup(w.close)
	w.uid(encoding.UIDMetric, "n")
	put = func(metric string, ms int64, value float64) {
		w.metric = metric
		w.apply(w.point(ms, true, encoding.FloatValue(value), "host", "a"))
	}
	put("m", epoch.UnixMilli()-1000, 6)
	s = w.openExp(body, w.store, Poll{})
	t.Cleanup(s.Close)
	return w, s, put
}

// While an intersection is empty the answer is an error, and the views are kept: they are not
// loaded again for the point that completes it.
func TestExp_waitsForSeries(t *testing.T) {
	w, s, put := expWorld(t, ratio)
	for range 3 {
		_, err := s.Next(context.Background(), w.clock)
		var data *exp.DataError
		if !errors.As(err, &data) || !strings.Contains(err.Error(), "No intersections found") {
			t.Fatalf("error %v, want that of an empty intersection", err)
		}
	}
	if n := s.feed.Stats().Loads; n != 2 {
		t.Errorf("%d views were loaded, want those of two metrics, once", n)
	}

	put("n", epoch.UnixMilli()-1000, 3)
	a, err := s.Next(context.Background(), w.clock)
	if err != nil || a.Kept != nil || len(a.Results) != 1 {
		t.Fatalf("after the point that was missing: %+v, %v; want one whole group", a, err)
	}
	r := &a.Results[0]
	if at, v := r.Points.At(0); r.Metric != "e" || r.Tags["host"] != "a" || at != epoch.UnixMilli()-1000 ||
		v != encoding.FloatValue(2) {
		t.Errorf("%+v, want e of host a with 2", r)
	}
}

// A request that no data can answer is refused for good before a view is loaded, as often as it is
// asked.
func TestExp_refusesBeforeItReads(t *testing.T) {
	for body, want := range map[string]string{
		strings.NewReplacer(`"id":"a"`, `"id":"Aa"`, "a / b",
			"Aa / b").Replace(ratio): "Missing results for variable Aa",
		strings.Replace(ratio, `"expressions":[`, `"expressions":[{"id":"f","expr":"E2"},{"id":"E2","expr":"a"},`,
			1): "Missing results for variable E2",
	} {
		w, s, _ := expWorld(t, body)
		for range 3 {
			_, err := s.Next(context.Background(), w.clock)
			var data *exp.DataError
			if err == nil || errors.As(err, &data) || err.Error() != want {
				t.Errorf("error %v, want %s for good", err, want)
			}
		}
		if n := s.feed.Stats(); n.Loads != 0 || n.FullRuns != 0 || s.subs != nil {
			t.Errorf("%+v: rows were read for a request that cannot be answered", n)
		}
	}
}

// A tick without a change keeps the groups. They are computed again when the time of a future point
// comes, and when a point leaves the range.
func TestExp_computesChanges(t *testing.T) {
	w, s, put := expWorld(t, ratio)
	put("n", epoch.UnixMilli()-1000, 3)
	put("m", epoch.UnixMilli()+5000, 8)
	next := func(after time.Duration) live.Answer {
		t.Helper()
		w.clock = w.clock.Add(after)
		a, err := s.Next(context.Background(), w.clock)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := next(0); len(a.Results) != 1 || a.Results[0].Points.Len() != 1 {
		t.Fatalf("%+v, want a group of one point", a)
	}
	if a := next(4 * time.Second); a.Results != nil || !a.Kept[0] {
		t.Errorf("without a change: %+v, want the group kept", a)
	}
	if a := next(time.Second); a.Kept != nil || a.Results[0].Points.Len() != 2 {
		t.Errorf("when a point's time has come: %+v, want two points", a)
	}
	if a := next(0); a.Results != nil {
		t.Errorf("at the same time again: %+v, want the group kept", a)
	}
	if a := next(9*time.Minute + 55*time.Second); a.Kept != nil || a.Results[0].Points.Len() != 1 {
		t.Errorf("when a point has left: %+v, want one point", a)
	}
	if n := s.feed.Stats(); n.FullRuns != 0 || n.Rows != 0 {
		t.Errorf("%+v: rows were read again", n)
	}
}

// An answer that was given does not change when a view gets a point.
func TestExp_answersStay(t *testing.T) {
	w, s, put := expWorld(t, `{"time":{"start":"10m-ago","aggregator":"sum"},"metrics":[{"id":"a","metric":"m"}]}`)
	for i := range int64(4) { // with expWorld's five points: their slices have room for a sixth
		put("m", epoch.UnixMilli()-10_000+i, 1)
	}
	a, err := s.Next(context.Background(), w.clock)
	if err != nil || len(a.Results) != 1 {
		t.Fatalf("got %+v, %v, want one group", a, err)
	}
	before := fmt.Sprint(a.Results)
	put("m", epoch.UnixMilli()-2000, 7)
	if _, err := s.Next(context.Background(), w.clock); err != nil {
		t.Fatal(err)
	}
	if after := fmt.Sprint(a.Results); after != before {
		t.Errorf("an answer became %s, want it as it was, %s", after, before)
	}
}
