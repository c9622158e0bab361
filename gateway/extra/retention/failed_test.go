package retention_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/gateway/extra/retention"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
)

// partly is a store that fails some calls.
type partly struct {
	store.Store
	mu     sync.Mutex
	refuse func(call, table string) error // nil for none
	scans  int
}

func (*partly) Features() store.Features { return store.Features{} }

func (p *partly) ask(call, table string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if call == "scan" {
		p.scans++
	}
	if p.refuse == nil {
		return nil
	}
	return p.refuse(call, table)
}

func (p *partly) set(refuse func(call, table string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

func (p *partly) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	if err := p.ask("scan", s.Table); err != nil {
		return nil, err
	}
	return p.Store.Scan(ctx, s)
}

func (p *partly) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	if err := p.ask("apply", table); err != nil {
		return err
	}
	return p.Store.Apply(ctx, table, mutations)
}

// partlyPast is a world where each table has a row that is past and two that are not.
func partlyPast(w *world) *partly {
	st := &partly{Store: w.store}
	w.job.Store, w.job.Rules = st, parse(w.T, ". 2d rollups=2d")
	for _, t := range w.job.Tables {
		for i, age := range []int64{10, 1, 0} {
			w.put(t.Name, 0, t.Span.BaseTime(now-age*86_400), i)
		}
	}
	return st
}

// of returns an error of one call on one table.
func of(call, table string, err error) func(c, t string) error {
	return func(c, t string) error {
		if c == call && t == table {
			return err
		}
		return nil
	}
}

// A table that cannot be read, or written, does not keep the rows of others, in whatever order; the error names it,
// and every other that fails. A right that we lack, and the end of the run, end it for all.
func TestRun_tables(t *testing.T) {
	broken := errors.New("no region")
	for _, call := range []string{"scan", "apply"} {
		for _, at := range []int{0, 1} {
			both(t, func(w *world) {
				st := partlyPast(w)
				failing, other := w.job.Tables[at].Name, w.job.Tables[1-at].Name
				st.set(of(call, failing, broken))
				report, err := w.job.Run(t.Context(), 0, 0)
				if !errors.Is(err, broken) || !strings.Contains(err.Error(), "table "+failing+": ") ||
					strings.Contains(err.Error(), "table "+other+": ") {
					t.Errorf("%s of %s: %v", call, failing, err)
				}
				if report.Deleted != 1 || report.Tables[1-at].Deleted != 1 || len(w.keys(other)) != 2 ||
					len(w.keys(failing)) != 3 {
					t.Errorf("%s of %s: %+v, %d and %d rows",
						call, failing, report, len(w.keys(other)), len(w.keys(failing)))
				}
				if _, _, err := w.job.Plan(t.Context()); call == "scan" && !errors.Is(err, broken) {
					t.Errorf("the plan does not say that it is a part: %v", err)
				}

				for what, err := range map[string]error{
					"denied": fmt.Errorf("%w, says the test", store.ErrDenied),
					"ended":  nil,
				} {
					w.put(other, 0, 0, 1)
					ctx, cancel := context.WithCancel(t.Context())
					st.set(func(c, of string) error {
						if ctx.Err() != nil {
							t.Errorf("%s: after the end of %s of %s comes %s of %s", what, call, failing, c, of)
						}
						if c == call && of == failing {
							if what == "ended" {
								cancel()
								return ctx.Err()
							}
							return err
						}
						return nil
					})
					report, err := w.job.Run(ctx, 0, 0)
					// The data table comes first, and is done before the other one is written to.
					if done := call == "apply" && at == 1; err == nil || done != (report.Deleted > 0) {
						t.Errorf("%s: %s of %s: %+v, %v", what, call, failing, report, err)
					}
					cancel()
				}

				st.set(func(string, string) error { return broken })
				if _, err := w.job.Run(t.Context(), 0, 0); strings.Count(fmt.Sprint(err), "no region") != 2 {
					t.Errorf("both fail: %v", err)
				}
				st.set(nil)
				if _, err := w.job.Run(t.Context(), 0, 0); err != nil || len(w.keys(failing)) != 2 {
					t.Errorf("in the end: %v, %d rows", err, len(w.keys(failing)))
				}
			})
		}
	}
}

// The guard looks at the rows of the table that can be read as at any other time.
func TestRun_tablesGuard(t *testing.T) {
	both(t, func(w *world) {
		st := partlyPast(w)
		w.put("tsdb", 0, (now-5*86_400)/hour*hour, 7)
		w.put("tsdb", 0, (now-6*86_400)/hour*hour, 7)
		st.set(of("scan", rollupTable, errors.New("no region")))
		var refused *retention.RefusedError
		report, err := w.job.Run(t.Context(), 0, 0)
		if !errors.As(err, &refused) || report.Deleted != 0 || len(w.keys("tsdb")) != 5 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// For days one table cannot be read: a worker deletes what is past of the other as ever, once an hour, logs the
// cause each time, and has done both when both can be read.
func TestWorker_tables(t *testing.T) {
	working(t, ". 2d rollups=2d", func(w *world, log *logtest.Log, start func() func()) {
		t := w.T // of the simulated time
		st := partlyPast(w)
		for i := range 5 { // so that more stay than go
			w.put("tsdb", 0, now/hour*hour+9*86_400, i)
			w.put(rollupTable, 0, daily.BaseTime(now+9*86_400), i)
		}
		w.put("tsdb", 0, now/hour*hour+2*86_400, 9) // of the last days when these are over
		st.set(of("scan", rollupTable, errors.New("no region")))
		stop := start()
		defer stop()
		pass(50*time.Hour + time.Minute)
		if n, said := len(w.keys("tsdb")), log.Take(); n != 6 || strings.Count(said, "no region") != 51 {
			t.Errorf("%d rows of the other table stay, want 6, and the log has %d lines, "+
				"want 51 times the cause: %.1000s", n, strings.Count(said, "\n"), said)
		}
		st.mu.Lock()
		scans := st.scans
		st.mu.Unlock()
		if scans > 51*4 {
			t.Errorf("%d scans in 51 runs", scans)
		}
		if n := len(w.keys(rollupTable)); n != 8 {
			t.Errorf("%d rows of the table that cannot be read", n)
		}
		st.set(nil)
		pass(time.Hour + 5*time.Minute)
		if n := len(w.keys(rollupTable)); n != 5 {
			t.Errorf("in the end %d rows stay, want 5: %s", n, log.Take())
		}
	})
}
