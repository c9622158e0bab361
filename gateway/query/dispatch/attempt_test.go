package dispatch

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	processmemory "downpour/pushdown/process/memory"
)

// What the first attempt at a part holds counts in its run, what a second one holds does not before it is accepted;
// both count in the process. Of an attempt that is not used nothing counts. A run may hold just its limit.
func TestAttempt_memory(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	e := New(quiet(m, mem))
	sink := func(scanplan.KeyRange, []batch.Record) error { return nil }
	begin := func() (*run, *pendingPart) {
		r := newRun(e, &plan, Options{}, sink, partition{parts: []part{{Range: plan.Ranges[0]}}})
		return r, r.queue.unplaced[0]
	}
	var bytes int64
	for _, second := range []bool{false, true} {
		pool := processmemory.New(1 << 30)
		account := pool.Open(processmemory.Query)
		defer account.Close()
		ctx := processmemory.With(t.Context(), account)
		r, p := begin()
		a := r.attempt(ctx, p, &runningAttempt{place: e.here, second: second, cancel: func() {}})
		if a.err != nil {
			t.Fatal(a.err)
		}
		bytes = recordBytes(a.records)
		want := bytes
		if second {
			want = 0
		}
		if held := r.heldBytes.Load(); held != want || account.Held() < bytes || bytes == 0 {
			t.Errorf("second %v: %d bytes of %d count in the run, and %d in the process", second, held, bytes,
				account.Held())
		}
		if r.discard(&a); r.heldBytes.Load() != 0 || r.stats.Discarded != 1 {
			t.Errorf("second %v: %d bytes of %d discarded attempts count", second, r.heldBytes.Load(),
				r.stats.Discarded)
		}
		if a.release(); account.Held() >= bytes {
			t.Errorf("second %v: %d bytes of the process are held behind the end", second, account.Held())
		}
	}

	for limit, ok := range map[int64]bool{bytes: true, bytes - 1: false} {
		plan.MaxBytes = limit
		r, _ := begin()
		var over *operator.LimitError
		if err := r.reserve(bytes); (err == nil) != ok || !ok && !errors.As(err, &over) {
			t.Errorf("%d bytes of %d: %v", bytes, limit, err)
		}
	}
}

// An attempt ends with the error of its memory, and holds what it got until then.
func TestAttempt_tooMuch(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	e := New(quiet(m, mem))
	plan.MaxBytes = 1
	r := newRun(e, &plan, Options{}, nil, partition{parts: []part{{Range: plan.Ranges[0]}}})
	a := r.attempt(t.Context(), r.queue.unplaced[0], &runningAttempt{place: e.here, cancel: func() {}})
	var over *operator.LimitError
	if !errors.As(a.err, &over) {
		t.Errorf("got %v, want that the limit is passed", a.err)
	}
	a.release()
}

// The keys of all ranges of a plan come in their order, each once, and the error of who gets them ends that.
func TestExecutor_keys(t *testing.T) {
	m, s := table(true)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	e := New(quiet(m, memory.NewGoAllocator()))
	var got [][]byte
	err := e.Keys(t.Context(), &plan, func(keys [][]byte) error {
		got = append(got, keys...)
		return nil
	})
	if err != nil || len(got) != len(m.Rows) {
		t.Fatalf("%v, %d keys, want %d", err, len(got), len(m.Rows))
	}
	for i, key := range got {
		if !bytes.Equal(key, m.Rows[i].Key) {
			t.Fatalf("key %d is %X, want %X", i, key, m.Rows[i].Key)
		}
	}
	err = e.Keys(t.Context(), &plan, func([][]byte) error { return context.Canceled })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of who gets the keys", err)
	}
	if n, err := e.DiskBytes(t.Context(), &plan); n != 0 || err != nil {
		t.Errorf("a store that does not know its bytes on the disk has %d, %v", n, err)
	}
}

// A run whose sink fails ends its other attempts, and gives back what those hold that have ended by then.
func TestRun_sinkFails(t *testing.T) {
	boom := errors.New("boom")
	for _, hangs := range []bool{false, true} {
		m, s := table(true)
		plan := operatortest.Plan(s, metric, base, base+6*3600)
		plan.Ranges = plan.Ranges[:2]
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		var mu sync.Mutex
		var first context.Context
		m.Fail = func(ctx context.Context, _ int) error {
			mu.Lock()
			if first == nil {
				first = ctx
			}
			waits := hangs && ctx != first
			mu.Unlock()
			if waits {
				<-ctx.Done() // the run ends it
			}
			return nil
		}
		_, err := New(quiet(m, mem)).Run(t.Context(), &plan, Options{Aggregation: PerSeries},
			func(scanplan.KeyRange, []batch.Record) error {
				for !hangs && m.Open.Load() > 0 { // until the other attempt has ended, too
					runtime.Gosched()
				}
				return boom
			})
		if !errors.Is(err, boom) {
			t.Errorf("hangs %v: got %v, want the error of the sink", hangs, err)
		}
		mem.AssertSize(t, 0)
	}
}

// A place has room for as many parts of a run as its setting says.
func TestRun_hasRoom(t *testing.T) {
	cfg := quiet(nil, nil, &scripted{name: "s"})
	cfg.Local, cfg.PerServer = 1, 3
	e := New(cfg)
	r := newRun(e, &scanplan.Plan{}, Options{}, nil, partition{})
	server := e.servers.list()[0]
	for busy := range 5 {
		r.busy[e.here], r.busy[server] = busy, busy
		if here, there := r.hasRoom(e.here), r.hasRoom(server); here != (busy < 1) || there != (busy < 3) {
			t.Errorf("%d are busy: room here %v, at the server %v", busy, here, there)
		}
	}
}
