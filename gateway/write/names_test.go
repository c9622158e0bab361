package write

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/pushdown/process/heap/heaptest"
	"downpour/pushdown/store"
)

// turning are names that change: in generation n the UID of every metric is n+1.
type turning struct {
	numbering
	generation atomic.Uint64
	held       atomic.Int64
	late       error // what release returns
	// within is called in every assignment of a metric, after its UID was chosen.
	within func() error
}

func (n *turning) Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if kind != encoding.UIDMetric {
		return n.numbering.Assign(ctx, kind, name)
	}
	u := encoding.UID{0, 0, byte(1 + n.generation.Load())}
	if n.within != nil {
		if err := n.within(); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (n *turning) Generation() uint64 { return n.generation.Load() }

// Prepare does nothing: Assign does it all.
func (n *turning) Prepare(context.Context, encoding.UIDKind, []string) {}

// Cached reports that nothing is new.
func (n *turning) Cached(encoding.UIDKind, string) bool { return true }

func (n *turning) Hold() (uint64, func() error) {
	n.held.Add(1)
	return n.generation.Load(), sync.OnceValue(func() error { n.held.Add(-1); return n.late })
}

var oneTag = []Tag{{"host", "ubuntu"}}

// A series that was resolved before a name changed is not found in the cache any more, by its
// names or by its spelling. A series that is resolved during the change is not cached.
func TestSeries_generations(t *testing.T) {
	names := &turning{}
	s := newTestSeries(names)
	resolve := func(want byte) *SeriesKey {
		t.Helper()
		k, err := s.Resolve(t.Context(), "m", oneTag)
		if err != nil || k.Metric[2] != want {
			t.Fatalf("%v, %v, want UID %d", k, err, want)
		}
		s.cacheSpelling("m host=ubuntu", "m", oneTag, k)
		return k
	}
	spelled := func(want bool) {
		t.Helper()
		if ok := s.findInto(new(SeriesKey), "m host=ubuntu"); ok != want {
			t.Errorf("found by its spelling: %t, want %t", ok, want)
		}
	}
	old := resolve(1)
	names.within = func() error { t.Error("the series was resolved again, want it from the cache"); return nil }
	resolve(1)
	names.within = nil
	spelled(true)
	names.generation.Add(1)
	spelled(false)
	resolve(2)
	spelled(true)

	// A series key of the older generation comes late.
	if s.cacheSpelling("m host=ubuntu", "m", oneTag, old) {
		t.Error("a series of older names was cached in the place of one of newer names")
	}
	spelled(true)

	// The names change while they are looked up.
	names.generation.Add(1)
	names.within = func() error { names.generation.Add(1); return nil }
	k, err := s.Resolve(t.Context(), "m", oneTag)
	if err != nil || k.generation != 2 {
		t.Fatalf("%v, %v, want generation 2", k, err)
	}
	names.within = nil
	resolve(4)
}

// A batch resolves a series again that was resolved in an older generation than the batch's:
// its UIDs may have been deleted since. A change within a batch waits for the batch.
func TestWriter_generations(t *testing.T) {
	f := func(what string, requestBatchFrom int, between bool, want ...byte) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			m := &memory{}
			names := &turning{}
			s := newTestSeries(names)
			w := New(Config{
				Schema:           encoding.DefaultSchema(),
				Table:            "tsdb",
				RequestBatchFrom: requestBatchFrom,
				Shards:           2,
			}, m, s)
			defer w.Close()
			b := w.RequestBatch(2)
			k, err := s.Resolve(t.Context(), "m", oneTag)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if i == 1 && between {
					b.Send()
					synctest.Wait()
					for _, l := range w.shards {
						signal(l.endWindow)
					}
					synctest.Wait()
				}
				if i == 1 || len(want) == 1 {
					names.generation.Add(1)
				}
				if _, err := b.AddTo(t.Context(), k, point(1292148000+int64(i), encoding.IntValue(1))); err != nil {
					t.Fatal(err)
				}
			}
			b.Send()
			w.Close()
			var got []byte
			for _, mu := range m.applied {
				got = append(got, mu.Row[2])
			}
			if string(got) != string(want) {
				t.Errorf("%s, request batches from %d: UIDs %v, want %v", what, requestBatchFrom, got, want)
			}
		})
	}
	for _, requestBatchFrom := range []int{0, 1} {
		f("changed before the batch", requestBatchFrom, false, 2)
		f("changed within the batch", requestBatchFrom, false, 1, 1)
		f("changed between batches", requestBatchFrom, true, 1, 2)
	}
}

