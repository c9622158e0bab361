package gateway_test

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

func (h *hesitant) CompareAndPut(ctx context.Context, table string, cell store.CellKey, expected, value []byte) (bool, error) {
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

func (a *hesitantAtomic) CompareAndPut(ctx context.Context, table string, cell store.CellKey, expected, value []byte) (bool, error) {
	a.h.pause()
	defer a.h.pause()
	return a.Atomic.CompareAndPut(ctx, table, cell, expected, value)
}

// hesitantStager is a hesitant store over the embedded one, which stages its changes of names.
type hesitantStager struct {
	*hesitant
	inner store.Stager
}

func (h *hesitantStager) Staged() store.Atomic { return h.atomic(h.inner.Staged()) }

func (h *hesitantStager) Sync(ctx context.Context) error { return h.inner.Sync(ctx) }
