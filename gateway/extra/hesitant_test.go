package extra_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"downpour/gateway"
	"downpour/pushdown/store"
)

// hesitant is a store that pauses at random before and after each operation, so that the steps of
// concurrent changes interleave.
type hesitant struct {
	gateway.Store
	mu  sync.Mutex
	rnd *rand.Rand
}

func (*hesitant) Features() store.Features { return store.Features{} }

func newHesitant(st gateway.Store, seed uint64) *hesitant {
	return &hesitant{Store: st, rnd: rand.New(rand.NewPCG(seed, 1))}
}

func (h *hesitant) pause() {
	h.mu.Lock()
	n := h.rnd.IntN(1000)
	h.mu.Unlock()
	switch {
	case n < 300:
		<-time.After(time.Duration(n) * 5 * time.Microsecond)
	case n < 600:
		runtime.Gosched()
	}
}

func (h *hesitant) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	h.pause()
	defer h.pause()
	return h.Store.Get(ctx, table, family, keys)
}

func (h *hesitant) Apply(ctx context.Context, table string, m []store.Mutation) error {
	h.pause()
	defer h.pause()
	return h.Store.Apply(ctx, table, m)
}

func (h *hesitant) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	h.pause()
	defer h.pause()
	return h.Store.Scan(ctx, s)
}

func (h *hesitant) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	return h.atomic(h.Store).Increment(ctx, table, cell, delta)
}

func (h *hesitant) CompareAndPut(
	ctx context.Context, table string, cell store.CellKey, expected, value []byte,
) (bool, error) {
	return h.atomic(h.Store).CompareAndPut(ctx, table, cell, expected, value)
}

func (h *hesitant) atomic(a store.Atomic) store.Atomic { return &hesitantAtomic{a, h} }

type hesitantAtomic struct {
	store.Atomic
	h *hesitant
}

func (a *hesitantAtomic) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	a.h.pause()
	defer a.h.pause()
	return a.Atomic.Increment(ctx, table, cell, delta)
}

func (a *hesitantAtomic) CompareAndPut(
	ctx context.Context, table string, cell store.CellKey, expected, value []byte,
) (bool, error) {
	a.h.pause()
	defer a.h.pause()
	return a.Atomic.CompareAndPut(ctx, table, cell, expected, value)
}

// hesitantStager is a hesitant store over the embedded one, which stages its changes of names.
type hesitantStager struct{ *hesitant }

func (h *hesitantStager) Features() store.Features {
	inner := h.Store.Features().Staged
	return store.Features{Staged: &hesitantStaged{&hesitantAtomic{inner, h.hesitant}, inner}}
}

// hesitantStaged puts cells one by one, so that there is a pause between any two.
type hesitantStaged struct {
	*hesitantAtomic
	inner store.Staged
}

func (s *hesitantStaged) PutAbsent(
	ctx context.Context, table string, cells []store.CellKey, values [][]byte,
) ([]bool, error) {
	return store.PutEachAbsent(ctx, s.hesitantAtomic, table, cells, values)
}

func (s *hesitantStaged) Sync(ctx context.Context) error { return s.inner.Sync(ctx) }
