package resultcache

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
)

// While one goroutine writes and others query all the time, an answer has the value that was
// acknowledged before the query, or a later one, and no goroutine sees the value go back.
func TestOpen_whileWriting(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(3, 3)), openPebble(t))
	w.cache, w.schema = New(1<<20, nil), encoding.DefaultSchema()
	p := &scanplan.Part{Plan: operatortest.Plan(w.schema, operatortest.UID(9), base, base+3600)}
	p.Range = p.Plan.Ranges[0]
	key := w.schema.AppendRowKey(nil, operatortest.UID(9), base,
		w.schema.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, 1)}))
	put := func(n int64) error {
		q, value := operatortest.Encode(base*1000, encoding.IntValue(n))
		return w.store.Apply(context.Background(), operatortest.Table, []store.Mutation{
			{Row: key, Family: encoding.FamilyData, Qualifier: encoding.AppendQualifier(nil, q), Value: value}})
	}
	const first = 1000 // all values have one width, and so one qualifier
	if err := put(first); err != nil {
		t.Fatal(err)
	}
	var acknowledged, asked atomic.Int64
	var work sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		work.Go(func() {
			for last := int64(0); ; asked.Add(1) {
				select {
				case <-done:
					return
				default:
				}
				least := max(last, acknowledged.Load())
				got, err := w.value(p)
				if err != nil || got < least {
					t.Errorf("got %d, error %v, want at least %d", got, err, least)
					return
				}
				last = got
			}
		})
	}
	for n := int64(first + 1); n <= first+60; n++ {
		for before := asked.Load(); n%4 == 0 && asked.Load() < before+8 &&
			!t.Failed(); { // so that answers are kept between writes
		}
		if err := put(n); err != nil {
			t.Error(err)
		}
		acknowledged.Store(n)
	}
	close(done)
	work.Wait()
	if c := w.cache.Counts(); c.Hits == 0 || c.Changed == 0 {
		t.Errorf("%+v, want some hits and changes", c)
	}
}

// value is the only value of a part's answer.
func (w *world) value(p *scanplan.Part) (got int64, err error) {
	op, err := Open(w.cache, w.store, p, operator.Options{})
	if err != nil {
		return 0, err
	}
	rows := 0
	err = operatortest.Drain(context.Background(), op, func(r batch.Record) error {
		reader, err := batch.NewSeriesReader(r)
		if err != nil {
			return err
		}
		var s batch.Series
		rows++
		err = reader.At(0, &s)
		_, v := s.Raw.At(0)
		got = v.Int()
		return err
	})
	if err == nil && rows != 1 {
		err = errors.New("no answer, or more than one")
	}
	return got, err
}
