package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/java/javatest"
	"downpour/pushdown/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbering gives each name of a kind the next number.
type numbering struct {
	mu  sync.Mutex
	ids [3]map[string]uint64
}

var errUnknown = errors.New("unknown name")

func (n *numbering) Resolve(_ context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, ok := n.ids[kind][name]; ok {
		return encoding.AppendUID(nil, id, 3)
	}
	return nil, errUnknown
}

func (n *numbering) Assign(_ context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ids[kind] == nil {
		n.ids[kind] = map[string]uint64{}
	}
	if _, ok := n.ids[kind][name]; !ok {
		n.ids[kind][name] = uint64(len(n.ids[kind]) + 1)
	}
	return encoding.AppendUID(nil, n.ids[kind][name], 3)
}

// Generation and Hold are as for names that never change.
func (n *numbering) Generation() uint64 { return 0 }

// Prepare does nothing: Assign does it all.
func (n *numbering) Prepare(context.Context, encoding.UIDKind, []string) {}

// Cached reports that nothing is new.
func (n *numbering) Cached(encoding.UIDKind, string) bool { return true }

func (n *numbering) Hold() (uint64, func() error) { return 0, func() error { return nil } }

// memory keeps mutations; hold makes Apply wait, fail makes it fail.
type memory struct {
	mu      sync.Mutex
	applied []store.Mutation
	calls   int
	hold    chan struct{}
	fail    error
}

func (m *memory) Apply(ctx context.Context, _ string, mutations []store.Mutation) error {
	if m.hold != nil {
		select {
		case <-m.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.fail != nil {
		return m.fail
	}
	for _, mu := range mutations { // the writer uses their memory again after the call
		mu.Qualifier, mu.Value = bytes.Clone(mu.Qualifier), bytes.Clone(mu.Value)
		m.applied = append(m.applied, mu)
	}
	return nil
}

func newTestSeries(names Names) *SeriesCache {
	return NewSeries(SeriesConfig{Schema: encoding.DefaultSchema(), Names: names, Auto: Auto{true, true, true}})
}

func newTestWriter(m *memory, cfg Config) *Writer {
	cfg.Schema, cfg.Table = encoding.DefaultSchema(), "tsdb"
	return New(cfg, m, newTestSeries(&numbering{}))
}

func point(t int64, v encoding.Value) *Point {
	return &Point{Metric: "mysql.bytes_sent", Tags: []Tag{{"host", "ubuntu"}}, Time: t, Value: v}
}

// A tag key that is given twice is refused by its name, and no name of the point gets a UID.
func TestSeries_duplicateTag(t *testing.T) {
	names := &numbering{}
	s := newTestSeries(names)
	_, err := s.Resolve(t.Context(), "m", []Tag{{"host", "a"}, {"dc", "b"}, {"host", "c"}})
	if err == nil || err.Error() != "duplicate tag: host" {
		t.Errorf("got %v, want duplicate tag: host", err)
	}
	for kind, ids := range names.ids {
		if len(ids) > 0 {
			t.Errorf("assigned %s %v, want no UID assigned", encoding.UIDKind(kind), ids)
		}
	}
}

// renamed gives all tag keys one UID, as a renamed key and its new name have while the old name
// is still cached.
type renamed struct{ numbering }

func (n *renamed) Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if kind == encoding.UIDTagK {
		return encoding.UID{0, 0, 7}, nil
	}
	return n.numbering.Assign(ctx, kind, name)
}

// A series whose tag keys have the same UID is refused: its row key would have a tag key twice.
func TestSeries_oneUIDTwice(t *testing.T) {
	s := newTestSeries(&renamed{})
	_, err := s.Resolve(t.Context(), "m", []Tag{{"host", "a"}, {"server", "b"}})
	if err == nil || err.Error() != "two tag keys of m have the UID 000007" {
		t.Errorf("got %v, want an error with the metric and the UID 000007", err)
	}
}

// A point is stored as in the example of OpenTSDB's documentation: 476 at 1292148123 has base
// time 1292148000 (4D049D20) and qualifier 07 B1.
func TestWriter_cells(t *testing.T) {
	m := &memory{}
	w := newTestWriter(m, Config{})
	b, err := w.Add(t.Context(), point(1292148123, encoding.IntValue(476)))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Close()
	want := []store.Mutation{{
		Family:    "t",
		Row:       []byte{0, 0, 1, 0x4D, 0x04, 0x9D, 0x20, 0, 0, 1, 0, 0, 1},
		Qualifier: []byte{0x07, 0xB1},
		Value:     []byte{0x01, 0xDC},
	}}
	if diff := cmp.Diff(want, m.applied); diff != "" {
		t.Error(diff)
	}
}

// The points of a row in one commit window become the mutations of their form: single cells have
// one for each time, a multi cell or an append column has one in all.
func TestWriter_forms(t *testing.T) {
	f := func(form Form, want ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			m := &memory{}
			w := newTestWriter(m, Config{Form: form})
			for _, p := range []*Point{point(1292148123, encoding.IntValue(1)),
				point(1292148120, encoding.IntValue(2)), point(1292148123, encoding.IntValue(3))} {
				if _, err := w.Add(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			w.Close()
			var got []string
			for _, mu := range m.applied {
				got = append(got, fmt.Sprintf("%d %X=%X", mu.Kind, mu.Qualifier, mu.Value))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("form %d: %s", form, diff)
			}
		})
	}
	f(Single, "0 0780=02", "0 07B0=03")
	f(MultiPoint, "0 078007B0=020300")
	f(Appended, "1 050000=07B001"+"078002"+"07B003")
}

// No multi cell begins with the byte 05, because OpenTSDB's fsck takes such a cell for an append
// column: points of the seconds 80 to 95 that would come first get cells of their own.
//
//fault:multi-cell-like-an-append-column len(rest) > 1 => false
func TestWriter_multiCellNotLikeAppendColumn(t *testing.T) {
	f := func(seconds []int64, want ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			m := &memory{}
			w := newTestWriter(m, Config{Form: MultiPoint})
			for i, s := range seconds {
				if _, err := w.Add(t.Context(), point(1292148000+s, encoding.IntValue(int64(i)))); err != nil {
					t.Fatal(err)
				}
			}
			w.Close()
			var got []string
			for _, mu := range m.applied {
				got = append(got, fmt.Sprintf("%X=%X", mu.Qualifier, mu.Value))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("seconds %v: -want +got\n%s", seconds, diff)
			}
		})
	}
	f([]int64{79, 80, 95}, "04F0050005F0=00010200")
	f([]int64{80, 95, 96, 97}, "0500=00", "05F0=01", "06000610=020300")
	f([]int64{96, 80, 80}, "0500=02", "0600=00")
	f([]int64{80, 95}, "0500=00", "05F0=01")
	f([]int64{80}, "0500=00")
}

