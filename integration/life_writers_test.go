//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/integration/e2e"
)

// hangs is after how long a TSD is taken not to answer any more.
const hangs = time.Minute

// fewCells is how many seconds lie between points that are written over again and again, as integers and as
// floats, so that a row has fewer cells than OpenTSDB reads at once.
const fewCells = 3

// leastWrites is how often each writer writes in a round at least, however slow the machine is.
const leastWrites = 20

// writeAndAsk lets all writers write for a while, and asks in the meantime.
func (l *life) writeAndAsk(d time.Duration) {
	round, end := context.WithTimeout(l.ctx, d)
	defer end()
	var writers, readers sync.WaitGroup
	for i, write := range l.writers() {
		rng := rand.New(rand.NewPCG(l.seed, uint64(l.round.Load())<<8+uint64(i)))
		writers.Go(func() {
			for n := 0; (n < leastWrites || round.Err() == nil) && l.ctx.Err() == nil && !l.Failed(); n++ {
				write(rng, n)
				pause(l.ctx, 20*time.Millisecond)
			}
		})
	}
	switch l.round.Load() {
	case int64(l.rounds / 4), int64(l.rounds * 3 / 4):
		writers.Go(func() { l.killServer(true) })
	case int64(l.rounds / 2):
		writers.Go(func() { l.killServer(false) }) // who waits for its leases takes them over
	}

	reading, stop := context.WithCancel(l.ctx)
	for name, g := range l.gateways() {
		readers.Go(func() {
			for n := 0; pause(reading, 50*time.Millisecond); n++ {
				l.check(name, g.URL, lifeMetrics[n%len(lifeMetrics)])
			}
		})
	}
	// Rows are compacted by being read.
	readers.Go(func() {
		for n := 0; pause(reading, 50*time.Millisecond); n++ {
			// A TSD may never answer what it began to read while a region split.
			ctx, cancel := context.WithTimeout(reading, hangs)
			_, err := e2e.Get(ctx, l.compacting.URL+l.query([]string{lifeLate, lifeNow}[n%2], "none:%s"))
			if err != nil {
				l.counts.tsdDiffers.Add(1)
			}
			cancel()
		}
	})
	writers.Wait()
	stop()
	readers.Wait()
}

// writers are all who write in a round. Each writes series of its own, or all of a metric.
func (l *life) writers() []func(rng *rand.Rand, n int) {
	gateways := []string{l.timestamps.URL, l.exact.URL}
	all := gateways
	if !l.merges {
		all = append(all, l.writing.URL, l.compacting.URL)
	}
	var writers []func(rng *rand.Rand, n int)
	for i, url := range all {
		writers = append(writers, func(rng *rand.Rand, n int) {
			if url != l.compacting.URL {
				l.writeOver(rng, url, lifeHost(i+3*rng.IntN(2)))
			}
			late := pointAt(lifeLate, lifeHost(i), lifeStart+rng.Int64N(lifeHours*encoding.RowSeconds))
			now := pointAt(lifeNow, lifeHost(i), time.Now().Unix())
			for _, p := range []e2e.Point{late, now} {
				if !l.model.known(p) {
					l.put(url, p)
				}
			}
		})
	}
	return append(writers, l.deleteAndPut, func(rng *rand.Rand, n int) {
		l.putPast(rng)
		if n == 0 {
			l.changeFew(rng)
		}
	})
}

// put puts points, those of them that may be written now.
func (l *life) put(url string, points ...e2e.Point) {
	var free []e2e.Point
	for _, p := range points {
		if l.model.free(p) && !l.isLost(p.Metric, p.Timestamp) {
			free = append(free, p)
		}
	}
	if len(free) == 0 {
		return
	}

	err := l.model.put(l.ctx, url, free)
	switch {
	case err == nil:
		l.counts.puts.Add(int64(len(free)))
	case l.isTSD(url):
		l.counts.putsFailed.Add(int64(len(free)))
	default:
		l.wrong("put: %v", err)
	}
}

func (l *life) isTSD(url string) bool { return url == l.writing.URL || url == l.compacting.URL }

// writeOver writes a point over another, and mostly a late one.
func (l *life) writeOver(rng *rand.Rand, url, host string) {
	at := lifeStart + rng.Int64N(lifeHours*encoding.RowSeconds/fewCells)*fewCells
	points := []e2e.Point{pointAt(lifeOver, host, at-at%lifeStep)}
	if at%lifeStep != 0 {
		points = append(points, pointAt(lifeOver, host, at))
	}
	l.put(url, points...)
}

// anyone is one of those who write points that no TSD compacts.
func (l *life) anyone(rng *rand.Rand) string {
	if l.merges {
		return []string{l.timestamps.URL, l.exact.URL}[rng.IntN(2)]
	}
	return []string{l.timestamps.URL, l.exact.URL, l.writing.URL}[rng.IntN(3)]
}

