package completion_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/uid"
	"downpour/gateway/uid/completion"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

var tables = []store.TableSpec{opentest.Table("tsdb-uid", encoding.FamilyID, encoding.FamilyName)}

func dictionary(st store.Store) *uid.Dictionary {
	return uid.New(uid.Config{Store: st, Table: "tsdb-uid", Schema: encoding.DefaultSchema(), Shared: true})
}

// Names that hold the words come in the order of how well they do, and all are counted.
func TestFind(t *testing.T) {
	d := dictionary(opentest.Embedded(t, tables...))
	x := completion.New(completion.Config{Names: d, Now: time.Now})
	for _, name := range []string{"sys.cpu.user", "sys.cpu.nice", "cpu", "CPU.Load", "gpu.cpu_temp", "sys.mcpu",
		"df.used", "Ärger.cpu"} {
		if _, err := d.Assign(t.Context(), encoding.UIDMetric, name); err != nil {
			t.Fatal(err)
		}
	}
	f := func(text string, most, total int, want ...string) {
		t.Helper()
		got, n, err := x.Find(t.Context(), encoding.UIDMetric, text, most)
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || n != total || err != nil {
			t.Errorf("%q: %d names, %v; want %d; -want +got\n%s", text, n, err, total, d)
		}
	}
	f("cpu", 9, 7, "cpu", "CPU.Load", "gpu.cpu_temp", "sys.cpu.nice", "sys.cpu.user", "Ärger.cpu", "sys.mcpu")
	f("CPU", 2, 7, "cpu", "CPU.Load")
	f("cpu sys", 9, 3, "sys.cpu.nice", "sys.cpu.user", "sys.mcpu")
	f("sys  user ", 9, 1, "sys.cpu.user")
	f("ärger", 9, 1, "Ärger.cpu")
	f("no such", 9, 0)
	f("used\n", 9, 1, "df.used")
	f("日本", 9, 0)
	f("", 2, 8, "CPU.Load", "cpu")
	f("cpu", 0, 7)
}

// The newest names come first, also of those that have come since the list was read, and of those that are searched in
// the table.
func TestNewest(t *testing.T) {
	d := dictionary(opentest.Embedded(t, tables...))
	x := completion.New(completion.Config{Names: d, Now: time.Now})
	small := completion.New(completion.Config{Names: d, Now: time.Now, Bytes: 10})
	assign := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := d.Assign(t.Context(), encoding.UIDMetric, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	f := func(text string, most, total int, want ...string) {
		t.Helper()
		for _, x := range []*completion.Index{x, small} {
			got, n, ok, err := x.Newest(t.Context(), encoding.UIDMetric, text, most)
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || n != total || !ok || err != nil {
				t.Errorf("%q: %d names, newest %v, %v; want %d; -want +got\n%s", text, n, ok, err, total, d)
			}
		}
	}
	assign("m.cpu", "b.cpu", "z.mem", "a.cpu")
	f("", 9, 4, "a.cpu", "z.mem", "b.cpu", "m.cpu")
	f("CPU", 2, 3, "a.cpu", "b.cpu")
	assign("c.cpu", "z.cpu", "b.mem")
	f("cpu", 3, 5, "z.cpu", "c.cpu", "a.cpu")
	f("cpu", 1, 5, "z.cpu")
	f("cpu b", 9, 1, "b.cpu")
	f("", 0, 7)
}

// Where UIDs are drawn at random nothing says which names are the newest.
func TestNewest_drawn(t *testing.T) {
	st := opentest.Embedded(t, tables...)
	x := completion.New(completion.Config{Names: dictionary(st), Now: time.Now})
	for name, number := range map[string]byte{"b": 7, "a": 3, "c": 9} {
		m := store.Mutation{Family: encoding.FamilyID, Qualifier: []byte("metrics"), Row: []byte(name),
			Value: []byte{number, 7, 7}}
		if err := st.Apply(t.Context(), "tsdb-uid", []store.Mutation{m}); err != nil {
			t.Fatal(err)
		}
	}
	got, total, ok, err := x.Newest(t.Context(), encoding.UIDMetric, "", 2)
	if d := cmp.Diff([]string{"a", "b"}, got); d != "" || total != 3 || ok || err != nil {
		t.Errorf("%d names, newest %v, %v; want 3, in byte order; -want +got\n%s", total, ok, err, d)
	}
}

// A name that does not exist has others near it: those that hold it, or its parts, or differ little.
func TestNear(t *testing.T) {
	d := dictionary(opentest.Embedded(t, tables...))
	x := completion.New(completion.Config{Names: d, Now: time.Now})
	for _, name := range []string{"sys.cpu.user", "sys.cpu.nice", "sys.mem.free", "df.used", "load1", "load5"} {
		if _, err := d.Assign(t.Context(), encoding.UIDMetric, name); err != nil {
			t.Fatal(err)
		}
	}
	f := func(name string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, x.Near(t.Context(), encoding.UIDMetric, name)); diff != "" {
			t.Errorf("%q: -want +got\n%s", name, diff)
		}
	}
	f("cpu", "sys.cpu.nice", "sys.cpu.user")
	f("user.cpu", "sys.cpu.user")
	f("Sys.Cpu.Usr", "sys.cpu.user", "sys.cpu.nice")
	f("load", "load1", "load5")
	f("laod1", "load1", "load5")
	f("df.usde", "df.used")
	f("mem", "sys.mem.free")
	f("nothing like it")
	f("x")
	f("")
}

