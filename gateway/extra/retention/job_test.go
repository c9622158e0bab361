package retention_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/retention/rules"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// check compares the rows that are there with those that are to stay.
func (w *world) check(what string) {
	w.Helper()
	for _, table := range w.job.Tables {
		if d := cmp.Diff(w.want(table.Name, table.Span, table.Interval), w.keys(table.Name)); d != "" {
			w.Errorf("%s: table %s (-want +got)\n%s\nrules:\n%s", what, table.Name, d, w.job.Rules.Text())
		}
	}
}

// run deletes what is past, whatever part of the table that is.
func (w *world) run(since int64) *retention.Report {
	w.Helper()
	report, err := w.job.Run(w.Context(), since, int64(w.past()))
	if err != nil {
		w.Fatal(err)
	}
	return report
}

// Exactly the rows that are wholly past are gone, whatever the rules, salts and rows are. A
// second run finds nothing. Afterwards puts into deleted hours are found and deleted by another one.
//
//fault:retention-of-impossible-rows r.Contains(keys[0]) => false
func TestRun_drawn(t *testing.T) {
	for range 8 {
		both(t, func(w *world) {
			w.job.Rules = parse(t, w.drawRules())
			w.draw(120)
			past := w.past()
			report := w.run(0)
			w.check("a run")
			if report.Rows != int64(past) || report.Deleted != int64(past) {
				t.Errorf("the report says %d of %d rows, want %d", report.Deleted, report.Rows, past)
			}

			w.rows = w.left()
			if again := w.run(0); again.Rows != 0 || again.Deleted != 0 {
				t.Errorf("a second run deletes %d of %d rows", again.Deleted, again.Rows)
			}
			w.check("a second run")

			w.draw(20)
			w.run(0)
			w.check("a run after late points")
		})
	}
}

// left returns the rows that are to stay.
func (w *world) left() map[string]map[string]row {
	all := map[string]map[string]row{}
	for _, table := range w.job.Tables {
		all[table.Name] = map[string]row{}
		for key, r := range w.rows[table.Name] {
			if slices.Contains(w.want(table.Name, table.Span, table.Interval), fmt.Sprintf("%x", key)) {
				all[table.Name][key] = r
			}
		}
	}
	return all
}

// disturbed is a store in which something happens before each change.
type disturbed struct {
	store.Cells
	before func() error
}

func (*disturbed) Features() store.Features { return store.Features{} }

func (d *disturbed) Apply(ctx context.Context, table string, ms []store.Mutation) error {
	if err := d.before(); err != nil {
		return err
	}
	return d.Cells.Apply(ctx, table, ms)
}

// Regions split and move, and rows are put, while the rows are deleted; the run may be cut at any
// call and is made again. In the end exactly the past rows are gone.
func TestRun_disturbed(t *testing.T) {
	seed := seedtest.Of(t)
	w := onHBase(t, rand.New(rand.NewPCG(seed, 0)))
	w.job.Rules = parse(t, "^sys 3d rollups=4d\nnet 5d\n. 100h")
	w.draw(100)
	for i := range 1500 { // several calls
		w.put("tsdb", 0, (now-5*86_400)/hour*hour, i)
	}

	cut := errors.New("killed")
	var calls int
	w.job.Store = &disturbed{w.store, func() error {
		key := w.schema.AppendRangeKey(nil, w.rng.IntN(w.schema.Buckets()), metric(w.rng.IntN(4)),
			uint32(now-w.rng.Int64N(12*86_400)))
		w.fake.SplitRegion("tsdb", key)
		w.fake.MoveRegion("tsdb", key)
		if calls++; calls%2 == 0 {
			return cut
		}
		return nil
	}}
	allowed := int64(w.past())
	runs := 0
	for ; runs < 1000; runs++ {
		_, err := w.job.Run(t.Context(), 0, allowed)
		if err == nil {
			break
		}
		if !errors.Is(err, cut) || !strings.Contains(err.Error(), "run it again to go on") {
			t.Fatal(err)
		}
	}
	t.Logf("%d runs were cut", runs)
	if runs == 0 {
		t.Error("no run was cut")
	}
	w.check("in the end")
}