// deleteAndPut deletes an hour, or puts some points of one.
func (l *life) deleteAndPut(rng *rand.Rand, _ int) {
	from := lifeStart + rng.Int64N(goneHours)*apart
	if rng.IntN(4) == 0 {
		l.deleteHour(l.anyone(rng), lifeGone, from)
		return
	}
	var points []e2e.Point
	for range 1 + rng.IntN(5) {
		points = append(points, pointAt(lifeGone, lifeHost(rng.IntN(2)), from+rng.Int64N(6)*600+rng.Int64N(2)))
	}
	l.put(l.anyone(rng), distinct(points)...)
}

func distinct(points []e2e.Point) (once []e2e.Point) {
	seen := map[pointID]bool{}
	for _, p := range points {
		if !seen[idOf(p)] {
			seen[idOf(p)] = true
			once = append(once, p)
		}
	}
	return once
}

// deleteHour has a server delete an hour of a metric, and returns once it is gone. If nobody knows what
// the server still deletes, the hour is not written to any more.
func (l *life) deleteHour(url, metric string, from int64) {
	if !l.isLost(metric, from) && !l.deleteOnce(url, metric, from) {
		l.lost.Store(pointID{metric: metric, at: from}, true)
	}
}

func (l *life) isLost(metric string, at int64) bool {
	_, lost := l.lost.Load(pointID{metric: metric, at: at - at%encoding.RowSeconds})
	return lost
}

func (l *life) deleteOnce(url, metric string, from int64) bool {
	to := from + int64(encoding.RowSeconds)
	ids, ok := l.model.remove(metric, from, to)
	if !ok || len(ids) == 0 {
		return ok
	}

	path := fmt.Sprintf("/api/query?start=%d&end=%d&m=none:%s", from, to-1, metric)
	if l.isTSD(url) {
		return l.deleteByTSD(url, path, ids)
	}
	err := l.until(time.Minute, 100*time.Millisecond, func(ctx context.Context) error {
		return sendDelete(ctx, url+path)
	})
	if err != nil {
		l.wrong("DELETE %s: %v", path, err)
		return false
	}

	return l.deleted(ids)
}

// deleteByTSD has a TSD delete what a query reads. It answers before all is gone.
func (l *life) deleteByTSD(url, path string, ids []pointID) bool {
	ctx, cancel := context.WithTimeout(l.ctx, hangs)
	defer cancel()
	if err := sendDelete(ctx, url+path); err != nil {
		l.counts.deletesLost.Add(1)
		return false
	}
	err := l.until(time.Minute, 20*time.Millisecond, func(context.Context) error {
		if a, _ := l.get(l.plain.URL + path); string(a.Body) != "[]" {
			return errors.New("there are points left")
		}
		return nil
	})
	if err != nil {
		l.wrong("DELETE %s by OpenTSDB: %v", path, err)
		return false
	}
	return l.deleted(ids)
}

func (l *life) deleted(ids []pointID) bool {
	l.model.acknowledge(ids)
	l.counts.deletes.Add(1)
	// HBase's marker hides a put of the same millisecond.
	return pause(l.ctx, 5*time.Millisecond)
}

func sendDelete(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
	if err != nil {
		return err
	}
	a, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", a.StatusCode)
	}
	return nil
}

// putPast puts points that are younger than retention deletes, and some that are older.
func (l *life) putPast(rng *rand.Rand) {
	url, host := l.timestamps.URL, lifeHost(rng.IntN(2))
	l.put(url, pointAt(lifePast, host, l.now-2*encoding.RowSeconds+rng.Int64N(encoding.RowSeconds/fewCells)*fewCells))
	past := pointAt(lifePast, host, l.now-10*encoding.RowSeconds+rng.Int64N(2*encoding.RowSeconds/fewCells)*fewCells)
	l.model.expire(past)
	l.put(url, past)
}

// changeFew changes hours whose answers are remembered, and days that were rolled up.
func (l *life) changeFew(rng *rand.Rand) {
	for range 2 {
		from := lifeStart + rng.Int64N(stillHours)*apart
		switch rng.IntN(3) {
		case 0:
			l.put(l.anyone(rng), pointAt(lifeStill, lifeHost(0), from))
		case 1:
			l.put(l.anyone(rng), pointAt(lifeStill, lifeHost(0), from+rng.Int64N(encoding.RowSeconds)))
		case 2:
			l.deleteHour(l.anyone(rng), lifeStill, from)
		}
	}
	at := lifeStart + rng.Int64N(rollDays*24*6)*600
	l.put(l.anyone(rng), pointAt(lifeRoll, lifeHost(rng.IntN(3)), at+rng.Int64N(2)*7))
}
