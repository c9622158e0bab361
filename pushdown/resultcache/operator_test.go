package resultcache

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/hbase/hbasefake"
)

// cachedWorld returns a world with a part whose answer is kept, and its points.
func cachedWorld(t *testing.T) (w *world, p *scanplan.Part, points int64) {
	w = newWorld(t, rand.New(rand.NewPCG(7, 7)), openPebble(t))
	w.cache = New(1<<20, nil)
	p = &scanplan.Part{Plan: operatortest.Plan(w.schema, operatortest.UID(1), base, base+hours*3600)}
	p.Range, p.Plan.FixDuplicates = p.Plan.Ranges[0], true
	for range 2 {
		points = w.ask(p).Points
	}
	if w.ask(p).CacheHits != 1 || points == 0 || !w.cache.Holds(p) {
		t.Fatalf("%d points: the answer is not kept", points)
	}
	return w, p, points
}

// drain reads an operator to its end, and once more.
func (w *world) drain(op operator.Operator) {
	w.Helper()
	for range 2 {
		err := operatortest.Drain(w.Context(), op, func(batch.Record) error { return nil })
		if err != nil {
			w.Fatal(err)
		}
	}
}

// The statistics of an answer from memory are those of the reading, without calls and time, and with the
// batches that were returned. What the reading has cost counts as saved, and each answer is kept once.
func TestOpen_stats(t *testing.T) {
	w, p, _ := cachedWorld(t)
	w.cache = New(1<<20, nil)
	w.ask(p)
	opts := operator.Options{FlushBytes: 1}
	op := w.open(p, opts)
	w.drain(op)
	want := op.Stats()
	if want.CacheStored != 1 || want.CacheProven != 1 || want.Batches < 2 || want.Rows == 0 {
		t.Fatalf("%+v, want an answer of several batches that is stored", want)
	}
	op.(*cachingOperator).took = time.Hour
	if got := op.Stats().ScanTime; got < time.Hour {
		t.Errorf("%v of scanning, want the hour that the token took, too", got)
	}
	stored := w.cache.entries[PartKey(p)].Value.(*entry).answer.(*answer)
	stored.stats.RPCs, stored.stats.Resumes = 7, 7

	hit := w.open(p, opts)
	r, err := hit.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.Release()
	if got := hit.Stats(); got.Batches != 1 || got.ShippedBytes <= 0 || got.ShippedBytes >= want.ShippedBytes {
		t.Errorf("after a batch: %+v, want one batch and fewer bytes than %d", got, want.ShippedBytes)
	}
	w.drain(hit)
	want.RPCs, want.Resumes, want.DecodeTime, want.EmitTime = 0, 0, 0, 0
	want.CacheStored, want.CacheProven, want.CacheHits = 0, 0, 1
	want.ScanTime = hit.(*cachingOperator).took
	if diff := cmp.Diff(want, hit.Stats()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := w.cache.Counts(); c.SavedRows != want.Rows || c.SavedBytes != want.Bytes {
		t.Errorf("%+v, want %d rows and %d bytes saved", c, want.Rows, want.Bytes)
	}
}

func (w *world) open(p *scanplan.Part, opts operator.Options) operator.Operator {
	w.Helper()
	op, err := Open(w.cache, w.store, p, opts)
	if err != nil {
		w.Fatal(err)
	}
	return op
}

// A cached answer that is larger than the query's budget is refused, as if its rows were read. An
// answer that is closed before its end gives its points back to the budget.
func TestOpen_budget(t *testing.T) {
	w, p, points := cachedWorld(t)
	var limit *operator.LimitError
	op := w.open(p, operator.Options{Budget: operator.NewBudget(points-1, 0)})
	if _, err := op.Next(t.Context()); !errors.As(err, &limit) || limit.What != operator.Points {
		t.Errorf("over the budget: error %v, want a LimitError of points", err)
	}
	if _, err := op.Next(t.Context()); !errors.As(err, &limit) {
		t.Errorf("over the budget, the second time: %v", err)
	}
	op.Close()
	if left, _ := op.(*cachingOperator).opts.Budget.Left(); left != points-1 {
		t.Errorf("%d points are left of a budget that was not spent, want %d", left, points-1)
	}
	whole := operator.NewBudget(points+5, 0)
	op = w.open(p, operator.Options{Budget: whole})
	w.drain(op)
	op.Close()
	if left, _ := whole.Left(); left != 5 {
		t.Errorf("%d points are left after a whole answer, want 5", left)
	}
	budget := operator.NewBudget(points, 0)
	for range 3 {
		op := w.open(p, operator.Options{Budget: budget})
		r, err := op.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
		op.Close()
		op.Close()
	}
	if left, _ := budget.Left(); left != points {
		t.Errorf("%d points are left of the budget, want all %d", left, points)
	}
}

// The contract of Operator holds for an answer from memory too.
func TestOpen_contract(t *testing.T) {
	w, p, _ := cachedWorld(t)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	op := operatortest.Checked(w.open(p, operator.Options{Mem: operatortest.Poisoned(mem)}), t.Errorf)
	op.Close()
	if _, err := op.Next(t.Context()); !errors.Is(err, operator.ErrClosed) {
		t.Errorf("Next after Close: %v, want ErrClosed", err)
	}
	op = operatortest.Checked(w.open(p, operator.Options{Mem: operatortest.Poisoned(mem)}), t.Errorf)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if _, err := op.Next(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("Next of a cancelled query: %v, want context.Canceled", err)
		}
	}
	op.Close()
	op = operatortest.Checked(w.open(p, operator.Options{Mem: operatortest.Poisoned(mem)}), t.Errorf)
	r, err := op.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	op.Close()
	if mem.CurrentAlloc() == 0 {
		t.Error("the batch is not of the memory that was given")
	}
	r.Release()
	if _, err := op.Next(t.Context()); !errors.Is(err, operator.ErrClosed) {
		t.Errorf("Next after Close in the middle: %v, want ErrClosed", err)
	}
}