// A batch holds names until it is durable or has failed. If the hold ends in an error, those
// who wait for the batch get that error.
func TestWriter_holds(t *testing.T) {
	for _, requestBatchFrom := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			m := &memory{hold: make(chan struct{})}
			names := &turning{late: uid.ErrLate}
			w := New(Config{Schema: encoding.DefaultSchema(), Table: "tsdb", RequestBatchFrom: requestBatchFrom}, m,
				newTestSeries(names))
			defer w.Close()
			b := w.RequestBatch(1)
			k, err := b.Resolver(JSONSpelling).Resolve(t.Context(), "m", oneTag)
			if err != nil {
				t.Fatal(err)
			}
			batch, err := b.AddTo(t.Context(), k, point(1292148000, encoding.IntValue(1)))
			if err != nil {
				t.Fatal(err)
			}
			b.Send()
			said := make(chan error, 1)
			go func() { said <- batch.Wait(t.Context()) }()
			synctest.Wait()
			if n := names.held.Load(); n != 1 {
				t.Errorf("%d holds while the store writes, want 1", n)
			}
			close(m.hold)
			if err := <-said; !errors.Is(err, uid.ErrLate) || !IsStorage(err) {
				t.Errorf("got %v, want %v, to be sent again", err, uid.ErrLate)
			}
			if n := names.held.Load(); n != 0 {
				t.Errorf("%d holds after the write, want none", n)
			}
			// The hold also ends if the write fails, or if the writer is closed first.
			m.fail = errUnknown
			if batch, err = b.AddTo(t.Context(), k, point(1292148001, encoding.IntValue(1))); err != nil {
				t.Fatal(err)
			}
			b.Send()
			if err := batch.Wait(t.Context()); !errors.Is(err, errUnknown) {
				t.Errorf("a failed write: got %v, want the store's error", err)
			}
			last := w.RequestBatch(1)
			if _, err := last.AddTo(t.Context(), k, point(1292148002, encoding.IntValue(1))); err != nil {
				t.Fatal(err)
			}
			w.Close()
			last.Send()
			if n := names.held.Load(); n != 0 {
				t.Errorf("%d holds after Close, want none", n)
			}
		})
	}
}

// A request that waits for the change of a name does not hold that change up: the points that it
// has added before are written in that time.
func TestRequestBatch_letsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newTable()
		names := uid.Staged{
			Dictionary: uid.New(uid.Config{Store: st, Table: "tsdb-uid", Schema: encoding.DefaultSchema()}),
		}
		s := NewSeries(SeriesConfig{Schema: encoding.DefaultSchema(), Names: names, Auto: Auto{true, true, true}})
		w := New(Config{Schema: encoding.DefaultSchema(), Table: "tsdb", RequestBatchFrom: 1}, &memory{}, s)
		defer w.Close()
		if _, err := s.Resolve(t.Context(), "busy", oneTag); err != nil {
			t.Fatal(err)
		}
		b := w.RequestBatch(2)
		k, err := b.Resolver(JSONSpelling).Resolve(t.Context(), "free", oneTag)
		if err != nil {
			t.Fatal(err)
		}
		batch, err := b.AddTo(t.Context(), k, point(1292148000, encoding.IntValue(1)))
		if err != nil {
			t.Fatal(err)
		}
		change, err := names.Withdraw(t.Context(), encoding.UIDMetric, "busy")
		if err != nil {
			t.Fatal(err)
		}
		found := make(chan error, 1)
		go func() {
			k, err := b.Resolver(JSONSpelling).Resolve(t.Context(), "busy", oneTag)
			if err == nil && k.generation <= batch.generation {
				err = errors.New("resolved before the change")
			}
			found <- err
		}()
		if err := change.AwaitHolds(t.Context()); err != nil {
			t.Errorf("the change waits for the request: %v", err)
		}
		if err := batch.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(found) > 0 {
			t.Error("the request went on before the change had ended")
		}
		change.End()
		if err := <-found; err != nil {
			t.Error(err)
		}
		// Resolve waits for a change only for a while.
		if change, err = names.Withdraw(t.Context(), encoding.UIDMetric, "busy"); err != nil {
			t.Fatal(err)
		}
		defer change.End()
		var busy *uid.BusyError
		if _, err := s.Resolve(t.Context(), "busy", oneTag); !errors.As(err, &busy) || !IsStorage(err) {
			t.Errorf("got %v, want that the name is busy, to be sent again", err)
		}
	})
}

