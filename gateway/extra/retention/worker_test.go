package retention_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/retention/rules"
	"downpour/pushdown/process/logtest"
)

// pass lets a time pass in the bubble.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// startWorker starts a worker of the world's job.
func (w *world) startWorker(turns retention.Turns, log *logtest.Log) (stop func()) {
	job := *w.job
	worker := &retention.Worker{Job: &job, Turns: turns, Log: slog.New(slog.NewTextHandler(log, nil))}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		worker.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// working runs workers on an embedded store in simulated time, which begins at the world's now.
func working(t *testing.T, ruled string, f func(w *world, log *logtest.Log, start func() (stop func()))) {
	synctest.Test(t, func(t *testing.T) {
		w := embedded(t, rand.New(rand.NewPCG(3, 3)))
		w.job.Rules = parse(t, ruled)
		began := time.Now()
		w.job.Now = func() time.Time { return time.Unix(now, 0).Add(time.Since(began)) }
		log := new(logtest.Log)
		turns := retention.NewLocal()
		f(w, log, func() (stop func()) { return w.startWorker(turns, log) })
	})
}

// A worker deletes what is past at its start and then within the hour after it is past, and finds late
// points within a day. A second worker, next to it or after it, makes no runs of its own.
func TestWorker(t *testing.T) {
	working(t, ". 2d", func(w *world, log *logtest.Log, start func() func()) {
		t := w.T                                   // of the simulated time
		first := int64(now-2*86_400) / hour * hour // wholly past at the next full hour
		for i := range 40 {
			w.put("tsdb", 2, now/hour*hour, i)
		}
		w.put("tsdb", 0, first-hour, 1)
		w.put("tsdb", 0, first, 1)
		w.put("tsdb", 0, first+hour, 1)
		rows := func() int { return len(w.keys("tsdb")) - 40 }

		stop, stopOther := start(), start()
		time.Sleep(time.Minute)
		if n := rows(); n != 2 {
			t.Errorf("at the start %d rows stay, want 2", n)
		}
		time.Sleep(2 * time.Hour)
		if n := rows(); n != 0 {
			t.Errorf("after two hours %d rows stay, want none", n)
		}

		w.put("tsdb", 0, first-10*hour, 1)
		time.Sleep(3 * time.Hour)
		if n := rows(); n != 1 {
			t.Errorf("a late row of an hour that was deleted: %d rows, want that hourly runs leave it", n)
		}
		time.Sleep(24 * time.Hour)
		if n := rows(); n != 0 {
			t.Errorf("a late row stays for more than a day")
		}
		stop()
		stopOther()
		if said := log.Take(); strings.Count(said, "rows deleted") != 4 {
			t.Errorf("four runs delete rows, the log says\n%s", said)
		}
	})
}

// A clock that was ahead and is set back, by a minute or by a day, deletes nothing younger than its time says,
// and the next run comes no later than it would have.
func TestWorker_clockSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Minute, 24 * time.Hour} {
		working(t, ". 2d", func(w *world, log *logtest.Log, start func() func()) {
			t := w.T // of the simulated time
			var ahead atomic.Int64
			ahead.Store(int64(back))
			right := w.job.Now
			w.job.Now = func() time.Time { return right().Add(time.Duration(ahead.Load())) }
			past := int64(now-2*86_400)/hour*hour - hour // by the right time
			for i := range 40 {
				w.put("tsdb", 2, now/hour*hour+2*86_400, i)
			}
			w.put("tsdb", 0, past, 1)
			stop := start()
			defer stop()
			time.Sleep(time.Minute)
			if n := len(w.keys("tsdb")); n != 40 {
				t.Errorf("at the start %d rows, want 40", n)
			}

			ahead.Store(0)
			w.put("tsdb", 0, past+hour, 1) // past within the hour
			w.put("tsdb", 0, past+4*hour, 1)
			time.Sleep(2 * time.Hour)
			if n := len(w.keys("tsdb")); n != 41 {
				t.Errorf("two hours after it was set back by %v %d rows, want 41\n%s", back, n, log.Take())
			}
		})
	}
}

// A clock that is set ahead between two runs deletes nothing, however often it is tried, until a
// point of that time comes.
func TestWorker_clockJumps(t *testing.T) {
	working(t, ". 400d", func(w *world, log *logtest.Log, start func() func()) {
		t := w.T // of the simulated time
		const day = 86_400
		for i := range 40 {
			w.put("tsdb", 2, now/hour*hour, i)
		}
		for i := range 3 {
			w.put("tsdb", 0, (now-300*day)/hour*hour, i)
		}
		var ahead atomic.Int64
		right := w.job.Now
		w.job.Now = func() time.Time { return right().Add(time.Duration(ahead.Load())) }
		stop := start()
		defer stop()
		time.Sleep(time.Minute)

		ahead.Store(int64(180 * 24 * time.Hour))
		time.Sleep(5 * time.Hour)
		if n, lines := len(w.keys("tsdb")), log.Take(); n != 43 || strings.Count(lines, "may be ahead") != 5 {
			t.Errorf("%d rows, want 43, and a line an hour:\n%s", n, lines)
		}
		w.put("tsdb", 0, (now+180*day)/hour*hour, 1)
		time.Sleep(2 * time.Hour)
		if n := len(w.keys("tsdb")); n != 41 {
			t.Errorf("after a point has come %d rows, want 41\n%s", n, log.Take())
		}
	})
}