// Add waits while its shard is full, until the store has taken a batch.
func TestWriter_pushesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{hold: make(chan struct{})}
		w := newTestWriter(m, Config{WindowBytes: 100, Form: Appended})
		taken := make(chan struct{}, 100)
		go func() {
			for i := range int64(100) {
				if _, err := w.Add(t.Context(), point(1292148000+i*3600, encoding.IntValue(i))); err != nil {
					t.Error(err)
				}
				taken <- struct{}{}
			}
		}()
		synctest.Wait()
		if n := len(taken); n == 0 || n > 10 {
			t.Errorf("%d points were taken while the store stood still, want a few", n)
		}
		close(m.hold)
		for range 100 {
			<-taken
		}
		w.Close()
		if len(m.applied) != 100 {
			t.Errorf("%d rows were written, want 100", len(m.applied))
		}
	})
}

// Wait returns the error of a failed write, and Add fails after Close.
//
//fault:failed-write-acknowledged err => nil
func TestWriter_failure(t *testing.T) {
	m := &memory{fail: store.ErrUnavailable}
	w := newTestWriter(m, Config{})
	b, err := w.Add(t.Context(), point(1292148123, encoding.IntValue(1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(t.Context()); !errors.Is(err, store.ErrUnavailable) || !IsStorage(err) {
		t.Errorf("got %v, want %v", err, store.ErrUnavailable)
	}
	w.Close()
	if _, err := w.Add(t.Context(), point(1292148123, encoding.IntValue(1))); !errors.Is(err, ErrClosing) {
		t.Errorf("after Close: %v, want %v", err, ErrClosing)
	}
}

// No point is acknowledged before the store has acknowledged the write.
//
//fault:ack-before-write => w.endWrite(b); b.finish(nil); err := w.apply(r)
func TestWriter_acknowledgedAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{hold: make(chan struct{})}
		w := newTestWriter(m, Config{})
		defer w.Close()
		b, err := w.Add(t.Context(), point(1292148123, encoding.IntValue(1)))
		if err != nil {
			t.Fatal(err)
		}
		said := make(chan error, 1)
		go func() { said <- b.Wait(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-said:
			t.Errorf("Wait returned %v before the store had the point", err)
			said <- err
		default:
		}
		close(m.hold)
		if err := <-said; err != nil || len(m.applied) != 1 {
			t.Errorf("got %v and %d mutations, want one", err, len(m.applied))
		}
	})
}

// With any number of shards all acknowledged points are written, and the points of a row are
// written in the order in which they were put.
func TestWriter_acknowledged(t *testing.T) {
	seed := seedtest.Of(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	m := &memory{}
	w := newTestWriter(m, Config{Shards: 1 + rnd.IntN(4), Window: time.Microsecond, Form: Appended})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 200 {
				p := &Point{
					Metric: "m",
					Tags:   []Tag{{"g", fmt.Sprint(g)}},
					Time:   int64(1292148000 + i),
					Value:  encoding.IntValue(int64(i)),
				}
				b, err := w.Add(context.Background(), p)
				if err == nil {
					err = b.Wait(context.Background())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	w.Close()
	next := map[string]int64{}
	var dec encoding.RowDecoder
	for _, mu := range m.applied {
		dec.Reset(0)
		if err := dec.Add(mu.Qualifier, mu.Value, 0); err != nil {
			t.Fatal(err)
		}
		var pts encoding.Points
		if err := dec.Finish(&pts); err != nil {
			t.Fatal(err)
		}
		for i := range pts.Len() {
			if _, v := pts.At(i); v.Int() != next[string(mu.Row)] {
				t.Fatalf("row % X has %d, want %d next", mu.Row, v.Int(), next[string(mu.Row)])
			}
			next[string(mu.Row)]++
		}
	}
	if len(next) != 8 {
		t.Errorf("%d rows, want 8", len(next))
	}
}

// The value of a put is what OpenTSDB stores of its text, except infinities, which it
// refuses in a later step.
func TestParseValue(t *testing.T) {
	for _, n := range javatest.Numbers(t) {
		want, wantErr := encoding.Value{}, ErrValue
		switch {
		case n.Text == "":
			wantErr = ErrNoValue
		case n.Value == nil || strings.Contains(*n.Value, "Infinity"):
		case n.Integer:
			v, err := strconv.ParseInt(*n.Value, 10, 64)
			want, wantErr = encoding.IntValue(v), err
		default:
			v, err := strconv.ParseFloat(*n.Value, 64)
			want, wantErr = encoding.FloatValue(v), err
		}
		if got, err := ParseValue(n.Text); got != want || !errors.Is(err, wantErr) {
			t.Errorf("%q: got %+v, %v, want %+v, %v", n.Text, got, err, want, wantErr)
		}
	}
}

func TestParseTime(t *testing.T) {
	f := func(text string, want int64, ok bool) {
		t.Helper()
		if got, err := ParseTime(text); got != want || (err == nil) != ok {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	f("1356998400", 1356998400, true)
	f("1356998400.250", 1356998400250, true)
	f("1356998400250", 1356998400250, true)
	f("135.6998400.250", 1356998400250, true) // OpenTSDB drops all dots
	f("9999999999.999", maxMillis, true)
	for _, text := range []string{"0", "-1", "", "x", "10000000000000", "00000000000000000001", "1_000", "0x10", "1e9",
		"1356998400 ", "1356998400.foo"} {
		f(text, 0, false)
	}
}

// A short integer is read as any other; what is longer than 18 digits, or no integer, is left to others.
func TestShortInt(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "9": 9, "-9": -9, "100": 100, "999999999999999999": 1e18 - 1, "-999999999999999999": 1 - 1e18,
	} {
		if got, ok := ShortInt(text); got != want || !ok {
			t.Errorf("%s: got %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"-", "--1", "+1", "1000000000000000000", "1.", "1a", "1:", "1/", "\u0661"} {
		if got, ok := ShortInt(text); got != 0 || ok {
			t.Errorf("%s: got %d, want none", text, got)
		}
	}
}

// A batch that is full is written at once, however long its window is.
func TestWriter_full(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		w := newTestWriter(m, Config{WindowBytes: 100, Window: time.Hour})
		began := time.Now()
		for i := range int64(20) {
			if _, err := w.Add(t.Context(), point(1292148000+i*3600, encoding.IntValue(i))); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("20 points waited for %v", took)
		}
		w.Close()
		if len(m.applied) != 20 {
			t.Errorf("%d rows were written, want 20", len(m.applied))
		}
	})
}

// observed counts points by row.
type observed map[string]int

func (o observed) Stored(key []byte, points int) { o[string(key)] += points }

// The observer gets each row that is stored, with its points, and none that is not.
func TestWriter_observer(t *testing.T) {
	for _, fail := range []error{nil, store.ErrUnavailable} {
		got := observed{}
		w := newTestWriter(&memory{fail: fail}, Config{Observer: got})
		for _, at := range []int64{1292148000, 1292148001, 1292151600} {
			b, err := w.Add(t.Context(), point(at, encoding.IntValue(1)))
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Wait(t.Context()); !errors.Is(err, fail) {
				t.Fatal(err)
			}
		}
		w.Close()
		rows, points := 0, 0
		for _, n := range got {
			rows, points = rows+1, points+n
		}
		if stored := fail == nil; stored && (rows != 2 || points != 3) || !stored && rows > 0 {
			t.Errorf("writes fail with %v: %d points of %d rows are said to be stored", fail, points, rows)
		}
	}
}
