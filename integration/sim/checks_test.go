package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// query is a form of query whose answer the model can judge at any time.
type query struct {
	name  string
	check func(c *clients, gateway int, metric string) error
}

// allQueries are those that readers draw from. An error says that there was no answer; a wrong one fails the test.
var allQueries = []query{
	{"points", checkPoints},
	{"counts", checkCounts},
	{"Arrow", checkArrow},
}

// series is one of a JSON answer.
type series struct {
	Metric string             `json:"metric"`
	Tags   map[string]string  `json:"tags"`
	TSUIDs []string           `json:"tsuids"`
	Dps    map[string]float64 `json:"dps"`
}

// get sends a query over all points.
func (c *clients) get(gateway int, sub string, headers ...string) answer {
	from := c.w.began.Unix() - before
	return c.ask(gateway, "GET",
		fmt.Sprintf("/api/query?start=%d&end=%d&show_tsuids&m=%s", from, from+365*24*3600, url.QueryEscape(sub)), "",
		headers...)
}

// query returns the series of a query over all points, none of a metric that has no name yet.
func (c *clients) query(gateway int, sub string) (out []series, err error) {
	a := c.get(gateway, sub)
	if none, err := c.unanswered(gateway, sub, a); none || err != nil {
		return nil, err
	}
	if err := json.Unmarshal(a.body, &out); err != nil {
		return nil, fmt.Errorf("%w in %.300s", err, a.body)
	}
	return out, nil
}

// unanswered reports whether an answer says that a metric has no name yet. An error says that there was no answer.
func (c *clients) unanswered(gateway int, sub string, a answer) (none bool, err error) {
	switch {
	case a.status == 400 && noSuchName(a.body):
		c.w.note("gateway %d: %s: %.200s", gateway, sub, a.body)
		return true, nil
	case a.ok():
		return false, nil
	case a.err == nil && !temporary(a.status):
		c.wrong(gateway, "%s: %v, want an answer or a temporary error", sub, a)
	}
	return false, fmt.Errorf("%v", a)
}

// noSuchName reports whether an error says that a metric is unknown, as before its first point.
func noSuchName(body []byte) bool {
	var e struct{ Error struct{ Message string } }
	return json.Unmarshal(body, &e) == nil && strings.HasPrefix(e.Error.Message, "No such name for 'metrics': 'm")
}

// wrongAnswer marks a wrong answer in the history.
const wrongAnswer = "WRONG at gateway"

// wrong reports a wrong answer.
func (c *clients) wrong(gateway int, format string, args ...any) {
	c.w.note(wrongAnswer+" %d: "+format, append([]any{gateway}, args...)...)
	c.w.t.Errorf("seed %d: gateway %d: "+format, append([]any{c.w.seed, gateway}, args...)...)
}

// checkPoints compares all points of a metric with the model.
func checkPoints(c *clients, gateway int, metric string) error {
	before, began := c.w.model.snapshot(), time.Now()
	out, err := c.query(gateway, "none:"+metric)
	if err != nil {
		return err
	}
	after := c.w.model.snapshot()
	got := pointsOf(out)
	c.w.note("gateway %d: %d points of %s in %v", gateway, len(got), metric, time.Since(began))
	c.judge(gateway, metric, got, before, after)
	return nil
}

// pointsOf returns the points of an answer.
func pointsOf(out []series) map[point]int64 {
	all := map[point]int64{}
	for _, s := range out {
		for at, v := range s.Dps {
			n, _ := strconv.ParseInt(at, 10, 64)
			all[point{s.Metric, s.Tags["host"], n}] = int64(v)
		}
	}
	return all
}

// judge compares points that were read with what the model allows.
func (c *clients) judge(gateway int, metric string, got map[point]int64, before, after map[point]course) {
	wrong := 0
	for p := range maps.Keys(after) {
		if p.metric != metric {
			continue
		}
		if want := c.w.model.allowed(p, before, after); !slices.Contains(want, got[p]) {
			if wrong++; wrong <= 3 {
				c.wrong(gateway, "%v is %d, want one of %v", p, got[p], want)
			}
		}
	}
	for p, v := range got {
		if _, ok := after[p]; !ok {
			c.wrong(gateway, "%v is %d, and nobody has put it", p, v)
		}
	}
	if wrong > 3 {
		c.wrong(gateway, "%d points of %s are wrong", wrong, metric)
	}
}

// checkCounts compares the counts of points in each hour and series with the model: rows that are read twice change no
// points, but counts.
func checkCounts(c *clients, gateway int, metric string) error {
	before := c.w.model.snapshot()
	out, err := c.query(gateway, "sum:1h-count:"+metric+"{host=*}")
	if err != nil {
		return err
	}
	after := c.w.model.snapshot()
	least, most := map[point]int64{}, map[point]int64{}
	for p := range after {
		if p.metric != metric {
			continue
		}
		hour := p.hour()
		may := c.w.model.allowed(p, before, after)
		if slices.ContainsFunc(may, func(value int64) bool { return value != absent }) {
			most[hour]++
		}
		if !slices.Contains(may, absent) {
			least[hour]++
		}
	}
	got := map[point]int64{}
	for _, s := range out {
		for at, v := range s.Dps {
			n, _ := strconv.ParseInt(at, 10, 64)
			got[point{metric, s.Tags["host"], n}] = int64(v)
		}
	}
	for hour := range most {
		if n := got[hour]; n < least[hour] || n > most[hour] {
			c.wrong(gateway, "points in the hour of %v: %d, want %d to %d", hour, n, least[hour], most[hour])
		}
	}
	for hour, n := range got {
		if most[hour] == 0 {
			c.wrong(gateway, "points in the hour of %v: %d, and nobody has put any", hour, n)
		}
	}
	return nil
}

// checkAtEnd asks all of every gateway once more, now that nothing fails.
func (w *World) checkAtEnd() {
	for i := range w.gateways {
		for _, metric := range []string{"m0", "m1"} {
			for _, q := range allQueries {
				if err := q.check(w.clients, i, metric); err != nil {
					w.t.Errorf("seed %d: gateway %d, after all faults: %s of %s: %v", w.seed, i, q.name, metric, err)
				}
			}
		}
	}
	w.checkNamed()
	if k, ok := w.ground.(*cluster); ok && k.found != nil {
		k.found.checkAtEnd()
	}
	questions := len(w.recorded.queries) + len(w.recorded.expressions)
	r := w.rand("questions at the end")
	for range 20 {
		gateway, i := r.IntN(len(w.gateways)), r.IntN(questions)
		if !w.clients.askOneRecorded(gateway, i) {
			w.t.Errorf("seed %d: gateway %d, after all faults: question %d was refused", w.seed, gateway, i)
		}
	}
}