// An answer that was not read to its end is not kept.
//
//fault:half-answer-kept => o.collect(r); o.end()
func TestOpen_halfRead(t *testing.T) {
	w, p, _ := cachedWorld(t)
	w.change()
	w.cache = New(1<<20, nil)
	w.ask(p)
	for range 2 {
		op := w.open(p, operator.Options{FlushBytes: 1})
		for range 2 {
			r, err := op.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.Release()
		}
		op.Close()
	}
	if w.cache.Holds(p) {
		t.Error("half of an answer is kept")
	}
	w.ask(p)
	if s := w.ask(p); s.CacheHits != 1 {
		t.Errorf("the whole answer is not kept: %+v", s)
	}
}

// A cached answer is returned before its token is proven, and does not end if the proof
// fails; then its budget is given back. Nothing is stored under such a token.
//
//fault:end-mark-before-proven r.proof() => error(nil)
func TestOpen_unproven(t *testing.T) {
	w, p, points := cachedWorld(t)
	st := &earlyStore{versioner: &versioner{Store: w.store}}
	w.store = st
	reopened := errors.New("the region was opened again")

	st.proof = reopened
	budget := operator.NewBudget(points, 0)
	op := w.open(p, operator.Options{Budget: budget})
	r, err := op.Next(t.Context())
	if err != nil || st.asked != 0 {
		t.Fatalf("%v after %d proofs, want a batch before any", err, st.asked)
	}
	r.Release()
	for range 2 {
		if _, err := op.Next(t.Context()); !errors.Is(err, ErrUnproven) || !errors.Is(err, reopened) {
			t.Errorf("got %v, want %v: %v", err, ErrUnproven, reopened)
		}
	}
	op.Close()
	if left, _ := budget.Left(); left != points {
		t.Errorf("%d points are left of the budget, want all %d", left, points)
	}

	// The next query reads the rows, even if proofs keep failing.
	if s := w.ask(p); s.CacheHits != 0 {
		t.Errorf("after a failed proof: %+v, want no hit", s)
	}
	w.ask(p)
	if w.cache.Holds(p) {
		t.Error("an answer is stored under a token whose proof has failed")
	}
}