// A wrong pattern deletes nothing: the log names the command that would, once an hour. After the
// command has run, the worker goes on.
func TestWorker_refused(t *testing.T) {
	working(t, ". 2d", func(w *world, log *logtest.Log, start func() func()) {
		t := w.T // of the simulated time
		for i := range 10 {
			w.put("tsdb", 0, (now-10*86_400)/hour*hour, i)
		}
		stop := start()
		defer stop()
		time.Sleep(150 * time.Minute)
		said := log.Take()
		if n := len(w.keys("tsdb")); n != 10 || strings.Count(said, "gateway retention run -yes-delete 10") != 3 {
			t.Errorf("%d rows stay, and the log says\n%s", n, said)
		}

		worker := &retention.Worker{Job: w.job, Turns: retention.NewLocal()}
		report, err := worker.RunNow(t.Context(), 10, func(string) {})
		if err != nil || report.Deleted != 10 || len(w.keys("tsdb")) != 0 {
			t.Errorf("%+v, %v", report, err)
		}
		time.Sleep(2 * time.Hour)
		if said := log.Take(); said != "" {
			t.Errorf("afterwards the log says\n%s", said)
		}
	})
}

// Other rules count from the start with all rows.
func TestWorker_otherRules(t *testing.T) {
	working(t, "net 2d", func(w *world, _ *logtest.Log, start func() func()) {
		t := w.T // of the simulated time
		for i := range 10 {
			w.put("tsdb", 0, (now-10*86_400)/hour*hour, i)
			w.put("tsdb", 1, now/hour*hour, i)
			w.put("tsdb", 1, now/hour*hour+hour, i)
		}
		stop := start()
		time.Sleep(time.Minute)
		stop()
		if n := len(w.keys("tsdb")); n != 30 {
			t.Errorf("%d rows, want 30", n)
		}
		w.job.Rules = rules.All(2 * 86_400)
		stop = start()
		time.Sleep(time.Minute)
		stop()
		if n := len(w.keys("tsdb")); n != 20 {
			t.Errorf("%d rows, want 20", n)
		}
	})
}

// The names of metrics cannot be read for a while: the log says so, and the next try works.
func TestWorker_error(t *testing.T) {
	working(t, ". 2d", func(w *world, log *logtest.Log, start func() func()) {
		t := w.T // of the simulated time
		w.put("tsdb", 0, (now-10*86_400)/hour*hour, 1)
		w.put("tsdb", 0, now/hour*hour, 1)
		var mu sync.Mutex
		broken, each := true, w.job.Names
		w.job.Names = func(ctx context.Context) seq {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				return func(yield func(entry, error) bool) { yield(entry{}, errors.New("no region")) }
			}
			return each(ctx)
		}
		stop := start()
		defer stop()
		time.Sleep(time.Minute)
		if said := log.Take(); !strings.Contains(said, "no region") {
			t.Errorf("the log says %q", said)
		}
		mu.Lock()
		broken = false
		mu.Unlock()
		time.Sleep(10 * time.Minute)
		if n := len(w.keys("tsdb")); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	})
}

// crowdedWorld is a world whose store cannot give place back, with a row that is past and one that
// will be at the next full hour.
func crowdedWorld(w *world) *crowded {
	st := &crowded{Store: w.store}
	st.full.Store(true)
	w.job.Store = st
	first := int64(now-2*86_400) / hour * hour
	for i := range 10 {
		w.put("tsdb", 2, now/hour*hour, i)
	}
	w.put("tsdb", 0, first-hour, 1)
	w.put("tsdb", 0, first, 1)
	return st
}

// When only the place of deleted rows cannot be given back, that alone is retried until it
// works; rows that become past in the meantime are deleted as usual.
func TestWorker_place(t *testing.T) {
	working(t, ". 2d rollups=2d", func(w *world, log *logtest.Log, start func() func()) {
		t := w.T // of the simulated time
		st := crowdedWorld(w)
		stop := start()
		defer stop()
		time.Sleep(time.Minute)
		scans := st.scans.Load()
		time.Sleep(39 * time.Minute)
		if n := st.scans.Load(); scans == 0 || n > scans {
			t.Errorf("the run has made %d scans, and the tries to reclaim %d, want none", scans, n-scans)
		}
		if d, n, r := st.deletes.Load(), len(w.keys("tsdb")), st.tries.Load(); d != 1 || n != 11 || r < 10 {
			t.Errorf("while the disk is full: %d deletions, %d rows, %d tries to reclaim, want 1, "+
				"11 and 10 or more\n%s", d, n, r, log.Take())
		}
		time.Sleep(80 * time.Minute)
		if d, n := st.deletes.Load(), len(w.keys("tsdb")); d != 2 || n != 10 {
			t.Errorf("two hours later: %d deletions, %d rows, want 2 and 10", d, n)
		}

		st.full.Store(false)
		time.Sleep(6 * time.Minute)
		if st.reclaimed.Load() == 0 {
			t.Error("with room again, nothing is reclaimed")
		}
		log.Take()
		tries := st.tries.Load()
		time.Sleep(30 * time.Minute)
		if said, n := log.Take(), st.tries.Load(); said != "" || n > tries+2 {
			t.Errorf("afterwards %d tries, the log says %q", n-tries, said)
		}
	})
}

