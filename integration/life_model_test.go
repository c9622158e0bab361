//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"downpour/integration/e2e"
)

// pointID names a point. Its time is in seconds.
type pointID struct {
	metric, host string
	at           int64
}

// absent is the state of a point that is not there; values are positive.
const absent = -1

// course is what becomes of a point: its states one after another. The last may not be acknowledged
// yet.
type course struct {
	states       []float64 // the first one is absent
	acknowledged int       // index of the state that was acknowledged last
	at           time.Time // when that was
	by           string    // who was asked to put the last value
	// expires says that a job may delete the point at any time.
	expires bool
}

// model knows of each point what was acknowledged, and what is under way. Each point has one writer.
type model struct {
	mu     sync.Mutex
	points map[pointID]*course
	begun  int // values
}

func newModel() *model { return &model{points: map[pointID]*course{}} }

// firstValue is the smallest value. Integers from here on take two bytes.
const firstValue = 1000

func idOf(p e2e.Point) pointID {
	return pointID{metric: p.Metric, host: p.Tags["host"], at: p.Timestamp}
}

func pointAt(metric, host string, at int64) e2e.Point {
	return e2e.Point{Metric: metric, Timestamp: at, Tags: map[string]string{"host": host}}
}

// free says that a point may be written: what was written before is acknowledged, and that some
// milliseconds ago. Of two cells of one point and millisecond HBase does not say which is newer.
func (m *model) free(p e2e.Point) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.points[idOf(p)]
	return c == nil || c.acknowledged == len(c.states)-1 && time.Since(c.at) > 5*time.Millisecond
}

// known says that a point was written, or is being written.
func (m *model) known(p e2e.Point) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.points[idOf(p)] != nil
}

// begin gives points values that they never had, as integers and as floats, and takes each as under way, by a server.
func (m *model) begin(points []e2e.Point, by string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range points {
		id := idOf(points[i])
		if m.points[id] == nil {
			m.points[id] = &course{states: []float64{absent}}
		}
		c := m.points[id]
		m.begun++
		value := float64(firstValue + len(c.states))
		text := fmt.Sprintf("%.0f", value)
		if m.begun%3 == 0 {
			value += 0.5
			text = fmt.Sprintf("%.1f", value)
		}
		c.states, c.by = append(c.states, value), by
		points[i].Value = json.RawMessage(text)
	}
}

// acknowledge ends what begin or remove has begun.
func (m *model) acknowledge(ids []pointID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		c := m.points[id]
		c.acknowledged, c.at = len(c.states)-1, time.Now()
	}
}

// put puts points by a server. After an error they may be there or not, and are not written any more.
func (m *model) put(ctx context.Context, url string, points []e2e.Point) error {
	m.begin(points, url)
	if err := e2e.Put(ctx, url, points); err != nil {
		return err
	}

	ids := make([]pointID, len(points))
	for i, p := range points {
		ids[i] = idOf(p)
	}
	m.acknowledge(ids)
	return nil
}

// set takes a point as written before the test.
func (m *model) set(id pointID, value float64) {
	m.points[id] = &course{states: []float64{absent, value}, acknowledged: 1}
}

// remove takes the points of a metric in a range of time as being deleted. The second result is false
// if one of them is not free.
func (m *model) remove(metric string, from, to int64) (ids []pointID, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, c := range m.points {
		if id.metric != metric || id.at < from || id.at >= to {
			continue
		}
		if c.acknowledged != len(c.states)-1 {
			return nil, false
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		m.points[id].states = append(m.points[id].states, absent)
	}
	return ids, true
}

// expire lets a job delete a point at any time.
func (m *model) expire(p e2e.Point) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.points[idOf(p)] == nil {
		m.points[idOf(p)] = &course{states: []float64{absent}}
	}
	m.points[idOf(p)].expires = true
}

// expired says that all points are gone that may go.
func (m *model) expired() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.points {
		if c.expires {
			c.states, c.acknowledged, c.expires = append(c.states, absent), len(c.states), false
			n++
		}
	}
	return n
}

// snapshot returns which state of each point of a metric was acknowledged last.
func (m *model) snapshot(metric string) map[pointID]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := map[pointID]int{}
	for id, c := range m.points {
		if id.metric == metric {
			now[id] = c.acknowledged
		}
	}
	return now
}

// differences compares an answer with what may be answered: of each point the state that was acknowledged
// last when the query was sent, or a later one that was begun before it was answered.
func (m *model) differences(metric string, before map[pointID]int, answered map[pointID]float64) (found []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, c := range m.points {
		if id.metric != metric {
			continue
		}
		got, ok := answered[id]
		if !ok {
			got = absent
		}
		may := c.states[before[id]:]
		if slices.Contains(may, got) || c.expires && got == absent {
			continue
		}
		switch {
		case !ok:
			found = append(found,
				fmt.Sprintf("%v is lost: want one of %v, states %v, the last by %s, acknowledged %v ago",
					id, may, c.states, c.by, time.Since(c.at).Round(time.Millisecond)))
		case !slices.Contains(c.states, got):
			found = append(found, fmt.Sprintf("%v is %v, which nobody has written: want one of %v", id, got, may))
		default:
			found = append(found,
				fmt.Sprintf("%v is %v, which is old: want one of %v, the last by %s, acknowledged %v ago",
					id, got, may, c.by, time.Since(c.at).Round(time.Millisecond)))
		}
	}
	for id := range maps.Keys(answered) {
		if m.points[id] == nil {
			found = append(found, fmt.Sprintf("%v: nobody has written it", id))
		}
	}
	return found
}

// rows returns how many rows of a metric have points.
func (m *model) rows(metric string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := map[pointID]bool{}
	for id, c := range m.points {
		if id.metric == metric && c.states[len(c.states)-1] != absent {
			id.at -= id.at % 3600
			rows[id] = true
		}
	}
	return len(rows)
}

// pointsOf reads the answer to a query of single points, with arrays=true. A time that comes twice is an error.
func pointsOf(metric string, body []byte) (map[pointID]float64, error) {
	var results []struct {
		Tags map[string]string
		DPS  [][2]float64
	}
	if err := json.Unmarshal(body, &results); err != nil {
		return nil, fmt.Errorf("%w: %.300s", err, body)
	}
	points := map[pointID]float64{}
	for _, r := range results {
		for _, p := range r.DPS {
			id := pointID{metric: metric, host: r.Tags["host"], at: int64(p[0])}
			if _, twice := points[id]; twice {
				return nil, fmt.Errorf("%v is there twice", id)
			}
			points[id] = p[1]
		}
	}
	return points, nil
}