// Without a version token, or with a store that fails to return one, the rows are read.
func TestOpen_noVersion(t *testing.T) {
	w, p, _ := cachedWorld(t)
	var log logtest.Log
	w.cache.log = log.Logger()
	st := w.store
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w.store = faultstore.New(st, faultstore.Rule{Op: faultstore.Version, Err: store.ErrUnavailable})
	if _, err := w.open(p, operator.Options{}).Next(gone); !errors.Is(err, context.Canceled) || log.String() != "" {
		t.Errorf("of a query that has ended: %v, logged %q; want nothing logged", err, log.String())
	}
	if s := w.ask(p); s.CacheHits != 0 || len(log.Lines(store.ErrUnavailable.Error())) != 1 {
		t.Errorf("answered from memory without a token, or it is not logged: %+v, %q", s, log.String())
	}
	w.store = &versioner{Store: st, none: true}
	op, err := Open(w.cache, w.store, p, operator.Options{Proving: true})
	if err != nil {
		t.Fatal(err)
	}
	if w.drain(op); op.Stats().CacheHits != 0 || op.Stats().CacheProven != 0 {
		t.Errorf("with an empty token: %+v, want no hit and no proof", op.Stats())
	}
	w.store = faultstore.New(st, faultstore.Rule{Op: faultstore.Scan, Err: store.ErrUnavailable})
	w.cache = New(1<<20, nil)
	for range 3 {
		if _, err := w.open(p, operator.Options{}).Next(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a scan that fails: got %v", err)
		}
	}
	bad := *p
	bad.Plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "unknown"}
	if _, err := Open(w.cache, st, &bad, operator.Options{}); err == nil {
		t.Error("a plan with an unknown function is opened")
	}
	m := &operatortest.Store{}
	op, err = Open(w.cache, m, p, operator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	if _, err := op.Next(t.Context()); err != io.EOF {
		t.Errorf("a store that gives no tokens: %v, want the end, because it has no rows", err)
	}
}

// Nothing is cached of rows whose cells carry the time of their data instead of the time of
// writing (tsd.storage.use_otsdb_timestamp).
func TestOpen_dataTime(t *testing.T) {
	for name, f := range map[string]struct {
		timestamp func(ms int64) int64
		hits      int64
	}{
		"of writing":       {func(ms int64) int64 { return ms + 3*3600_000 }, 2},
		"of data":          {func(ms int64) int64 { return ms }, 0},
		"of one by chance": {func(ms int64) int64 { return ms + ms/1000 - base - 120 }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			_, st := startFake(t, hbasefake.Options{})
			w := &world{
				T:      t,
				rng:    rand.New(rand.NewPCG(1, 1)),
				store:  st,
				schema: encoding.DefaultSchema(),
				cache:  New(1<<20, nil),
			}
			// Of each series the annotation comes first, then its points.
			for i := range int64(20) {
				ms := (base + 120 + i*60) * 1000
				q, value := operatortest.Encode(ms, encoding.IntValue(i))
				key := w.schema.AppendRowKey(nil, operatortest.UID(1), base,
					w.schema.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, 1+int(i%4))}))
				w.apply(store.Mutation{
					Row:       key,
					Family:    encoding.FamilyData,
					Qualifier: []byte{1, 0, 0},
					Value:     []byte("{}"),
					Timestamp: ms,
				}, store.Mutation{
					Row:       key,
					Family:    encoding.FamilyData,
					Qualifier: encoding.AppendQualifier(nil, q),
					Value:     value,
					Timestamp: f.timestamp(ms),
				})
			}
			p := &scanplan.Part{Plan: operatortest.Plan(w.schema, operatortest.UID(1), base, base+3600)}
			p.Range = p.Plan.Ranges[0]
			var hits int64
			for range 4 {
				hits += w.ask(p).CacheHits
			}
			if hits != f.hits {
				t.Errorf("%d of 4 asks answered from memory, want %d", hits, f.hits)
			}
		})
	}
}

