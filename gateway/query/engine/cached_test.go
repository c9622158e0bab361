package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/query"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

// An engine with a result cache gives the same answers as one without, whatever is written,
// overwritten or deleted between two queries, and however their window moves.
func TestLaw_cached(t *testing.T) {
	for _, kind := range opentest.Kinds {
		var whole int64
		first := seedtest.Of(t)
		for seed := first; seed < first+4; seed++ {
			t.Run(fmt.Sprintf("%s, seed=%d", kind.Name, seed), func(t *testing.T) {
				b := newBoard(t, rand.New(rand.NewPCG(seed, 0)), kind.Open(t, boardTables...))
				if rng := rand.New(rand.NewPCG(seed, 1)); rng.IntN(2) == 0 {
					b.readSideBySide()
				}
				whole += b.live(40).PlanHits
			})
		}
		if whole < 8 {
			t.Errorf("%s: %d answers were whole from the result cache, want at least 8, or the cases test too little",
				kind.Name, whole)
		}
	}
}

// question returns a query for five-minute sums of all series.
func (b *board) question(start, end int64) *query.Query {
	b.Helper()
	body := fmt.Sprintf(`{"start":%d,"end":%d,"queries":[{"metric":"m","aggregator":"sum","downsample":"5m-sum"}]}`,
		start, end)
	q, err := query.Parser{Now: time.Now()}.JSON([]byte(body))
	if err != nil {
		b.Fatal(err)
	}
	return q
}

// A query over its limit of points is refused also if its answer is in the result cache.
func TestCached_budget(t *testing.T) {
	b := newBoard(t, rand.New(rand.NewPCG(1, 1)), embedded(t))
	q := b.question(hourZero, hourZero+7200)
	for range 3 {
		b.ask(q)
	}
	points := b.ask(q).Points
	if b.cache.Counts().PlanHits == 0 || points == 0 {
		t.Fatalf("%d points: the answer is not in the result cache", points)
	}
	for _, most := range []int64{points, points - 1} {
		b.budget = func(context.Context, *query.Query, *query.SubQuery) operator.Budget {
			return operator.NewBudget(most, 0)
		}
		var limit *operator.LimitError
		if _, _, err := b.caching.Run(t.Context(), q, Options{}); errors.As(err, &limit) != (most < points) {
			t.Errorf("%d points, at most %d: error %v, want a refusal if they are too many", points, most, err)
		}
	}
}

// An infinite sum fails only queries that ask for its time, also if the result cache has the
// answer for a longer time.
func TestCached_infinity(t *testing.T) {
	b := newBoard(t, rand.New(rand.NewPCG(2, 2)), embedded(t))
	for host := byte(1); host <= 2; host++ {
		const at = hourZero + 3000
		q, value := operatortest.Encode(at*1000, encoding.FloatValue(1.7e308))
		tags := b.schema.AppendTags(nil, []encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, host}}})
		b.apply(store.Mutation{
			Row:       b.schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, hourZero, tags),
			Family:    encoding.FamilyData,
			Qualifier: encoding.AppendQualifier(nil, q),
			Value:     value,
		})
	}
	for range 4 {
		b.ask(b.question(hourZero, hourZero+2700))
		var infinity *aggregate.InfinityError
		if _, _, err := b.caching.Run(t.Context(), b.question(hourZero, hourZero+3300),
			Options{}); !errors.As(err, &infinity) {
			t.Errorf("error %v, want one of an infinite sum", err)
		}
	}
}

// No answer is cached if the cells have the time of their data as timestamps, and not the time at
// which they were written.
func TestCached_dataTime(t *testing.T) {
	for name, stamp := range map[string]int64{"of writing": 3 * 3600_000, "of data": 0} {
		st := opentest.HBase(t, boardTables...)
		b := newBoard(t, rand.New(rand.NewPCG(3, 3)), st)
		for i := range int64(12) {
			at := int64(hourZero) + boardHours*3600 + i*60
			q, value := operatortest.Encode(at*1000, encoding.IntValue(i))
			tags := b.schema.AppendTags(nil, []encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, 1}}})
			b.apply(store.Mutation{
				Row:       b.schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, encoding.KeyTime(encoding.Hour(at)), tags),
				Family:    encoding.FamilyData,
				Qualifier: encoding.AppendQualifier(nil, q),
				Value:     value,
				Timestamp: at*1000 + stamp,
			})
		}
		for range 5 {
			b.ask(b.question(hourZero+boardHours*3600, hourZero+boardHours*3600+1800))
		}
		if n := b.cache.Counts().PlanHits; (n > 0) != (stamp > 0) {
			t.Errorf(
				"cells with the time %s: %d answers whole from the result cache, want some only with that of writing",
				name, n)
		}
	}
}

// While one goroutine writes and others query all the time, an answer has the value that was last
// acknowledged before the query, or a later one, and no goroutine sees an older value again.
func TestCached_whileWriting(t *testing.T) {
	b := newBoard(t, rand.New(rand.NewPCG(4, 4)), embedded(t))
	const at, first = hourZero +
		3600*boardHours, 1000 // an hour without other points; all values have 2 bytes, and so one qualifier
	tags := b.schema.AppendTags(nil, []encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, 1}}})
	put := func(n int64) error {
		q, value := operatortest.Encode(at*1000, encoding.IntValue(n))
		return b.store.Apply(context.Background(), "tsdb",
			[]store.Mutation{{Row: b.schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, at, tags),
				Family: encoding.FamilyData, Qualifier: encoding.AppendQualifier(nil, q), Value: value}})
	}
	if err := put(first); err != nil {
		t.Fatal(err)
	}
	var acknowledged, asked atomic.Int64
	var work sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		question := b.question(at, at+1800)
		work.Go(func() {
			for last := int64(0); ; asked.Add(1) {
				select {
				case <-done:
					return
				default:
				}
				least := max(last, acknowledged.Load())
				results, _, err := b.caching.Run(context.Background(), question, Options{})
				if err != nil || len(results) != 1 || results[0].Points.Len() != 1 {
					t.Errorf("error %v, results %+v, want one point", err, results)
					return
				}
				_, v := results[0].Points.At(0)
				if last = int64(v.Double()); last < least {
					t.Errorf("got %d, want at least %d", last, least)
					return
				}
			}
		})
	}
	for n := int64(first + 1); n <= first+60; n++ {
		for before := asked.Load(); n%4 == 0 && asked.Load() < before+12 &&
			!t.Failed(); { // so that answers are kept between writes
		}
		if err := put(n); err != nil {
			t.Error(err)
		}
		acknowledged.Store(n)
	}
	close(done)
	work.Wait()
	if c := b.cache.Counts(); c.PlanHits == 0 || c.Changed == 0 {
		t.Errorf("%+v: want answers from the cache and others that had changed", c)
	}
}
