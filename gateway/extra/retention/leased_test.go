package retention_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding/seedtest"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/retention/rules"
	"downpour/pushdown/store"
)

// dying is the store of a process that may die: from then on nothing it asks is answered.
type dying struct {
	store.Store
	mu      sync.Mutex
	dead    bool
	deleted int       // rows
	first   time.Time // when the first was deleted
}

func (*dying) Features() store.Features { return store.Features{} }

func (m *dying) pass(ctx context.Context) error {
	m.mu.Lock()
	dead := m.dead
	m.mu.Unlock()
	if dead {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (m *dying) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

// done returns how many rows the process has deleted, and when it deleted the first.
func (m *dying) done() (rows int, first time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deleted, m.first
}

func (m *dying) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	if err := m.pass(ctx); err != nil {
		return nil, err
	}
	return m.Store.Scan(ctx, s)
}

func (m *dying) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if err := m.pass(ctx); err != nil {
		return nil, err
	}
	return m.Store.Get(ctx, table, family, keys)
}

func (m *dying) CompareAndPut(
	ctx context.Context, table string, cell store.CellKey, expected, value []byte,
) (bool, error) {
	if err := m.pass(ctx); err != nil {
		return false, err
	}
	return m.Store.CompareAndPut(ctx, table, cell, expected, value)
}

func (m *dying) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	if err := m.pass(ctx); err != nil {
		return err
	}
	err := m.Store.Apply(ctx, table, mutations)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.deleted += len(mutations)
		if m.first.IsZero() {
			m.first = time.Now()
		}
	}
	return err
}

// office sees to it that one has the turn.
type office struct {
	*testing.T
	mu      sync.Mutex
	holding map[*dying]retention.Turn
}

// turns are those of one process.
type turns struct {
	retention.Turns
	office *office
	of     *dying
}

// Try implements retention.Turns.
func (t *turns) Try(ctx context.Context) (retention.Turn, bool, error) {
	turn, ok, err := t.Turns.Try(ctx)
	if !ok || err != nil {
		return nil, ok, err
	}
	t.office.mu.Lock()
	defer t.office.mu.Unlock()
	for other, held := range t.office.holding {
		if other != t.of && held.Context().Err() == nil {
			t.office.Error("two have their turn at once")
		}
	}
	t.office.holding[t.of] = turn
	return turn, true, nil
}

// Two installations that share the table of leases do not wait for each other, and know nothing of each other's runs.
func TestLeased_tables(t *testing.T) {
	w := onHBase(t, rand.New(rand.NewPCG(1, 1)))
	for _, data := range []string{"tsdb", "other"} {
		turn, ok, err := retention.NewLeased(w.store, "state", data).Try(t.Context())
		if err != nil || !ok || len(turn.State()) > 0 {
			t.Fatalf("%s: turn %v, %v, want one without a state", data, ok, err)
		}
		if err := turn.Save(t.Context(), []byte(data)); err != nil {
			t.Fatal(err)
		}
		defer turn.Release(t.Context())
		if _, ok, err := retention.NewLeased(w.store, "state", data).Try(t.Context()); ok || err != nil {
			t.Errorf("%s: a second turn %v, %v, want none", data, ok, err)
		}
	}
}

// Of two gateways on the same HBase one deletes what is past and the other nothing. When the first
// one dies in the middle, the other one goes on within a minute, and not before the turn of the first has ended;
// each row is deleted once, and every younger one stays.
func TestWorker_leased(t *testing.T) {
	seed := seedtest.Of(t)
	synctest.Test(t, func(t *testing.T) {
		w := onHBase(t, rand.New(rand.NewPCG(seed, 0)))
		began := time.Now()
		w.job.Rules, w.job.Rate = parse(t, ". 2d"), 50
		w.job.Now = func() time.Time { return time.Unix(now, 0).Add(time.Since(began)) }
		const past = 6000
		for i := range past {
			w.put("tsdb", i%4, (now-int64(5+i%7)*86_400)/hour*hour, i)
			w.put("tsdb", i%4, now/hour*hour, i)
		}
		want := w.want("tsdb", rules.Hour, "")

		o := &office{T: t, holding: map[*dying]retention.Turn{}}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		start := func() *dying {
			m := &dying{Store: w.store}
			job := *w.job
			job.Store = m
			worker := &retention.Worker{
				Job:   &job,
				Turns: &turns{retention.NewLeased(m, "state", "tsdb"), o, m},
				Log:   slog.New(slog.DiscardHandler),
			}
			all.Go(func() { worker.Run(ctx) })
			return m
		}
		first := start()
		time.Sleep(time.Second)
		second := start()
		time.Sleep(time.Minute)
		before, _ := first.done()
		if n, _ := second.done(); before == 0 || before == past || n != 0 {
			t.Errorf("after a minute the first has deleted %d rows and the second %d, want some of %d, and none",
				before, n, past)
		}

		first.kill()
		death := time.Now()
		time.Sleep(time.Minute + 10*time.Second)
		n, at := second.done()
		if after := at.Sub(death); n == 0 || after < 30*time.Second || after > time.Minute {
			t.Errorf("the second has deleted %d rows, the first of them %v after the death of the other one, "+
				"want some within a minute, and not while that has its turn", n, after)
		}
		time.Sleep(10 * time.Minute)
		cancel()
		all.Wait()
		n, _ = second.done()
		if killed, _ := first.done(); killed != before || before+n != past {
			t.Errorf("%d rows were deleted before the death, %d after it by the dead one and %d by the other "+
				"one, want each of %d once", before, killed-before, n, past)
		}
		if d := cmp.Diff(want, w.keys("tsdb")); d != "" {
			t.Errorf("the rows that stay (-want +got)\n%s", d)
		}
	})
}