// If more than half of a table would go, nothing does, unless so many rows are allowed.
//
//fault:retention-without-a-guard p.rows => 0
func TestRun_guard(t *testing.T) {
	both(t, func(w *world) {
		w.job.Rules = parse(t, "sys.cpu 1d\nsys.mem 2d\n. keep")
		for i := range 6 {
			w.put("tsdb", i%2, (now-20*86_400)/hour*hour, i)
			w.put("tsdb", 2, now/hour*hour, i)
		}
		all := w.keys("tsdb")
		unchanged := func() {
			t.Helper()
			if d := cmp.Diff(all, w.keys("tsdb")); d != "" {
				t.Errorf("a run that is refused has changed\n%s", d)
			}
		}
		// Half may go: six of twelve. One more may not.
		w.put("tsdb", 1, (now-20*86_400)/hour*hour, 9)
		all = w.keys("tsdb")
		var refused *retention.RefusedError
		_, err := w.job.Run(t.Context(), 0, 0)
		if !errors.As(err, &refused) || refused.Rows != 7 ||
			!strings.Contains(err.Error(), "of table tsdb 7 rows are past and only 6 are not") ||
			!strings.Contains(err.Error(), "gateway retention run -yes-delete 7") {
			t.Errorf("seven of thirteen rows: %v", err)
		}
		unchanged()
		_, err = w.job.Run(t.Context(), 0, 6)
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "7 rows are past, at most 6 may go") {
			t.Errorf("six of seven rows allowed: %v", err)
		}
		unchanged()
		report, said, err := w.job.Plan(t.Context())
		if err != nil || said == nil || report.Rows != 7 || report.Deleted != 0 {
			t.Errorf("the plan says %+v, %v, %v", report, said, err)
		}
		unchanged()

		w.put("tsdb", 2, now/hour*hour, 9)
		if _, said, err := w.job.Plan(t.Context()); said != nil || err != nil {
			t.Errorf("seven of fourteen rows: the plan says %v, %v", said, err)
		}
		if report, err := w.job.Run(t.Context(), 0, 0); err != nil || report.Deleted != 7 {
			t.Errorf("seven of fourteen rows: %+v, %v", report, err)
		}
		w.check("allowed")

		// A wrong pattern: all rows of the table are past.
		w.rows = w.left()
		w.job.Rules = parse(t, ". 1h")
		w.job.Now = atTime(now + 100*86_400)
		if _, err := w.job.Run(t.Context(), 0, 0); !errors.As(err, &refused) || refused.Past != 7 {
			t.Errorf("all rows: %v", err)
		}
	})
}

// A run leaves out what an earlier one has deleted, and a run over all rows does not.
func TestRun_since(t *testing.T) {
	both(t, func(w *world) {
		w.job.Rules = parse(t, ". 2d")
		late, due := int64(now-5*86_400)/hour*hour, int64(now-2*86_400)/hour*hour-hour
		w.put("tsdb", 0, late, 1)
		w.put("tsdb", 0, due, 1)
		w.put("tsdb", 0, due+hour, 1)
		w.put("tsdb", 0, due+2*hour, 1)
		report, err := w.job.Run(t.Context(), now-hour, 0)
		if err != nil || report.Deleted != 1 {
			t.Errorf("%+v, %v, want one row deleted", report, err)
		}
		want := w.want("tsdb", encoding.RowSpan{Count: 1, Unit: "h"}, "")
		var lateKey string
		for key, r := range w.rows["tsdb"] {
			if r.base == late {
				lateKey = fmt.Sprintf("%x", key)
			}
		}
		want = append(want, lateKey)
		slices.Sort(want)
		if d := cmp.Diff(want, w.keys("tsdb")); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		w.run(0)
		w.check("all rows")
	})
}

// A table of pre-aggregates that was never made keeps nothing from being deleted; the data table must be there.
func TestRun_missingTable(t *testing.T) {
	w := onHBase(t, rand.New(rand.NewPCG(1, 1)))
	w.job.Rules = parse(t, ". 2d")
	w.put("tsdb", 0, (now-20*86_400)/hour*hour, 1)
	w.job.Tables = append(w.job.Tables, retention.Table{Name: "preagg", Span: rules.Hour, Optional: true})
	if report, err := w.job.Run(t.Context(), 0, 1); err != nil || report.Deleted != 1 {
		t.Errorf("%+v, %v, want a row deleted", report, err)
	}
	w.job.Tables = []retention.Table{{Name: "other", Span: rules.Hour}}
	if _, err := w.job.Run(t.Context(), 0, 1); !errors.Is(err, store.ErrNoTable) {
		t.Errorf("got %v, want that the data table is not there", err)
	}
}

// However many rows have impossible keys, HBase's other rows go: each is deleted by itself.
func TestRun_manyImpossible(t *testing.T) {
	w := onHBaseWith(t, rand.New(rand.NewPCG(1, 1)), schemaOf(0))
	w.job.Rules = parse(t, ". 2d")
	base := (now - 20*86_400) / hour * hour
	w.put("tsdb", 0, int64(base), 1)
	var all []store.Mutation
	for i := range 10_001 {
		// Half a pair of tags.
		key := w.schema.AppendRowKey(nil, metric(0), uint32(base), []byte{0, 0, 1, byte(i >> 8), byte(i)})
		all = append(all, store.Mutation{
			Row:       key,
			Family:    encoding.FamilyData,
			Qualifier: []byte{0, 0},
			Value:     []byte{1},
		})
	}
	if err := w.store.Apply(t.Context(), "tsdb", all); err != nil {
		t.Fatal(err)
	}
	report, err := w.job.Run(t.Context(), 0, 1)
	if err != nil || report.Deleted != 1 || report.Tables[0].Impossible != len(all) {
		t.Errorf("%+v, %v, want a row deleted and %d impossible ones", report, err, len(all))
	}
}

