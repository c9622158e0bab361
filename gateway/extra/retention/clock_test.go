package retention_test

import (
	"errors"
	"strings"
	"testing"

	"downpour/gateway/extra/retention"
)

// A clock that is ahead, by less than what would make most of a table past, deletes nothing: no
// point has its times. Only what this host puts of itself may have them, by the same clock, and
// only once that is a day old it counts.
//
//fault:retention-by-a-clock-ahead !ok => !ok && false
func TestRun_clockAhead(t *testing.T) {
	both(t, func(w *world) {
		const days = 86_400
		w.job.Rules = parse(t, ". 400d rollups=keep")
		w.job.Own = func(name string) bool { return name == "net.in" }
		w.job.LastRun = now - hour
		for day := range int64(400) {
			w.put("tsdb", 0, (now-day*days)/hour*hour, 1)
			w.put("tsdb", 2, (now-day*days)/hour*hour, 1)
		}
		w.put("tsdb", 0, (now-410*days)/hour*hour, 1)
		w.put("tsdb", 0, (now+3*365*days)/hour*hour, 1) // of a collector that is wrong by itself
		all := len(w.keys("tsdb"))
		for _, ahead := range []int64{5, 30, 180} {
			w.job.Now = atTime(now + ahead*days)
			w.put("tsdb", 2, (now+ahead*days)/hour*hour, 1) // this host's own
			all++
			var refused *retention.RefusedError
			_, err := w.job.Run(t.Context(), 0, 0)
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "the clock, ") ||
				len(w.keys("tsdb")) != all {
				t.Errorf("%d days ahead: %v, %d of %d rows stay", ahead, err, len(w.keys("tsdb")), all)
			}
			if _, plan, err := w.job.Plan(t.Context()); plan == nil || err != nil {
				t.Errorf("%d days ahead: the plan does not say that: %v", ahead, err)
			}
		}

		// A host that has only its own metrics for days.
		w.put("tsdb", 2, (now+178*days)/hour*hour, 1)
		if _, err := w.job.Run(t.Context(), 0, 0); err != nil || len(w.keys("tsdb")) > all-300 {
			t.Errorf("with its own rows of two days ago: %v, %d rows stay", err, len(w.keys("tsdb")))
		}
	})
}

// With the right clock, or one at most a few days ahead, what is past is deleted. The same holds when the caller
// allows that many rows, when no earlier run is known, and, if the last run was recent, without any recent point.
func TestRun_clockRight(t *testing.T) {
	both(t, func(w *world) {
		w.job.Rules = parse(t, ". 30d")
		for day := range int64(40) {
			w.put("tsdb", 0, (now-day*86_400)/hour*hour, 1)
		}
		w.job.Now = atTime(now + 3*86_400)
		if report, err := w.job.Run(t.Context(), 0, 0); err != nil || report.Deleted < 9 || report.Deleted > 13 {
			t.Errorf("%+v, %v", report, err)
		}
		w.job.Now, w.job.LastRun = atTime(now+10*86_400), now+3*86_400
		if _, err := w.job.Run(t.Context(), 0, 0); err == nil {
			t.Error("ten days after the last point, a week after the last run, nothing is asked")
		}
		if report, err := w.job.Run(t.Context(), 0, 100); err != nil || report.Deleted < 6 {
			t.Errorf("as many as are told: %+v, %v", report, err)
		}
		for i, last := range []int64{now + 10*86_400, 0} {
			w.job.Now, w.job.LastRun = atTime(now+int64(11+i)*86_400), last
			if report, err := w.job.Run(t.Context(), 0, 0); err != nil || report.Deleted == 0 {
				t.Errorf("the last run at %d: %+v, %v", last, report, err)
			}
		}
	})
}