// The same holds for rollups and histograms. The timestamp of a rollup's value may be any time of
// its interval.
func TestOpen_dataTimeOfOthers(t *testing.T) {
	s := encoding.DefaultSchema()
	day := encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}}
	first := day.Span.BaseTime(base)
	key := func(base int64) []byte {
		return s.AppendRowKey(nil, operatortest.UID(1), uint32(base),
			s.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, 1)}))
	}

	plan := operatortest.Plan(s, operatortest.UID(1), first, first+86400)
	rolled, average, histograms := plan, plan, operatortest.Plan(s, operatortest.UID(1), base, base+3600)
	rolled.Downsample = &scanplan.Downsample{Interval: 3600_000, Function: "sum", Fill: scanplan.FillNone}
	rolled.Rollup = &scanplan.Rollup{Layout: day, Column: encoding.RollupColumn{ID: 0, Name: "sum"}}
	average.Downsample = &scanplan.Downsample{Interval: 3600_000, Function: "avg", Fill: scanplan.FillNone}
	average.Rollup = &scanplan.Rollup{
		Layout: day,
		Column: encoding.RollupColumn{ID: 7, Name: "sum"},
		Count:  &encoding.RollupColumn{ID: 0, Name: "count"},
	}
	histograms.Histograms = &scanplan.Histograms{Codec: 42}

	value := encoding.AppendHistogram([]byte{42},
		&encoding.Histogram{Buckets: []encoding.HistogramBucket{{Upper: 1, Count: 3}}})
	for name, f := range map[string]struct {
		plan scanplan.Plan
		cell store.Mutation
		data int64 // time of what it holds, ms
	}{
		"sum": {rolled, store.Mutation{
			Row:       key(first),
			Qualifier: encoding.AppendRollupQualifier(nil, 0, 5, false, 1),
			Value:     []byte{9},
		}, (first+5*3600)*1000 + 1234},
		"sum at the start": {rolled, store.Mutation{
			Row:       key(first),
			Qualifier: encoding.AppendRollupQualifier(nil, 0, 5, false, 1),
			Value:     []byte{9},
		}, (first + 5*3600) * 1000},
		"sum of an average": {average, store.Mutation{
			Row:       key(first),
			Qualifier: encoding.AppendRollupQualifier(nil, 7, 5, false, 1),
			Value:     []byte{9},
		}, (first + 5*3600) * 1000},
		"count": {average, store.Mutation{
			Row:       key(first),
			Qualifier: encoding.AppendRollupQualifier(nil, 0, 5, false, 1),
			Value:     []byte{9},
		}, (first + 6*3600 - 1) * 1000},
		"histogram": {histograms,
			store.Mutation{
				Row:       key(base),
				Qualifier: encoding.AppendHistogramQualifier(nil, 61_000, false),
				Value:     value,
			}, (base + 61) * 1000},
	} {
		for when, want := range map[int64]int64{f.data: 0, f.data + 30*3600_000: 2} {
			_, st := startFake(t, hbasefake.Options{})
			w := &world{T: t, rng: rand.New(rand.NewPCG(1, 1)), store: st, schema: s, cache: New(1<<20, nil)}
			cell := f.cell
			cell.Family, cell.Timestamp = encoding.FamilyData, when
			w.apply(cell)
			p := &scanplan.Part{Plan: f.plan, Range: f.plan.Ranges[0]}
			var hits int64
			for range 4 {
				op, err := Open(w.cache, w.store, p, operator.Options{})
				_, stats, err := w.answer(scanplan.PartialAggregation, op,
					err) // in this mode batches need not be of series
				if err != nil {
					t.Fatal(err)
				}
				hits += stats.CacheHits
			}
			if hits != want {
				t.Errorf("%s, written at %d for %d: %d of 4 asks answered from memory, want %d", name, when, f.data,
					hits, want)
			}
		}
	}
}

// A part whose answer is too large to be kept still reports, with Options.Proving, whether its rows
// were read under a token that held.
//
//fault:proven-without-proof o.proof() == nil => true
func TestOpen_proving(t *testing.T) {
	w, p, _ := cachedWorld(t)
	w.cache = New(64*answerShare, nil) // no answer fits
	st := &earlyStore{versioner: &versioner{Store: w.store}}
	w.store = st
	f := func(name string, proving bool, want int64) {
		t.Helper()
		op := w.open(p, operator.Options{Proving: proving})
		defer op.Close()
		r, err := op.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
		if o, ok := op.(*cachingOperator); ok && o.collected != nil {
			t.Errorf("%s: an answer is collected that is too large", name)
		}
		w.drain(op)
		if s := op.Stats(); s.CacheProven != want || s.CacheStored != 0 {
			t.Errorf("%s: %d parts proven and %d kept, want %d and 0", name, s.CacheProven, s.CacheStored, want)
		}
	}

	f("the first ask", true, 1)
	f("nothing is made of it", false, 1) // in another query it would be kept
	w.cache = New(64*answerShare, nil)
	f("nothing is made of it, nor would it be kept", false, 0)
	f("the second time", true, 1)
	st.proof = errors.New("the region was opened again")
	f("a token that is not proven", true, 0)
	st.proof = nil
	w.cache = nil
	f("no cache", true, 0)
}