// world is a table that several processes change.
type world struct {
	*testing.T
	rng   *rand.Rand
	now   time.Time
	store store.Store
	dicts [2]*uid.Dictionary // the first is that of the index
	index *completion.Index
	names []string
}

// naive returns what Find should, from the table.
func (w *world) naive(text string, most int) (names []string, total int) {
	words := strings.Fields(strings.ToLower(text))
	byRank := [4][]string{}
	for e, err := range w.dicts[1].Each(w.Context(), encoding.UIDTagV, "") {
		if err != nil {
			w.Fatal(err)
		}
		low := strings.ToLower(e.Name)
		if slices.ContainsFunc(words, func(s string) bool { return !strings.Contains(low, s) }) {
			continue
		}
		rank := 3
		for _, part := range strings.FieldsFunc(low, func(r rune) bool { return strings.ContainsRune("._-/", r) }) {
			if len(words) > 0 && strings.HasPrefix(part, words[0]) {
				rank = 2
			}
		}
		switch {
		case len(words) == 0 || low == words[0]:
			rank = 0
		case strings.HasPrefix(low, words[0]):
			rank = 1
		}
		byRank[rank] = append(byRank[rank], e.Name)
		total++
	}
	names = slices.Concat(byRank[:]...)
	return names[:min(most, len(names))], total
}

// word draws letters for names, so that many match.
func (w *world) word() string {
	all := []string{"a", "B", "ab", "web", "Web1", "é", "x"}
	return all[w.rng.IntN(len(all))]
}

func (w *world) name() string {
	name := w.word()
	for range w.rng.IntN(4) {
		name += []string{".", "-", "_", "", "/"}[w.rng.IntN(5)] + w.word()
	}
	return name
}

// change assigns or renames names, in this process or in another one, as one that counts its changes.
func (w *world) change() {
	w.Helper()
	d := w.dicts[w.rng.IntN(2)]
	if len(w.names) > 0 && w.rng.IntN(6) == 0 {
		if err := d.Rename(w.Context(), encoding.UIDTagV, w.names[w.rng.IntN(len(w.names))], w.name()); err == nil {
			err = d.Tell(w.Context())
			if err != nil {
				w.Fatal(err)
			}
		}
		return
	}
	for range 1 + w.rng.IntN(5) {
		name := w.name()
		if _, err := d.Assign(w.Context(), encoding.UIDTagV, name); err != nil {
			w.Fatal(err)
		}
		w.names = append(w.names, name)
	}
}