// A SeriesCache stays within its bytes, however series are spelled. A spelling that is much
// longer than its names, here by blanks, is not cached.
func TestSeries_bytes(t *testing.T) {
	const bound = 4 << 20
	names := &numbering{}
	for what, spell := range map[string]func(i int) (metric, spelling string){
		"many": func(i int) (string, string) { return "m", fmt.Sprint("m host=ubuntu ", i) },
		"long": func(i int) (string, string) {
			return fmt.Sprintf("%0*d", uid.MostName, i%50), fmt.Sprintf("%0*d", uid.MostName, i)
		},
		"of blanks": func(i int) (string, string) { return "m", fmt.Sprintf("m%*d host=ubuntu", 4_000, i) },
	} {
		s := NewSeries(SeriesConfig{
			Schema: encoding.DefaultSchema(),
			Names:  names,
			Auto:   Auto{true, true, true},
			Bytes:  bound,
		})
		before := heaptest.InUse()
		var found int
		for i := range 20_000 {
			if what != "many" && i == 500 {
				break
			}
			metric, spelling := spell(i)
			k, err := s.Resolve(t.Context(), metric, oneTag)
			if err != nil {
				t.Fatal(err)
			}
			s.cacheSpelling(spelling, metric, oneTag, k)
			if s.findInto(new(SeriesKey), spelling) {
				found++
			}
		}
		if grown := heaptest.InUse() - before; grown > bound*5/4+1<<20 { // 1 MiB for the names that numbering keeps
			t.Errorf("%s: %d bytes are held, want %d at most", what, grown, bound)
		}
		if what == "of blanks" && found > 0 || what == "many" && found == 0 {
			t.Errorf("%s: %d spellings were found again", what, found)
		}
		runtime.KeepAlive(s)
	}
	runtime.KeepAlive(names)
}

func TestCanonical(t *testing.T) {
	tags := []Tag{{"b", "1"}, {"a", "2"}}
	key := canonical("m", tags)
	if other := canonical("m", []Tag{{"a", "2"}, {"b", "1"}}); other != key || tags[0].K != "b" {
		t.Errorf("%q and %q, tags %v", key, other, tags)
	}
	metric, back := parseCanonical(key)
	if metric != "m" || !slices.Equal(back, []Tag{{"a", "2"}, {"b", "1"}}) {
		t.Errorf("%q %v of %q", metric, back, key)
	}
}

// A metric that is too long to be stored is refused with an error that says so, which is not
// one of the store.
func TestSeries_longName(t *testing.T) {
	s := newTestSeries(&numbering{})
	_, err := s.Resolve(t.Context(), strings.Repeat("m", uid.MostName+1), oneTag)
	var long *uid.NameTooLongError
	if !errors.As(err, &long) || IsStorage(err) {
		t.Errorf("got %v, want a *uid.NameTooLongError that is no error of the store", err)
	}
}

// A name that cannot have a UID is at fault for ever; after any other error the same point may be put again.
func TestSeries_whoseFault(t *testing.T) {
	for _, c := range []struct {
		err     error
		storage bool
	}{
		{&uid.NoSuchNameError{}, false}, {&uid.FullError{}, false}, {&uid.ConflictError{}, false},
		{&uid.NameTooLongError{}, false},
		{store.ErrUnavailable, true}, {context.DeadlineExceeded, true}, {errors.New("lost"), true},
	} {
		s := newTestSeries(&turning{within: func() error { return c.err }})
		if _, err := s.Resolve(t.Context(), "m", oneTag); !errors.Is(err, c.err) || IsStorage(err) != c.storage {
			t.Errorf("%T %v: got %v, of the store: %t, want %t", c.err, c.err, err, IsStorage(err), c.storage)
		}
	}
}

// A cache has the bytes that are set, keeps a spelling of twice the names and some room at most, and nothing after
// Drop.
func TestSeries_cache(t *testing.T) {
	s := NewSeries(SeriesConfig{Schema: encoding.DefaultSchema(), Names: &numbering{}, Auto: Auto{true, true, true},
		Bytes: 1 << 20})
	if s.cfg.Bytes != 1<<20 {
		t.Errorf("%d bytes, want 1 MiB", s.cfg.Bytes)
	}
	k, err := s.Resolve(t.Context(), "m", oneTag)
	if err != nil {
		t.Fatal(err)
	}
	names := len(canonical("m", oneTag))
	for _, spare := range []int{0, 1} {
		spelling := fmt.Sprintf("m host=ubuntu%*s", 2*names+spellingRoom+spare-len("m host=ubuntu"), "")
		if cached := s.cacheSpelling(spelling, "m", oneTag, k); cached != (spare == 0) {
			t.Errorf("%d bytes of names, spelled in %d: cached: %v", names, len(spelling), cached)
		}
	}
	if s.Drop(); s.findInto(new(SeriesKey), canonical("m", oneTag)) {
		t.Error("a series is found that was dropped")
	}
}