// A run by hand deletes the rows of all tables before it says that their place is not free yet.
func TestRunNow_place(t *testing.T) {
	working(t, ". 2d rollups=2d", func(w *world, _ *logtest.Log, _ func() func()) {
		st := crowdedWorld(w)
		worker := &retention.Worker{Job: w.job, Turns: retention.NewLocal()}
		report, err := worker.RunNow(w.Context(), 0, func(string) {})
		if err == nil || report.Deleted != 1 ||
			!strings.Contains(err.Error(), "the place of deleted rows on the disk: no room") {
			w.Errorf("%+v, %v", report, err)
		}
		if n := st.tries.Load(); n != 2 {
			w.Errorf("%d tables are tried, want both", n)
		}
	})
}

// One worker at a time has its turn. A caller of Take waits for it, or until its context ends. What is saved is there
// for the next one.
func TestLocal(t *testing.T) {
	l := retention.NewLocal()
	first, ok, err := l.Try(t.Context())
	if !ok || err != nil || first.State() != nil {
		t.Fatal(ok, err)
	}
	if _, ok, err := l.Try(t.Context()); ok || err != nil {
		t.Error("two have their turn")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Take(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("taken: %v", err)
	}
	if err := first.Save(t.Context(), []byte("s")); err != nil {
		t.Error(err)
	}
	taken := make(chan string)
	go func() {
		second, err := l.Take(t.Context())
		if err != nil {
			taken <- err.Error()
			return
		}
		taken <- string(second.State())
	}()
	for range 2 { // a second release does nothing
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if first.Context().Err() == nil {
		t.Error("the context of a released turn goes on")
	}
	if state := <-taken; state != "s" {
		t.Errorf("the next one has %q", state)
	}
}

// Rows that are deleted one by one are so many a second.
func TestRun_rate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schema := schemaOf(0)
		w := onHBaseWith(t, rand.New(rand.NewPCG(1, 1)), schema)
		w.job.Rules, w.job.Rate = parse(t, ". 1d"), 100
		for i := range 2000 {
			w.put("tsdb", 0, (now-20*86_400)/hour*hour, i)
		}
		var lines []string
		w.job.Now = func() time.Time {
			return time.Unix(now, 0).Add(time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
		}
		w.job.Progress = func(line string) { lines = append(lines, line) }
		began := time.Now()
		if _, err := w.job.Run(t.Context(), 0, 2000); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 19*time.Second || took > 25*time.Second {
			t.Errorf("2000 rows took %v, want 20 s", took)
		}
		if len(lines) == 0 || !strings.Contains(fmt.Sprint(lines), "of 2000 rows deleted; all before row") {
			t.Errorf("progress %q", lines)
		}
	})
}

// A worker's metrics show what it has deleted, when a run last reached its end, and that one was refused.
func TestWorker_metrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := embedded(t, rand.New(rand.NewPCG(3, 3)))
		w.job.Rules = parse(t, ". 2d")
		began := time.Now()
		w.job.Now = func() time.Time { return time.Unix(now, 0).Add(time.Since(began)) }
		worker := &retention.Worker{Job: w.job, Turns: retention.NewLocal(), Log: slog.New(slog.DiscardHandler)}
		registry := prometheus.NewRegistry()
		registry.MustRegister(worker)
		check := func(deleted, failures, done float64) {
			t.Helper()
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, f := range families {
				got[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
			}
			want := map[string]float64{
				"downpour_retention_deleted_rows_total": deleted,
				"downpour_retention_failures_total":     failures,
				"downpour_retention_done_seconds":       done,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("after %v (-want +got):\n%s", time.Since(began), diff)
			}
		}
		for i := range 10 {
			w.put("tsdb", 2, now/hour*hour, i)
		}
		w.put("tsdb", 0, (now-10*86_400)/hour*hour, 1)
		check(0, 0, 0)

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			worker.Run(ctx)
		}()
		defer func() {
			cancel()
			<-ended
		}()
		time.Sleep(time.Minute)
		check(1, 0, now)
		for i := range 30 {
			w.put("tsdb", 0, now/hour*hour-2*86_400, i) // past within the hour, and most of all rows
		}
		time.Sleep(time.Hour + 10*time.Minute)
		check(1, 1, now)
	})
}