// Of two names that lead to one UID the one whose rows are kept longest counts.
func TestRun_sharedUID(t *testing.T) {
	for _, text := range []string{"sys.cpu 1d\nsys.mem keep", "sys.cpu 1d", "sys.cpu 1d\nsys.mem 60d"} {
		w := embedded(t, rand.New(rand.NewPCG(1, 1)))
		w.job.Rules = parse(t, text)
		w.put("tsdb", 0, (now-20*86_400)/hour*hour, 1)
		each := w.job.Names
		w.job.Names = func(ctx context.Context) seq {
			return func(yield func(entry, error) bool) {
				for e, err := range each(ctx) {
					if e.Name == "sys.mem" {
						e.UID = metric(0)
					}
					if !yield(e, err) {
						return
					}
				}
			}
		}
		report, err := w.job.Run(t.Context(), 0, 100)
		if err != nil || report.Rows != 0 || len(w.keys("tsdb")) != 1 {
			t.Errorf("%q: %+v, %v, %q", text, report, err, w.keys("tsdb"))
		}
	}
}

// A run whose names cannot be read to the end deletes nothing; without tables of rollups it does its
// work on the others.
func TestRun_errors(t *testing.T) {
	both(t, func(w *world) {
		w.job.Rules = parse(t, ". 1d rollups=1d")
		w.put("tsdb", 0, (now-20*86_400)/hour*hour, 1)
		broken, each := errors.New("broken"), w.job.Names
		w.job.Names = func(ctx context.Context) seq {
			return func(yield func(entry, error) bool) {
				for e := range each(ctx) {
					yield(e, nil)
				}
				yield(entry{}, broken)
			}
		}
		if _, err := w.job.Run(t.Context(), 0, 100); !errors.Is(err, broken) || len(w.keys("tsdb")) != 1 {
			t.Errorf("%v, %q", err, w.keys("tsdb"))
		}
		w.job.Names = each
		w.job.Tables[1].Name = "none"
		if report, err := w.job.Run(t.Context(), 0, 100); err != nil || report.Deleted != 1 {
			t.Errorf("%+v, %v", report, err)
		}
		w.job.Tables[0].Name = "none"
		if _, err := w.job.Run(t.Context(), 0, 100); !errors.Is(err, store.ErrNoTable) {
			t.Errorf("no data table: %v", err)
		}
	})
}

// While rows go, every scan ends without an error, and no row that stays is missing in any.
func TestRun_reading(t *testing.T) {
	both(t, func(w *world) {
		w.job.Rules = parse(t, ". 3d")
		w.draw(60)
		for i := range 1200 {
			w.put("tsdb", 0, (now-5*86_400)/hour*hour, i)
		}
		stays := w.want("tsdb", encoding.RowSpan{Count: 1, Unit: "h"}, "")
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var scans atomic.Int64
		go func() {
			for ctx.Err() == nil {
				scans.Add(1)
				seen := map[string]bool{}
				for r, err := range store.Rows(t.Context(), w.store, store.Scan{Table: "tsdb", Family: "t"}) {
					if err != nil {
						done <- err
						return
					}
					seen[fmt.Sprintf("%x", r.Key)] = true
				}
				for _, key := range stays {
					if !seen[key] {
						done <- fmt.Errorf("row %s is missing", key)
						return
					}
				}
			}
			done <- nil
		}()
		w.run(0)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		t.Logf("%d scans", scans.Load())
		w.check("read meanwhile")
	})
}

// faultsOf makes each call of a method fail now and then.
func faultsOf(method string) func(hbasefake.Call) hbasefake.Fault {
	return func(c hbasefake.Call) hbasefake.Fault {
		if c.Method == method && c.N%3 == 1 {
			return hbasefake.Fault{
				Kind:      hbasefake.Refuse,
				Exception: "org.apache.hadoop.hbase.NotServingRegionException",
			}
		}
		return hbasefake.Fault{}
	}
}

// Calls that fail for a reason that passes are made again.
func TestRun_faults(t *testing.T) {
	seed := seedtest.Of(t)
	w := onHBase(t, rand.New(rand.NewPCG(seed, 0)))
	w.job.Rules = parse(t, ". 3d rollups=4d")
	w.draw(60)
	for _, method := range []string{"Multi", "Scan"} {
		w.fake.SetHook(faultsOf(method))
		w.draw(20)
		w.run(0)
	}
	w.fake.SetHook(nil)
	w.check("after faults")
}