// late is a name whose number is given long before it can be found.
func (w *world) late() (finish func()) {
	key := store.CellKey{Row: encoding.CounterRow, Family: encoding.FamilyID, Qualifier: []byte("tagv")}
	n, err := w.store.Increment(w.Context(), "tsdb-uid", key, 1)
	if err != nil {
		w.Fatal(err)
	}
	name := fmt.Sprintf("late%d.web", n)
	u, _ := encoding.AppendUID(nil, uint64(n), 3)
	put := func(row []byte, family string, value []byte) {
		if err := w.store.Apply(w.Context(), "tsdb-uid", []store.Mutation{{
			Row: row, Family: family, Qualifier: []byte("tagv"), Value: value,
		}}); err != nil {
			w.Fatal(err)
		}
	}
	put(u, encoding.FamilyName, []byte(name))
	return func() { put([]byte(name), encoding.FamilyID, u) }
}

// Whatever processes assign and rename, and whenever, an index finds what the table has.
func TestLaw_find(t *testing.T) {
	for _, kind := range opentest.Kinds {
		first := seedtest.Of(t)
		for seed := first; seed < first+3; seed++ {
			t.Run(fmt.Sprintf("%s, seed=%d", kind.Name, seed), func(t *testing.T) {
				st := kind.Open(t, tables...)
				w := &world{T: t, rng: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1e9, 0), store: st}
				w.dicts = [2]*uid.Dictionary{dictionary(st), dictionary(st)}
				w.index = completion.New(completion.Config{Names: w.dicts[0], Shared: true,
					Now: func() time.Time { return w.now }})
				unfinished := []func(){}
				for range 60 {
					for range w.rng.IntN(4) {
						w.change()
					}
					switch w.rng.IntN(6) {
					case 0:
						unfinished = append(unfinished, w.late())
					case 1:
						for _, finish := range unfinished {
							finish()
						}
						unfinished = nil
					}
					w.now = w.now.Add(time.Duration(w.rng.IntN(3)) * time.Second)
					text, most := w.word(), w.rng.IntN(30)
					if w.rng.IntN(3) == 0 {
						text += " " + w.word()
					}
					want, total := w.naive(text, most)
					got, n, err := w.index.Find(t.Context(), encoding.UIDTagV, text, most)
					if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || n != total || err != nil {
						t.Fatalf("%q: %d of %d names, %v; -want +got\n%s", text, n, total, err, d)
					}
				}
			})
		}
	}
}

// find returns what is found, and fails the test on an error.
func find(t *testing.T, x *completion.Index, text string) []string {
	t.Helper()
	names, total, err := x.Find(t.Context(), encoding.UIDTagV, text, 100)
	if err != nil || total != len(names) {
		t.Fatalf("%q: %d names of %d, %v", text, len(names), total, err)
	}
	return names
}

// Names that do not fit the memory are found in the table, in the same order. Near ones are not looked for.
func TestFind_tooMany(t *testing.T) {
	d := dictionary(opentest.Embedded(t, tables...))
	for i := range 50 {
		if _, err := d.Assign(t.Context(), encoding.UIDTagV, fmt.Sprintf("pod.web-%02d", i)); err != nil {
			t.Fatal(err)
		}
	}
	in := completion.New(completion.Config{Names: d, Now: time.Now})
	out := completion.New(completion.Config{Names: d, Now: time.Now, Bytes: 50 * 10})
	for _, text := range []string{"web", "WEB 3", "pod", "", "none"} {
		if d := cmp.Diff(find(t, in, text), find(t, out, text), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%q: -from the list +from the table\n%s", text, d)
		}
	}
	if near := out.Near(t.Context(), encoding.UIDTagV, "pod.web-1"); near != nil {
		t.Errorf("near: %q, want none", near)
	}
}

