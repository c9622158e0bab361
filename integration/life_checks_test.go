//go:build integration

package integration

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// lifeCounts are what a run has seen.
type lifeCounts struct {
	checks, puts, deletes    atomic.Int64
	refused                  atomic.Int64 // queries that were repeated
	putsFailed, deletesLost  atomic.Int64 // of TSDs, in which points are as they may be
	tsdDiffers, tsdRestarted atomic.Int64 // answers of a TSD that were requested again, and how often it was restarted
	compacted, before        atomic.Int64 // rows by hand, by the server before it was killed
	retained, rolled, fscked atomic.Int64 // rows, runs, runs
	killed, unharmed         atomic.Int64 // runs that were killed, and that ended before
	splits, moves, merges    atomic.Int64
	memory                   map[string]int // answers from memory, by proof
}

func (c *lifeCounts) text() string {
	return fmt.Sprintf("%d checks, %d puts, %d deletions; asked again: %d, of OpenTSDB %d, "+
		"started anew %d times; TSDs failed %d puts, %d deletions; "+
		"%d rows compacted by hand, %d deleted by retention; rollup ran %d times, fsck %d; %d runs killed, "+
		"%d ended before; %d splits, %d moves, %d merges; from memory %v",
		c.checks.Load(), c.puts.Load(), c.deletes.Load(), c.refused.Load(), c.tsdDiffers.Load(),
		c.tsdRestarted.Load(), c.putsFailed.Load(), c.deletesLost.Load(), c.compacted.Load(), c.retained.Load(),
		c.rolled.Load(), c.fscked.Load(), c.killed.Load(), c.unharmed.Load(), c.splits.Load(), c.moves.Load(),
		c.merges.Load(), c.memory)
}

// get asks until a server answers: regions may be on their way. ok is false if it never does.
func (l *life) get(url string) (a e2e.Answer, ok bool) {
	l.Helper()
	err := l.until(time.Minute, 100*time.Millisecond, func(ctx context.Context) (err error) {
		if a, err = e2e.Get(ctx, url); err == nil && a.Status != 200 {
			l.counts.refused.Add(1)
			err = fmt.Errorf("status %d: %.300s", a.Status, a.Body)
		}
		return err
	})
	if err != nil {
		l.wrong("%s: %v", url, err)
	}
	return a, err == nil
}

// until is e2e.Until with a time that a busy machine may take several times.
func (l *life) until(d, interval time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(l.ctx, 3*d)
	defer cancel()
	return e2e.Until(ctx, interval, ready)
}

// wrong fails the test.
func (l *life) wrong(format string, args ...any) {
	l.Helper()
	l.Errorf("seed %d, round %d: %s", l.seed, l.round.Load(), fmt.Sprintf(format, args...))
}

// check asks a server for all points of a metric, and compares them with the model.
func (l *life) check(name, url, metric string) {
	for i, d := range l.differences(url, metric) {
		if strings.HasPrefix(d, "{") {
			l.autopsy(d)
		}
		if i < 5 {
			l.wrong("%s: %s", name, d)
		}
	}
}

func (l *life) differences(url, metric string) []string {
	before := l.model.snapshot(metric)
	a, ok := l.get(url + l.query(metric, "none:%s"))
	if !ok {
		return nil
	}
	points, err := pointsOf(metric, a.Body)
	if err != nil {
		return []string{err.Error()}
	}
	l.counts.checks.Add(1)
	return l.model.differences(metric, before, points)
}

// atRest asks everything while nobody writes.
func (l *life) atRest(when string) {
	for _, metric := range lifeMetrics {
		for name, g := range l.gateways() {
			l.check(when+", "+name, g.URL, metric)
		}
		for i, m := range lifeQueries {
			// What is older than retention keeps goes at any time, and buckets of a day begin there.
			if metric == lifePast && (m == "none:%s" || strings.Contains(m, "1d")) {
				continue
			}
			l.alike(when, l.query(metric, m))
			if i < 3 {
				l.asOpenTSDB(when, l.query(metric, m))
			}
		}
	}
	for from := int64(lifeStart); from < lifeStart+stillHours*apart; from += stillPanel * apart {
		l.alike(when, fmt.Sprintf("/api/query?start=%d&end=%d&m=sum:10m-sum:%s",
			from, from+stillPanel*apart-1, lifeStill))
	}
}

// alike compares the answers of the gateways that remember some with that of the one that does not.
func (l *life) alike(when, path string) {
	want, _, ok := l.answer(l.plain, path)
	for name, g := range l.gateways() {
		if g == l.plain || !ok {
			continue
		}
		got, remembered, answered := l.answer(g, path)
		if remembered {
			l.counts.memory[name]++
		}
		if answered && got != want {
			l.wrong("%s, %s: %s: from memory %v, got\n%.900s\nwant\n%.900s", when, name, path, remembered, got, want)
		}
	}
}

// answer returns the groups of an answer, in order, and whether they were remembered.
func (l *life) answer(g *e2e.Program, path string) (groups string, remembered, ok bool) {
	body, ok := l.get(g.URL + path + "&trace=true")
	if !ok {
		return "", false, false
	}
	a := tracedAnswer(l.T, path, body.Body)
	return a.groups, a.fromMemory, true
}

// staleTSD is after how long a TSD that does not answer as the gateway does is restarted. Until it is, its client of
// HBase may look for a region that is gone.
const staleTSD = 20 * time.Second

// asOpenTSDB compares the gateway without a cache with the TSD that compacts nothing. A TSD may answer a part of
// what it scans while a region splits, so it may be asked again; what a fresh one says counts.
func (l *life) asOpenTSDB(when, path string) {
	began, fresh := time.Now(), false
	err := l.until(2*time.Minute, 200*time.Millisecond, func(ctx context.Context) error {
		if !fresh && time.Since(began) > staleTSD {
			fresh = true
			l.restartTSD()
		}
		ctx, cancel := context.WithTimeout(ctx, hangs)
		defer cancel()
		theirs, err := e2e.Get(ctx, l.writing.URL+path)
		if err != nil {
			return err
		}
		ours, _ := l.get(l.plain.URL + path)
		report, _, err := compare.WithReference(compare.Answer{Status: theirs.Status, Body: theirs.Body},
			compare.Answer{Status: ours.Status, Body: ours.Body})
		if err == nil && (theirs.Status != 200 || !report.Equal()) {
			l.counts.tsdDiffers.Add(1)
			err = fmt.Errorf("status %d, %v", theirs.Status, report)
		}
		return err
	})
	if err != nil {
		l.wrong("%s, OpenTSDB: %s: %v", when, path, err)
	}
}

// restartTSD restarts the TSD that compacts nothing, while nobody writes.
func (l *life) restartTSD() {
	if err := l.writing.Close(); err != nil {
		l.wrong("OpenTSDB: %v", err)
	}
	l.startWriting()
	if err := e2e.LoadNames(l.ctx, l.writing.URL); err != nil {
		l.wrong("OpenTSDB: %v", err)
	}
	l.counts.tsdRestarted.Add(1)
}

var rollupsRead = regexp.MustCompile(`"rollups":"[^"]*"`)

// readsRollups says whether the gateway that proves exactly reads rollups, and what it says of that.
func (l *life) readsRollups() (said string, ok bool) {
	a, _ := l.get(l.exact.URL + l.query(lifeRoll, "sum:1h-sum:%s") + "&explain=true")
	said = string(rollupsRead.Find(a.Body))
	return said, strings.HasPrefix(said, `"rollups":"table `)
}
