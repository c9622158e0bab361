//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"downpour/integration/e2e"
)

// logWriter puts points into a metric of its own, in the order of their numbers, and sends each
// batch until it is acknowledged. So the number of acknowledged points says which ones must be
// there. Every lotPoints points a new series begins, because UIDs of new names must survive too.
type logWriter struct {
	id     int
	metric string
	send   func(ctx context.Context, p *e2e.Program, points []e2e.Point) error

	acknowledged atomic.Int64 // points 0 to acknowledged-1 are promised
	refused      atomic.Int64 // batches, counted each time that one was refused
	last         atomic.Value // the latest refusal, a string
}

// lotPoints is how many points a series has.
const lotPoints = 40 * crashBatch

// value is the value of point n, which no other point of a run has.
func (w *logWriter) value(n int) int { return n<<8 | w.id }

// lot names the series of point n.
func (w *logWriter) lot(n int) string { return fmt.Sprintf("%s-%d", w.metric, n/lotPoints) }

func (w *logWriter) batch(first int) []e2e.Point {
	points := make([]e2e.Point, crashBatch)
	for i := range points {
		n := first + i
		points[i] = e2e.Point{
			Metric: w.metric, Timestamp: dataStart + int64(n), Value: json.RawMessage(strconv.Itoa(w.value(n))),
			Tags: map[string]string{"lot": w.lot(n)},
		}
	}
	return points
}

// run puts until ctx ends. A batch that is on its way then may be stored or not.
func (w *logWriter) run(ctx context.Context, p *e2e.Program) {
	for ctx.Err() == nil {
		points := w.batch(int(w.acknowledged.Load()))
		err := e2e.Until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
			defer cancel()

			err := w.send(ctx, p, points)
			if err != nil && ctx.Err() == nil {
				w.last.Store(err.Error())
				w.refused.Add(1)
			}
			return err
		})
		if err == nil {
			w.acknowledged.Add(crashBatch)
		}

		select {
		case <-ctx.Done():
		case <-time.After(betweenBatches):
		}
	}
}

// betweenBatches is a pause that leaves processor time to servers that start.
const betweenBatches = 20 * time.Millisecond

// account is what was found of a writer's points.
type account struct {
	acknowledged, lost, wrong int
	first                     string // what is wrong with the first lost or wrong point
}

func (a *account) add(b account) {
	a.acknowledged += b.acknowledged
	a.lost += b.lost
	a.wrong += b.wrong
	if a.first == "" {
		a.first = b.first
	}
}

// count asks for every series and compares it with what was acknowledged. A point beyond that may
// be there or not, but must not have another value.
func (w *logWriter) count(ctx context.Context, url string) (account, error) {
	promised := int(w.acknowledged.Load())
	sum := account{acknowledged: promised}
	for first := 0; first < promised+crashBatch; first += lotPoints {
		found, err := w.points(ctx, url, first)
		if err != nil {
			return sum, err
		}
		sum.add(w.compare(found, first, promised))
	}
	return sum, nil
}

// compare looks at the points of one series.
func (w *logWriter) compare(found map[int64]int, first, promised int) (a account) {
	amiss := func(n int, format string, args ...any) {
		if a.first == "" {
			a.first = fmt.Sprintf("%s, point %d of %d acknowledged: ", w.metric, n, promised) +
				fmt.Sprintf(format, args...)
		}
	}
	for n := first; n < first+lotPoints; n++ {
		at := dataStart + int64(n)
		value, ok := found[at]
		delete(found, at)
		switch {
		case !ok && n < promised:
			a.lost++
			amiss(n, "lost")
		case ok && value != w.value(n):
			a.wrong++
			amiss(n, "value %d, want %d", value, w.value(n))
		}
	}

	// What is left has a time at which nothing was ever put.
	for at, value := range found {
		a.wrong++
		amiss(int(at-dataStart), "value %d, nothing was put then", value)
	}
	return a
}

// points returns the points of the series that begins with point first, by
// second. An unknown series has none.
func (w *logWriter) points(ctx context.Context, url string, first int) (map[int64]int, error) {
	query := map[string]any{"metric": w.metric, "aggregator": "none", "tags": map[string]string{"lot": w.lot(first)}}
	a, err := e2e.Post(ctx, url+"/api/query?arrays=true", map[string]any{
		"start": dataStart - 1, "end": dataStart + int64(first) + 2*lotPoints, "queries": []any{query},
	})
	if err != nil {
		return nil, err
	}

	var answer []struct{ Dps [][2]int64 }
	switch {
	case a.Status == 400 && strings.Contains(string(a.Body), "No such name"): // its points, if promised, count as lost
		return nil, nil
	case a.Status != 200:
		return nil, fmt.Errorf("points of %s: status %d: %.300s", w.lot(first), a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil || len(answer) > 1 {
		return nil, fmt.Errorf("points of %s: %d series, want at most 1: %w", w.lot(first), len(answer), err)
	}

	found := map[int64]int{}
	for _, series := range answer {
		for _, p := range series.Dps {
			found[p[0]] = int(p[1])
		}
	}
	return found, nil
}
