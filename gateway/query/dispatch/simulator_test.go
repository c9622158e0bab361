package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
	"downpour/pushdown/rpc/wire"
	"downpour/pushdown/store"
)

// A run over faulty servers returns the answer of one part or an error, never another or an
// incomplete answer. In simulated time the servers break off, end a part early, send a batch twice,
// are late, panic, or do not know partial aggregates, and the store fails, too.
func TestSimulator(t *testing.T) {
	seed := seedtest.Of(t)
	var answers, failures int
	for i := range 400 {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		c := randomCutting(rng)
		want, wantErr := c.one()
		if infinite(wantErr) != (wantErr != nil) {
			t.Fatalf("case %d: %v\n%s", i, wantErr, c.plan.String())
		}
		synctest.Test(t, func(t *testing.T) {
			w := &world{cutting: c, rng: rng, mem: memory.NewCheckedAllocator(memory.NewGoAllocator())}
			got, err := w.run(pick(rng, Auto, Auto, PerSeries))
			if err != nil && !infinite(err) {
				failures++
				return
			}
			answers++
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("seed %d, case %d: error %v, want %v\n%s", seed, i, err, wantErr, c.plan.String())
			}
			if wantErr != nil {
				return
			}
			if diff := c.differ(want, got, false); diff != "" {
				t.Fatalf("seed %d, case %d: %s\n%s", seed, i, diff, c.plan.String())
			}
			if n := c.store.Open.Load(); n != 0 {
				t.Errorf("%d scanners are open", n)
			}
			w.mem.AssertSize(t, 0)
		})
	}
	t.Logf("%d answers, all right; %d errors", answers, failures)
	if answers < 200 {
		t.Errorf("%d answers of 400, want at least half", answers)
	}
}

// world is what one simulated query runs in.
type world struct {
	*cutting
	mu      sync.Mutex
	rng     *rand.Rand
	mem     *memory.CheckedAllocator
	trained bool // before, nothing fails
}

func (w *world) dice(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// run asks as the gateway does: again with per-series aggregation if partial aggregates fail with
// ErrOrder.
func (w *world) run(how Aggregation) (groups []merge.Group, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var servers []*scripted
	for i := range w.dice(4) {
		servers = append(servers,
			&scripted{name: fmt.Sprint("s", i), beside: fmt.Sprintf("rs%d:1", i), store: w.store, mem: w.mem})
	}
	cfg := quiet(&flaky{Store: w.store, fail: func() bool { return w.trained && w.dice(8) == 0 }}, w.mem, servers...)
	for i, s := range servers {
		cfg.Servers[i] = &bad{scripted: s, world: w, badness: w.dice(5)}
	}
	e := New(cfg)
	// Of every other run the paces of servers are known: then late parts are started twice.
	for range w.dice(2) * leastSamples {
		if _, err := e.Run(ctx, &w.plan, Options{Aggregation: how},
			func(scanplan.KeyRange, []batch.Record) error { return nil }); err != nil {
			break
		}
	}
	w.trained = true
	for {
		m := merge.New(&w.plan, nil)
		_, err = e.Run(ctx, &w.plan, Options{Aggregation: how},
			func(part scanplan.KeyRange, records []batch.Record) error {
				for _, r := range records {
					if err := m.Add(part, r); err != nil {
						return err
					}
				}
				return nil
			})
		if err == nil {
			groups, err = m.Finish()
		}
		if how == PerSeries || !errors.Is(err, merge.ErrOrder) {
			return groups, err
		}
		how = PerSeries
	}
}

// bad is a server that spoils some parts.
type bad struct {
	*scripted
	world   *world
	badness int // how many of 5 parts are spoiled, on average
}

// Open executes a part, or spoils it.
func (b *bad) Open(part *scanplan.Part, budget operator.Budget) (operator.Operator, error) {
	op, err := b.scripted.Open(part, budget)
	if err != nil || !b.world.trained || b.world.dice(5) >= b.badness {
		return op, err
	}
	return &spoiled{Operator: op, world: b.world, part: part, kind: b.world.dice(7), at: b.world.dice(3)}, nil
}

// spoiled is a part's stream with one fault.
type spoiled struct {
	operator.Operator
	world    *world
	part     *scanplan.Part
	kind, at int
	n        int
	kept     batch.Record
}

// Next returns the next batch, unless it is the fault's turn.
func (s *spoiled) Next(ctx context.Context) (batch.Record, error) {
	s.n++
	if s.n <= s.at {
		return s.Operator.Next(ctx)
	}
	switch s.kind {
	case 0: // the connection breaks: lost, or half sent
		return nil, wire.ErrServer
	case 1: // the stream ends early without a fault of the connection: the end mark shows that
		return nil, wire.ErrIncomplete
	case 2: // late
		select {
		case <-time.After(time.Duration(s.world.dice(40)) * time.Second):
			return s.Operator.Next(ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case 3: // an older server
		if s.part.Mode == scanplan.PartialAggregation {
			return nil, operator.ErrBadPlan
		}
		return nil, store.ErrUnavailable
	case 4:
		return s.twice(ctx)
	case 5:
		panic("a part panics")
	}
	return nil, wire.ErrStalled
}

// twice hands a batch over again.
func (s *spoiled) twice(ctx context.Context) (batch.Record, error) {
	if s.kept != nil {
		r := s.kept
		s.kept, s.at = nil, 1<<30
		return r, nil
	}
	r, err := s.Operator.Next(ctx)
	if err == nil && s.n == s.at+1 {
		r.Retain()
		s.kept = r
	}
	return r, err
}

// Close frees what is left.
func (s *spoiled) Close() error {
	if s.kept != nil {
		s.kept.Release()
		s.kept = nil
	}
	return s.Operator.Close()
}
