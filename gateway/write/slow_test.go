package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
)

// stuck is a store that answers once free is closed and ignores contexts, like a disk that does
// not respond.
type stuck struct {
	memory
	free chan struct{}
}

func (s *stuck) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	<-s.free
	return s.memory.Apply(ctx, table, mutations)
}

// Abandon ends all waits for a store that does not answer with ErrClosing: for batches at the
// store, for the batch that is being filled, and for room in it. It returns how many points were
// taken and not stored. Points acknowledged before stay so, and a late answer does no harm.
//
//fault:abandoned-points-acknowledged errAbandoned => nil
func TestWriter_abandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &stuck{free: make(chan struct{})}
		schema := encoding.DefaultSchema()
		w := New(Config{Schema: schema, Form: Appended, WindowBytes: 200, RequestBatchFrom: 2}, m,
			NewSeries(SeriesConfig{Schema: schema, Names: &numbering{}, Auto: Auto{true, true, true}}))
		close(m.free)
		first, err := w.Add(t.Context(), point(1292148000, encoding.IntValue(1)))
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.free = make(chan struct{})
		stored, refused := 1, 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 10 { // some of them wait for room
			all.Go(func() {
				b, err := w.Add(t.Context(), point(1292148000+int64(i)*3600, encoding.IntValue(1)))
				taken := err == nil
				if taken {
					err = b.Wait(t.Context())
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case !errors.Is(err, ErrClosing) || !IsStorage(err):
					t.Errorf("got %v, want that the writer is closing", err)
				case taken:
					refused++
				}
			})
		}
		request := w.RequestBatch(3)
		var batch *Batch
		for i := range int64(3) {
			batch = add(t, request, "bundle", 1292148000+i, 1)
		}
		request.Send()
		synctest.Wait()
		n := w.Abandon()
		all.Wait()
		if err := batch.Wait(t.Context()); !errors.Is(err, ErrClosing) {
			t.Errorf("the request batch: got %v, want that the writer is closing", err)
		}
		if refused += 3; n != refused {
			t.Errorf("Abandon returned %d points, want the %d whose waits have failed", n, refused)
		}
		if err := first.Wait(t.Context()); err != nil {
			t.Errorf("the point acknowledged before: got %v, want no error", err)
		}
		if len(m.applied) != stored {
			t.Errorf("%d rows stored, want %d", len(m.applied), stored)
		}
		if _, err := w.Add(t.Context(), point(1292148000, encoding.IntValue(1))); !errors.Is(err, ErrClosing) {
			t.Errorf("Add after Abandon: %v, want %v", err, ErrClosing)
		}
		close(m.free) // the store wakes up
		w.Close()
	})
}

// After Abandon a store that heeds contexts ends its calls, so that Close has nothing to wait for.
func TestWriter_abandonEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestWriter(&memory{hold: make(chan struct{})}, Config{})
		if _, err := w.Add(t.Context(), point(1292148000, encoding.IntValue(1))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the batch is at the store
		if n := w.Abandon(); n != 1 {
			t.Errorf("%d points were abandoned, want one", n)
		}
		w.Close()
	})
}

// Regions that flush take no writes for half of every minute: they refuse them, or keep their
// handlers waiting. Every point is stored, no put fails, and HBase is sent at most twice as many
// cells as points were put.
func TestWriter_flushingRegions(t *testing.T) {
	for name, blocked := range map[string]func(rest time.Duration) hbasefake.Fault{
		"refuses": func(time.Duration) hbasefake.Fault {
			return hbasefake.Fault{
				Kind:      hbasefake.RefuseActions,
				Exception: "org.apache.hadoop.hbase.RegionTooBusyException",
			}
		},
		"waits": func(rest time.Duration) hbasefake.Fault { return hbasefake.Fault{Delay: rest} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := opentest.Fake(t, hbasefake.Options{Handlers: 4})
				fake.CreateTable("tsdb", []string{"t"}, []byte("\x00\x00\x01\x4D\x04\xF0"))
				st := opentest.HBaseWith(t, fake, hbase.Config{})
				began := time.Now()
				fake.SetHook(func(call hbasefake.Call) hbasefake.Fault {
					since := time.Since(began) % time.Minute
					if call.Method == "Multi" && since < time.Minute/2 {
						return blocked(time.Minute/2 - since)
					}
					return hbasefake.Fault{Delay: 20 * time.Millisecond}
				})
				schema := encoding.DefaultSchema()
				w := New(Config{Schema: schema, Table: "tsdb", Shards: 4}, st,
					NewSeries(SeriesConfig{Schema: schema, Names: &numbering{}, Auto: Auto{true, true, true}}))
				asked := putFor(t, w, 5*time.Minute)
				w.Close()
				fake.SetHook(nil)
				stored := countCells(t, st)
				t.Logf("%d points put, %d stored, %d cells received: %.2f times as many", asked, stored,
					fake.Received(), float64(fake.Received())/float64(asked))
				if stored != asked || fake.Received() > 2*asked {
					t.Errorf("%d points put, %d stored, %d cells received; want all, and at most twice as many", asked,
						stored, fake.Received())
				}
			})
		})
	}
}

// putFor lets eight senders put points for a while, ten at a time, and returns the number of
// points.
func putFor(t *testing.T, w *Writer, long time.Duration) (asked int) {
	began := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := int64(0); time.Since(began) < long; i += 10 {
				batches := map[*Batch]bool{}
				for k := range int64(10) {
					p := &Point{
						Metric: "m",
						Tags:   []Tag{{"g", fmt.Sprint(g)}},
						Time:   1292148000 + (i+k)*60,
						Value:  encoding.IntValue(i),
					}
					b, err := w.Add(context.Background(), p)
					if err != nil {
						t.Error(err)
						return
					}
					batches[b] = true
				}
				for b := range batches {
					if err := b.Wait(context.Background()); err != nil {
						t.Error(err)
						return
					}
				}
				mu.Lock()
				asked += 10
				mu.Unlock()
				time.Sleep(time.Second)
			}
		})
	}
	all.Wait()
	return asked
}

func countCells(t *testing.T, st store.Store) (n int) {
	t.Helper()
	sc, err := st.Scan(context.Background(), store.Scan{Table: "tsdb"})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	for {
		rows, err := sc.Next()
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			n += len(r.Cells)
		}
	}
}
