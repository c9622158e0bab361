package uid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

const table = "tsdb-uid"

var uidTables = []store.TableSpec{opentest.Table(table, "id", "name")}

func open(t testing.TB) *pebble.Store { return opentest.Embedded(t, uidTables...) }

func dictionary(s store.Store) *Dictionary {
	return New(Config{Store: s, Table: table, Schema: encoding.DefaultSchema()})
}

func TestAssign(t *testing.T) {
	d := dictionary(open(t))
	for i, name := range []string{"sys.cpu.nice", "sys.cpu.user", "é.µ"} {
		u, err := d.Assign(t.Context(), encoding.UIDMetric, name)
		if err != nil || encoding.UIDNumber(u) != uint64(i+1) {
			t.Fatalf("%s: %s, %v, want %d", name, u, err, i+1)
		}
		d.Drop()
		again, err := d.Assign(t.Context(), encoding.UIDMetric, name)
		if err != nil || again.String() != u.String() {
			t.Errorf("%s again: %s, %v, want %s", name, again, err, u)
		}
		if back, err := d.Name(t.Context(), encoding.UIDMetric, u); err != nil || back != name {
			t.Errorf("%s: name %q, %v, want %q", u, back, err, name)
		}
	}
	var unknown *NoSuchNameError
	if _, err := d.Resolve(t.Context(), encoding.UIDTagK, "sys.cpu.nice"); !errors.As(err, &unknown) ||
		err.Error() != "No such name for 'tagk': 'sys.cpu.nice'" {
		t.Errorf("a metric's name as tagk: got %v, want no such name", err)
	}
	if _, err := d.Assign(t.Context(), encoding.UIDMetric, "日本"); err == nil {
		t.Error("a name outside ISO-8859-1 was assigned")
	}
	var noID *NoSuchIDError
	if _, err := d.Name(t.Context(), encoding.UIDMetric, encoding.UID{0, 0, 0xFF}); !errors.As(err, &noID) ||
		err.Error() != "No such unique ID for 'metrics': [0, 0, -1]" {
		t.Errorf("UID 0000FF: got %v, want no such unique ID", err) // -1 is FF as a Java byte
	}
}

func TestAssign_full(t *testing.T) {
	s := open(t)
	schema := encoding.DefaultSchema()
	schema.TagVWidth = 1
	d := New(Config{Store: s, Table: table, Schema: schema})
	for i := range 255 {
		if _, err := d.Assign(t.Context(), encoding.UIDTagV, fmt.Sprint("v", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Assign(t.Context(), encoding.UIDTagV, "v256"); err == nil ||
		err.Error() != "All Unique IDs for tagv on 1 bytes are already assigned!" {
		t.Errorf("the 256th name with UIDs of 1 byte: got %v, want that all are assigned", err)
	}
	if _, err := d.Assign(t.Context(), encoding.UIDTagV, "v7"); err != nil {
		t.Errorf("a name that has a UID: got %v, want no error", err)
	}
}

func TestSuggest(t *testing.T) {
	d := dictionary(open(t))
	for _, name := range []string{"web02", "web01", "web", "wec", "WEB", "a", "ÿ"} {
		if _, err := d.Assign(t.Context(), encoding.UIDTagV, name); err != nil {
			t.Fatal(err)
		}
	}
	d.Assign(t.Context(), encoding.UIDTagK, "weather")
	f := func(prefix string, max int, want ...string) {
		t.Helper()
		got, err := d.Suggest(t.Context(), encoding.UIDTagV, prefix, max)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Errorf("%q: %s", prefix, diff)
		}
	}
	f("", 25, "WEB", "a", "web", "web01", "web02", "wec", "ÿ")
	f("web", 25, "web", "web01", "web02")
	f("web", 2, "web", "web01")
	f("ÿ", 25, "ÿ")
	f("日", 25)
	f("x", 25)
}

// flaky is a store whose atomic operations fail at random, before or after they are done.
type flaky struct {
	store.Store
	mu  sync.Mutex
	rnd *rand.Rand
}

func (*flaky) Features() store.Features { return store.Features{} }

func (f *flaky) fate() (before, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.rnd.IntN(10)
	return n == 0, n == 1
}

func (f *flaky) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	before, after := f.fate()
	if before {
		return 0, store.ErrUnavailable
	}
	n, err := f.Store.Increment(ctx, table, cell, delta)
	if after {
		return 0, store.ErrUnavailable
	}
	return n, err
}

func (f *flaky) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	before, after := f.fate()
	if before {
		return false, store.ErrUnavailable
	}
	ok, err := f.Store.CompareAndPut(ctx, table, cell, expected, value)
	if after {
		return false, store.ErrUnavailable
	}
	return ok, err
}

