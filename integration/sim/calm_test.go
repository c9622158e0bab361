package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/google/go-cmp/cmp"
)

// liveQueries are those that a follower draws from whose answers are not points as they were put. The view of one with
// many hours may begin with what the result cache has of the older ones.
var liveQueries = []subQuery{
	{Aggregator: "sum"},
	{Aggregator: "sum", Downsample: "10s-avg"},
	{Aggregator: "max", Downsample: "1m-sum"},
	{Aggregator: "zimsum", Downsample: "1h-count", Tags: map[string]string{"host": "*"}},
}

// inOrder is a query of a metric whose series get points in order only, with gaps in it.
var inOrder = subQuery{Aggregator: "sum", Downsample: "10s-avg", Metric: "m2"}

// rounds are how often clients put something in a calm world.
const rounds = 4

// calm has clients put some more now that nothing fails, so that all is acknowledged. Each time live queries come to
// show what queries answer: the snapshots of gateways that were started, and their deltas.
func (w *World) calm() {
	if w.tempo.followers == 0 {
		return
	}
	r := w.rand("calm")
	q := liveQueries[r.IntN(len(liveQueries))]
	q.Metric = fmt.Sprint("m", r.IntN(2))
	// What is queried again while points come in order is kept of the older hours.
	for range 4 {
		w.put(r, q.Metric, "h0", 0)
		for i := range w.gateways {
			w.clients.answerOf(i, q)
		}
	}
	for host := range 2 {
		w.put(r, inOrder.Metric, fmt.Sprint("o", host), 0)
	}
	w.clients.follow(q, false)
	w.clients.follow(inOrder, true)
	w.checkFollowers(r)
	for round := range rounds {
		if !w.clients.writeSome(r, r.IntN(writers)) {
			w.t.Errorf("seed %d: a put is refused, after all faults", w.seed)
		}
		w.put(r, q.Metric, "h0", int64(r.IntN(3*3600)))
		// Some points of new hosts are a few seconds ahead, where neither a query nor a live one looks.
		for range writers {
			pass(time.Duration(r.IntN(5)) * time.Second)
			w.put(r, inOrder.Metric, fmt.Sprint("o", round%2), 0)
		}
		w.checkFollowers(r)
	}
	pass(10 * time.Second) // until meta data of new series is written
}

// put puts a point of a series that is some seconds old.
func (w *World) put(r *rand.Rand, metric, host string, ago int64) {
	pass(time.Second)
	p := point{metric, host, time.Now().Unix() - ago}
	if w.model.known(p) {
		return
	}
	value, ok := w.model.begin(p)
	if ok && !w.clients.put(r.IntN(len(w.gateways)), map[point]int64{p: value}, w.clients.putJSON) {
		w.t.Errorf("seed %d: a put of %v is refused, after all faults", w.seed, p)
	}
}

// answerOf returns the points of an answer to a query.
func (c *clients) answerOf(gateway int, q subQuery) (map[point]json.Number, error) {
	a := c.ask(gateway, "POST", "/api/query", c.w.body(q))
	if none, err := c.unanswered(gateway, q.Metric, a); none || err != nil {
		return nil, err
	}
	var out []struct {
		Tags map[string]string
		Dps  map[int64]json.Number
	}
	if err := json.Unmarshal(a.body, &out); err != nil {
		return nil, fmt.Errorf("%w in %.300s", err, a.body)
	}
	all := map[point]json.Number{}
	for _, s := range out {
		for at, v := range s.Dps {
			all[point{q.Metric, s.Tags["host"], at}] = v
		}
	}
	return all, nil
}

// settles is how long a live query may take, after all faults, to show what a query answers: a
// deletion is found when everything is read again, which is after twenty times what that last took.
const settles = 30 * time.Minute

// checkFollowers waits until live queries show what queries answer.
func (w *World) checkFollowers(r *rand.Rand) {
	for i, f := range w.clients.following {
		want, err := w.clients.answerOf(r.IntN(len(w.gateways)), f.query)
		if err != nil {
			w.t.Errorf("seed %d: %v", w.seed, err)
			return
		}
		for left := int(settles / time.Second); ; pass(time.Second) {
			got, ok := f.shows()
			if ok && maps.Equal(got, want) || !ok && len(want) == 0 {
				w.checked("live, after all faults")
				break
			}
			if left--; left < 0 {
				w.t.Errorf("seed %d: %v after all faults follower %d of %v shows %d points (%t), a query %d:\n%s",
					w.seed, settles, i, f.query, len(got), ok, len(want), cmp.Diff(want, got))
				return
			}
		}
	}
}