// What nobody announces shows after a while: names that OpenTSDB deletes, and names whose UIDs it draws at random.
func TestFind_unannounced(t *testing.T) {
	st := opentest.Embedded(t, tables...)
	d := dictionary(st)
	now := time.Unix(1e9, 0)
	x := completion.New(completion.Config{Names: d, Shared: true, Now: func() time.Time { return now }})
	change := func(m store.Mutation) {
		t.Helper()
		m.Family, m.Qualifier = encoding.FamilyID, []byte("tagv")
		if err := st.Apply(t.Context(), "tsdb-uid", []store.Mutation{m}); err != nil {
			t.Fatal(err)
		}
	}
	f := func(after time.Duration, want ...string) {
		t.Helper()
		now = now.Add(after)
		if d := cmp.Diff(want, find(t, x, "web")); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	}
	for _, name := range []string{"web1", "web2"} {
		if _, err := d.Assign(t.Context(), encoding.UIDTagV, name); err != nil {
			t.Fatal(err)
		}
	}
	f(0, "web1", "web2")
	change(store.Mutation{Kind: store.DeleteCell, Row: []byte("web1")})
	f(4*time.Minute, "web1", "web2")
	f(time.Minute, "web2")

	change(store.Mutation{Row: []byte("web8"), Value: []byte{7, 7, 7}})
	f(5*time.Minute, "web2", "web8")
	change(store.Mutation{Row: []byte("web9"), Value: []byte{7, 7, 8}})
	f(9*time.Second, "web2", "web8")
	f(time.Second, "web2", "web8", "web9")
}

// assigning is a store that calls a function before each block of a scan.
type assigning struct {
	store.Store
	before func()
}

func (a *assigning) Features() store.Features { return store.Features{} }

func (a *assigning) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	s.BlockBytes = 1
	sc, err := a.Store.Scan(ctx, s)
	return assigningScanner{sc, a}, err
}

type assigningScanner struct {
	store.Scanner
	of *assigning
}

func (s assigningScanner) Next() ([]store.Row, error) {
	s.of.before()
	return s.Scanner.Next()
}

// Names that are assigned while the list is read are in it once, before and behind the place that is read, and
// reading goes on where the one before it was given up.
func TestFind_whileLoading(t *testing.T) {
	inner := opentest.Embedded(t, tables...)
	other := dictionary(inner)
	assign := func(name string) {
		if _, err := other.Assign(t.Context(), encoding.UIDTagV, name); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		assign(fmt.Sprintf("m%02d", i))
	}
	reads, givenUp := 0, 0
	st := &assigning{Store: inner}
	x := completion.New(completion.Config{Names: dictionary(st), Now: time.Now})
	for range 100 {
		ctx, leave := context.WithCancel(t.Context())
		before := reads
		st.before = func() {
			reads++
			assign(fmt.Sprintf("a%02d", reads))
			assign(fmt.Sprintf("z%02d", reads))
			if reads-before == 8 {
				leave()
			}
		}
		_, _, err := x.Find(ctx, encoding.UIDTagV, "", 1000)
		leave()
		if err != nil {
			givenUp++
			continue
		}
		st.before = func() {}
		got, total, err := x.Find(t.Context(), encoding.UIDTagV, "", 1000)
		var want []string
		for e := range other.Each(t.Context(), encoding.UIDTagV, "") {
			want = append(want, e.Name)
		}
		if d := cmp.Diff(want, got); d != "" || total != len(want) || err != nil || givenUp < 3 {
			t.Errorf("given up %d times, %d names, %v; -want +got\n%s", givenUp, total, err, d)
		}
		return
	}
	t.Errorf("given up %d times: it never goes on", givenUp)
}

// BenchmarkFind searches a million names, as of pods.
func BenchmarkFind(b *testing.B) {
	names := make([]string, 1_000_000)
	for i := range names {
		names[i] = fmt.Sprintf("checkout-7d9f%06x-%05d", i*7919%(1<<24), i%100_000)
	}
	l := completion.ListOf(names)
	for _, text := range []string{"04711", "checkout", "out-7d 99", "nothing"} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				completion.Search(l, text, 40)
			}
		})
	}
}
