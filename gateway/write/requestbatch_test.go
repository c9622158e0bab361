package write

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// slow is a store that counts the calls of Apply that wait for memory.hold.
type slow struct {
	memory
	waiting atomic.Int32
}

func (s *slow) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	return s.memory.Apply(ctx, table, mutations)
}

// add puts a point of a series into a request.
func add(t *testing.T, to *RequestBatch, host string, at int64, v int64) *Batch {
	t.Helper()
	s, err := to.w.series.Resolve(t.Context(), "m", []Tag{{"host", host}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := to.AddTo(t.Context(), s, &Point{Time: at, Value: encoding.IntValue(v)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Request batches are written at the same time as each other and as a shard's batch, and no point
// is acknowledged before the store has it. Requests that are too small go to the shard.
func TestRequestBatch_sideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slow{memory: memory{hold: make(chan struct{})}}
		schema := encoding.DefaultSchema()
		w := New(Config{Schema: schema, Form: Appended, RequestBatchFrom: 2}, m, newTestSeries(&numbering{}))
		var batches []*Batch
		for i, points := range []int{1, 2, 3, 1} {
			request := w.RequestBatch(points)
			for p := range points {
				batches = append(batches, add(t, request, strconv.Itoa(i), int64(1292148000+p), 1))
			}
			request.Send()
			request.Send() // nothing is left to send
		}
		answers := make(chan error, len(batches))
		for _, b := range batches {
			go func() { answers <- b.Wait(t.Context()) }()
		}
		synctest.Wait()
		if n := m.waiting.Load(); n != 3 || len(answers) != 0 {
			t.Errorf("%d batches at the store and %d points acknowledged, want 3 and none", n, len(answers))
		}
		close(m.hold)
		for range batches {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		w.Close()
		if m.calls != 3 || len(m.applied) != 4 {
			t.Errorf("%d rows in %d writes, want 4 in 3", len(m.applied), m.calls)
		}
	})
}

// All points of a request are written to their rows, however many batches it is split into. Of
// two points of one time the later one wins.
func TestRequestBatch_order(t *testing.T) {
	seed := seedtest.Of(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 20 {
		m := &memory{}
		w := newTestWriter(m, Config{Form: Appended, RequestBatchFrom: 1, WindowBytes: 50 + rnd.IntN(1000)})
		want := map[string]string{}
		request := w.RequestBatch(500)
		var batches []*Batch
		for i := range 500 {
			host, at := strconv.Itoa(rnd.IntN(5)), int64(1292148000+rnd.IntN(7200))
			if rnd.IntN(50) == 0 {
				w.series.Drop() // the next series keys are new objects
			}
			batches = append(batches, add(t, request, host, at, int64(i)))
			s, err := w.series.Resolve(t.Context(), "m", []Tag{{"host", host}})
			if err != nil {
				t.Fatal(err)
			}
			base := encoding.KeyTime(encoding.Hour(at))
			want[fmt.Sprintf("% X @%d", w.cfg.Schema.AppendRowKey(nil, s.Metric, base, s.Tags),
				(at-int64(base))*1000)] = strconv.Itoa(i)
		}
		request.Send()
		for _, b := range batches {
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(want, held(t, m.applied)); d != "" {
			t.Errorf("-want +got\n%.2000s", d)
		}
		w.Close()
	}
}

// A request whose batch is full waits until it is written before it takes another point. A
// caller that gives up before then has not put its point.
func TestRequestBatch_pushesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{hold: make(chan struct{})}
		w := newTestWriter(m, Config{Form: Appended, RequestBatchFrom: 1, WindowBytes: 1})
		request := w.RequestBatch(2)
		first := add(t, request, "a", 1292148000, 1)
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan error)
		go func() {
			s, err := w.series.Resolve(ctx, "m", []Tag{{"host", "a"}})
			if err == nil {
				_, err = request.AddTo(ctx, s, &Point{Time: 1292148001, Value: encoding.IntValue(2)})
			}
			refused <- err
		}()
		synctest.Wait()
		select {
		case err := <-refused:
			t.Fatalf("a point was taken (%v) while the store stood still", err)
		default:
		}
		cancel()
		if err := <-refused; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		close(m.hold)
		if err := first.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		w.Close()
		if len(m.applied) != 1 {
			t.Errorf("%d rows, want the one of the point that was taken", len(m.applied))
		}
	})
}

// Close waits for request batches that were sent. Those that are sent later fail with ErrClosing,
// an error after which a client may send again.
func TestRequestBatch_close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{hold: make(chan struct{})}
		w := newTestWriter(m, Config{Form: Appended, RequestBatchFrom: 1})
		early, late := w.RequestBatch(1), w.RequestBatch(1)
		sent, kept := add(t, early, "a", 1292148000, 1), add(t, late, "b", 1292148000, 1)
		early.Send()
		closed := make(chan struct{})
		go func() {
			w.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close did not wait for the batch that was sent")
		default:
		}
		late.Send()
		close(m.hold)
		<-closed
		if err := sent.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if err := kept.Wait(t.Context()); !errors.Is(err, ErrClosing) || !IsStorage(err) {
			t.Errorf("got %v, want %v", err, ErrClosing)
		}
		if len(m.applied) != 1 {
			t.Errorf("%d rows, want one", len(m.applied))
		}
	})
}

// A point with a time that no row can hold is refused and not added to a batch.
func TestRequestBatch_time(t *testing.T) {
	w := newTestWriter(&memory{}, Config{Form: Appended, RequestBatchFrom: 1})
	defer w.Close()
	s, err := w.series.Resolve(t.Context(), "m", []Tag{{"host", "a"}})
	if err != nil {
		t.Fatal(err)
	}
	request := w.RequestBatch(1)
	for _, at := range []int64{0, -1, maxMillis + 1} {
		if _, err := request.AddTo(t.Context(), s,
			&Point{Time: at, Value: encoding.IntValue(1)}); !errors.Is(err, ErrTimestamp) {
			t.Errorf("time %d: %v, want %v", at, err, ErrTimestamp)
		}
	}
}