// Eight writers with a dictionary each assign the same names on a store that fails at any step.
// Every name gets one UID, the same for all writers, and the UID leads back to it.
func TestAssign_race(t *testing.T) {
	seed := seedtest.Of(t)
	base := open(t)
	s := &flaky{Store: base, rnd: rand.New(rand.NewPCG(seed, 0))}
	const writers, names = 8, 250
	given := make([]map[string]string, writers)
	var wg sync.WaitGroup
	for w := range writers {
		given[w] = map[string]string{}
		d := dictionary(s)
		order := rand.New(rand.NewPCG(seed, uint64(w+1))).Perm(names)
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			for _, i := range order {
				name := fmt.Sprint("name", i)
				u, err := d.Assign(ctx, encoding.UIDTagV, name)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				given[w][name] = string(u)
			}
		})
	}
	wg.Wait()
	byUID := map[string]string{}
	check := dictionary(base)
	for w := range writers {
		for name, u := range given[w] {
			if u != given[0][name] {
				t.Errorf("%s is % X and % X", name, u, given[0][name])
			}
			if other, ok := byUID[u]; ok && other != name {
				t.Errorf("% X is %s and %s", u, name, other)
			}
			byUID[u] = name
			if back, err := check.Name(t.Context(), encoding.UIDTagV, encoding.UID(u)); err != nil || back != name {
				t.Errorf("% X has name %q, %v, want %s", u, back, err, name)
			}
		}
	}
	if len(byUID) != names {
		t.Errorf("%d UIDs, want %d", len(byUID), names)
	}
}

// When a client leaves, a list of names ends within one block of rows. A look-up of many names
// or UIDs ends too, even if all of them are cached.
func TestNames_clientLeaves(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	row := func(n int) store.Row {
		return store.Row{Key: fmt.Appendf(nil, "name%09d", n),
			Cells: []store.Cell{{
				Qualifier: encoding.UIDTagV.Qualifier(),
				Value:     []byte{byte(n >> 16), byte(n >> 8), byte(n)},
			}}}
	}
	from := &faultstore.Endless{Rows: 1000, Row: row, Block: func(n int) {
		if n == 3 {
			leave()
		}
	}}
	if _, err := dictionary(from).Suggest(ctx, encoding.UIDTagV, "", 1<<30); !errors.Is(err, context.Canceled) ||
		from.Blocks() > 4 {
		t.Errorf("%v after %d blocks, want that it ends after block 3", err, from.Blocks())
	}
	d := dictionary(from) // a read of rows by key would panic
	var uids []encoding.UID
	var names []string
	known := map[string]encoding.UID{}
	for n := range 3 * namesPerRead {
		r := row(n)
		uids, names = append(uids, r.Cells[0].Value), append(names, string(r.Key))
		known[string(r.Key)] = r.Cells[0].Value
	}
	d.cacheIfCurrent(0, encoding.UIDTagV, known)
	if _, err := d.Names(ctx, encoding.UIDTagV, uids); !errors.Is(err, context.Canceled) {
		t.Errorf("names of UIDs: got %v, want that the context has ended", err)
	}
	if _, err := d.ResolveMany(ctx, encoding.UIDTagV, names); !errors.Is(err, context.Canceled) {
		t.Errorf("UIDs of names: got %v, want that the context has ended", err)
	}
}

// A list of names is bounded by bytes. Beyond the bound Suggest fails, and Enumerate returns an
// incomplete list.
func TestSuggest_bytes(t *testing.T) {
	long := make([]byte, MostName-9)
	for i := range long {
		long[i] = 'x'
	}
	from := &faultstore.Endless{Rows: 10, Row: func(n int) store.Row {
		return store.Row{Key: fmt.Appendf(bytes.Clone(long), "%09d", n),
			Cells: []store.Cell{{Qualifier: encoding.UIDTagV.Qualifier(), Value: []byte{0, byte(n >> 8), byte(n)}}}}
	}}
	d := dictionary(from)
	const fit = MaxListed / (MostName + 67) // 67: a UID of 3 bytes, and 64 that an entry takes
	if _, err := d.Suggest(t.Context(), encoding.UIDTagV, "x", 100_000); !errors.Is(err, ErrTooLong) ||
		!strings.Contains(err.Error(), "64 MiB") || from.Blocks() > fit/10+1 {
		t.Errorf("%v after %d blocks, want %v after %d", err, from.Blocks(), ErrTooLong, fit/10+1)
	}
	if entries, complete, err := d.Enumerate(t.Context(), encoding.UIDTagV, "x", 100_000); err != nil || complete ||
		len(entries) != fit {
		t.Errorf("%d entries, complete %t, %v, want %d", len(entries), complete, err, fit)
	}
	var large *memory.LimitError
	within := memory.With(t.Context(), memory.New(memory.Least).Open(memory.Query))
	if _, _, err := d.Enumerate(within, encoding.UIDTagV, "x", 100_000); !errors.As(err, &large) {
		t.Errorf("%v, want that the process lacks the memory", err)
	}
	if names, err := d.Suggest(t.Context(), encoding.UIDTagV, "x", 5); err != nil || len(names) != 5 {
		t.Errorf("%d names, %v, want 5", len(names), err)
	}
}
