package write

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// held returns the points that a reader sees after all mutations, as text by row and time. Of
// two points of one time the later one wins.
func held(t *testing.T, applied []store.Mutation) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for _, mu := range applied {
		var dec encoding.RowDecoder
		dec.Reset(0)
		if err := dec.Add(mu.Qualifier, mu.Value, 0); err != nil {
			t.Fatal(err)
		}
		var pts encoding.Points
		if err := dec.Finish(&pts); err != nil {
			t.Fatal(err)
		}
		for i := range pts.Len() {
			at, v := pts.At(i)
			rows[fmt.Sprintf("% X @%d", mu.Row, at)] = v.String()
		}
	}
	return rows
}

// Every point is written to the row of its series and hour, in every cell form, however points
// are split into batches and also if a series was resolved several times.
func TestWriter_rows(t *testing.T) {
	f := func(form Form, rnd *rand.Rand) {
		t.Helper()
		m := &memory{}
		w := newTestWriter(m, Config{
			Form:        form,
			Shards:      1 + rnd.IntN(3),
			Window:      time.Microsecond,
			WindowBytes: 50 + rnd.IntN(2000),
		})
		want := map[string]string{}
		at := int64(1292148000)
		for range 3000 {
			at += int64(rnd.IntN(40)) // 0 repeats a time: the later value of a series wins
			p := &Point{
				Metric: "m",
				Tags:   []Tag{{"g", strconv.Itoa(rnd.IntN(7))}},
				Time:   at,
				Value:  encoding.IntValue(rnd.Int64N(1 << 20)),
			}
			if rnd.IntN(50) == 0 {
				w.series.Drop() // the next series keys are new objects
			}
			b, err := w.Add(t.Context(), p)
			if err == nil && rnd.IntN(20) == 0 {
				err = b.Wait(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			s, err := w.series.Resolve(t.Context(), p.Metric, p.Tags)
			if err != nil {
				t.Fatal(err)
			}
			key := w.cfg.Schema.AppendRowKey(nil, s.Metric, encoding.KeyTime(encoding.Hour(at)), s.Tags)
			want[fmt.Sprintf("% X @%d", key, (at-int64(encoding.KeyTime(encoding.Hour(at))))*1000)] = p.Value.String()
		}
		w.Close()
		if d := cmp.Diff(want, held(t, m.applied)); d != "" {
			t.Errorf("form %d: -want +got\n%.2000s", form, d)
		}
	}
	seed := seedtest.Of(t)
	for _, form := range []Form{Single, MultiPoint, Appended} {
		f(form, rand.New(rand.NewPCG(seed, uint64(form))))
	}
}

// Points of one time whose values have different types keep their order in a batch, also if one
// takes the place of an earlier one: a reader for whom the later cell wins reads the last.
func TestWriter_typesOfOneTime(t *testing.T) {
	for _, form := range []Form{Single, MultiPoint, Appended} {
		m := &memory{}
		w := newTestWriter(m, Config{Form: form, Window: time.Hour})
		for _, value := range []int64{1 << 19, 9263, 691698} { // in 4, 2 and 4 bytes
			if _, err := w.Add(t.Context(), point(1292148123, encoding.IntValue(value))); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		for at, got := range held(t, m.applied) {
			if got != "691698" {
				t.Errorf("form %d: %s holds %s, want 691698, the last", form, at, got)
			}
		}
	}
}

// Runs of more than 30,000 entries of one row do not overflow the length of a run: groupByRow
// keeps all entries of a row in their order. Two series of one hash have rows of their own.
func TestRows_longRuns(t *testing.T) {
	r := newRows()
	schema := encoding.DefaultSchema()
	a, b := newSeriesKey([]byte{0, 0, 1}, []byte{0, 0, 1, 0, 0, 1}),
		newSeriesKey([]byte{0, 0, 2}, []byte{0, 0, 1, 0, 0, 1})
	b.hash = a.hash // the last row of one is the guess for the other
	var wantA, wantB []byte
	for i := range 40_000 {
		entry := []byte{byte(i), byte(i >> 8), byte(i >> 16)}
		wantA = append(wantA, entry...)
		r.add(&schema, a, 0, rowItem{entry: entry})
		if i%30_000 == 0 {
			wantB = append(wantB, entry...)
			r.add(&schema, b, 0, rowItem{entry: entry})
		}
	}
	r.groupByRow()
	if !bytes.Equal(r.entries(0), wantA) || !bytes.Equal(r.entries(1), wantB) {
		t.Errorf("got %d and %d bytes, want %d and %d, or other ones", len(r.entries(0)), len(r.entries(1)),
			len(wantA), len(wantB))
	}
}

// Rows are found again by series and hour, also when the index has grown, and come in the order
// of their keys, with their own entries. Nothing of one batch is left in the next. Keys that
// begin alike in eight bytes and more, and keys that are the beginning of others, are drawn.
func TestRows_index(t *testing.T) {
	seed := seedtest.Of(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	schema := encoding.DefaultSchema()
	var series []*SeriesKey
	for range 1500 {
		tags := make([]byte, 6*(1+rnd.IntN(3)))
		for i := len(tags) - 1; i >= 0 && rnd.IntN(4) > 0; i-- {
			tags[i] = byte(rnd.IntN(20))
		}
		s := newSeriesKey([]byte{0, 0, byte(rnd.IntN(2))}, tags)
		if rnd.IntN(10) == 0 {
			s.hash = 7 // of several series
		}
		series = append(series, s)
	}

	r := newRows()
	for batch := range 3 {
		want := map[string]string{}
		for i := range []int{5000, 10, 20_000}[batch] {
			s, base := series[rnd.IntN(len(series))], uint32(3600*rnd.IntN(3))
			// Equal UIDs have one hash, as they have where series are resolved.
			key := string(schema.AppendRowKey(nil, s.Metric, base, s.Tags))
			s.hash = series[slices.IndexFunc(series, func(o *SeriesKey) bool {
				return bytes.Equal(o.Metric, s.Metric) && bytes.Equal(o.Tags, s.Tags)
			})].hash
			entry := binary.BigEndian.AppendUint32(nil, uint32(i))
			r.add(&schema, s, base, rowItem{entry: entry})
			want[key] += string(entry)
		}

		r.groupByRow()
		mutations, err := r.cells.build(r, Appended)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for i, m := range mutations {
			got[string(m.Row)] = string(m.Value)
			if i > 0 && bytes.Compare(mutations[i-1].Row, m.Row) >= 0 {
				t.Fatalf("batch %d: row % X stands before % X", batch, mutations[i-1].Row, m.Row)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("batch %d: -want +got\n%.2000s", batch, d)
		}
		r.reset()
		kept := func(r row) bool { return r.key != nil || r.metric != nil }
		if len(r.list)+len(r.log) > 0 || slices.ContainsFunc(r.list[:cap(r.list)], kept) {
			t.Fatalf("batch %d: %d rows and %d bytes of entries are left, or keys are held", batch, len(r.list),
				len(r.log))
		}
		if batch == 1 {
			r.batch = math.MaxUint32 // the numbers start again at the next reset
		}
	}
}

// A Wait ends the commit window of its batch, except for multi cells, which are made at the end
// of the window only. A Wait whose context has ended does not end the window.
func TestBatch_waitEndsWindow(t *testing.T) {
	f := func(form Form, want time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newTestWriter(&memory{}, Config{Form: form, Window: time.Hour})
			defer w.Close()
			b, err := w.Add(t.Context(), point(1292148123, encoding.IntValue(1)))
			if err != nil {
				t.Fatal(err)
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if err := b.Wait(over); err != context.Canceled {
				t.Errorf("form %d: a Wait whose context has ended gave %v, want %v", form, err, context.Canceled)
			}
			start := time.Now()
			if synctest.Wait(); b.Wait(over) == nil {
				t.Errorf("form %d: a Wait whose context has ended has ended the window", form)
			}
			if err := b.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			if got := time.Since(start); got != want {
				t.Errorf("form %d: waited for %s, want %s", form, got, want)
			}
		})
	}
	f(Single, 0)
	f(Appended, 0)
	f(MultiPoint, time.Hour)
}

// keeper is a store that fails the first call and keeps references to its values, as a call that
// has timed out may still read them.
type keeper struct {
	memory
	values, copies [][]byte
}

func (k *keeper) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	if len(k.values) == 0 {
		for _, mu := range mutations {
			k.values, k.copies = append(k.values, mu.Value, mu.Row),
				append(k.copies, bytes.Clone(mu.Value), bytes.Clone(mu.Row))
		}
		return store.ErrUnavailable
	}
	return k.memory.Apply(ctx, table, mutations)
}

// The memory of a failed batch is not used again, whether a shard or a request wrote it.
func TestWriter_failedMemory(t *testing.T) {
	for _, form := range []Form{Single, MultiPoint, Appended} {
		for _, requestBatchFrom := range []int{0, 1} {
			k := &keeper{}
			w := New(Config{Schema: encoding.DefaultSchema(), Form: form, RequestBatchFrom: requestBatchFrom}, k,
				newTestSeries(&numbering{}))
			for i := range int64(5) {
				request := w.RequestBatch(1)
				b := add(t, request, "ubuntu", 1292148123+3600*i, 100*i)
				request.Send()
				if err := b.Wait(t.Context()); (err == nil) == (i == 0) {
					t.Fatalf("batch %d: got %v, want that batch 0 alone fails", i, err)
				}
			}
			w.Close()
			for i := range k.values {
				if !bytes.Equal(k.values[i], k.copies[i]) {
					t.Errorf("form %d, request batches from %d: memory of a failed call was % X and is % X", form,
						requestBatchFrom, k.copies[i], k.values[i])
				}
			}
		}
	}
}

// Rows of one shard, whose hashes have the lowest bits in common, are looked for first all over the
// index: of 512 in 1024 places two fifths share theirs, by chance.
func TestRows_home(t *testing.T) {
	r := newRows()
	homes := map[uint64]bool{}
	for i := range uint64(512) {
		homes[r.home(maphash.Comparable(seed, i)&^3)] = true
	}
	for home := range homes {
		if home >= uint64(len(r.index)) {
			t.Fatalf("home %d, want less than %d", home, len(r.index))
		}
	}
	if len(homes) < 350 { // the mean is 403, its standard deviation 7
		t.Errorf("512 rows have %d homes in %d places, want some 403", len(homes), len(r.index))
	}
}

// nowhere takes everything.
type nowhere struct{}

func (nowhere) Apply(context.Context, string, []store.Mutation) error { return nil }

// BenchmarkWriter measures the cost of a point from its series key to its mutation, with 1,000
// series in time order.
func BenchmarkWriter(b *testing.B) {
	schema := encoding.DefaultSchema()
	names := newTestSeries(&numbering{})
	var series []*SeriesKey
	for i := range 1000 {
		s, err := names.Resolve(b.Context(), "cpu.user", []Tag{{"host", strconv.Itoa(i)}})
		if err != nil {
			b.Fatal(err)
		}
		series = append(series, s)
	}
	for form, name := range []string{"cells", "multi", "appended"} {
		b.Run(name, func(b *testing.B) {
			w := New(Config{Schema: schema, Form: Form(form)}, nowhere{}, names)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := w.AddTo(b.Context(), series[i%1000],
					&Point{Time: 1700000000 + int64(i/1000)*10, Value: encoding.IntValue(int64(i % 101))}); err != nil {
					b.Fatal(err)
				}
				i++
			}
			w.Close()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "points/s")
		})
	}
}

// BenchmarkRows_add measures a point until it is in its row, of the 1,000 rows that one of four shards has.
func BenchmarkRows_add(b *testing.B) {
	schema, base := encoding.DefaultSchema(), uint32(1699999200)
	var series []*SeriesKey
	for id := uint32(0); len(series) < 1000; id++ {
		if s := newSeriesKey([]byte{0, 0, 1}, binary.BigEndian.AppendUint32([]byte{0, 0}, id)); s.rowHash(base)%4 == 0 {
			series = append(series, s)
		}
	}
	r, entry := newRows(), rowItem{entry: []byte{0, 1, 2}}
	i := 0
	for b.Loop() {
		r.add(&schema, series[i%len(series)], base, entry)
		if i++; i%30_000 == 0 {
			r.reset()
		}
	}
}

// A batch grows by a row with its key and cost, and by each entry.
func TestRows_grown(t *testing.T) {
	s, entry := newSeriesKey([]byte{0, 0, 1}, []byte{0, 0, 1, 0, 0, 2}), rowItem{entry: []byte{0, 1, 2}}
	r, schema := newRows(), encoding.DefaultSchema()
	first, second := r.add(&schema, s, 3600, entry), r.add(&schema, s, 3600, entry)
	if want := rowCost + len(s.Metric) + encoding.BaseTimeWidth + len(s.Tags) + 3; first != want || second != 3 {
		t.Errorf("grown by %d and %d, want %d and 3", first, second, want)
	}
}

// A batch without a point has no mutation, and nothing of a histogram is held when its batch is done. A histogram grows
// its batch by its cell and cost.
func TestRows_empty(t *testing.T) {
	r, schema := newRows(), encoding.DefaultSchema()
	for _, form := range []Form{Single, MultiPoint, Appended, rollupCells} {
		r.groupByRow()
		if m, err := r.cells.build(r, form); err != nil || len(m) > 0 {
			t.Errorf("form %d: %v, %v of no point", form, m, err)
		}
	}
	s := newSeriesKey([]byte{0, 0, 1}, []byte{0, 0, 1, 0, 0, 2})
	cell := &histogramCell{qualifier: []byte{6, 0, 9}, value: []byte{1, 2, 3, 4}}
	r.add(&schema, s, 3600, rowItem{histogram: cell})
	if grown := r.add(&schema, s, 3600, rowItem{histogram: cell}); grown != 3+4+rowCost {
		t.Errorf("grown by %d, want %d", grown, 3+4+rowCost)
	}
	r.groupByRow()
	if m, err := r.cells.build(r, Single); err != nil || len(m) != 1 {
		t.Errorf("%v, %v, want one cell", m, err)
	}
	r.reset()
	if all := r.histograms[:cap(r.histograms)]; len(r.histograms) > 0 || all[0].value != nil {
		t.Errorf("%d histograms are left, or one is held: %v", len(r.histograms), all)
	}
	if all := r.cells.out[:1]; len(r.cells.out) > 0 || all[0].Value != nil {
		t.Errorf("%d mutations are left, or one is held: %v", len(r.cells.out), all)
	}
}

// Numbers of the first eight bytes are in no other order than what begins with these, and keys have in common what
// both begin with.
func TestEightBytes(t *testing.T) {
	rnd := seedtest.Rand(t)
	draw := func() []byte {
		b := make([]byte, rnd.IntN(11))
		for i := range b {
			b[i] = byte(rnd.IntN(3)) * 127
		}
		return b
	}
	for range 2000 {
		a, b := draw(), draw()
		if bytes.Compare(a, b) < 0 && eightBytes(a) > eightBytes(b) {
			t.Fatalf("% X is before % X, and %X behind %X", a, b, eightBytes(a), eightBytes(b))
		}
		n := commonPrefix(a, b)
		if !bytes.Equal(a[:n], b[:n]) || n < len(a) && n < len(b) && a[n] == b[n] {
			t.Fatalf("% X and % X begin alike in %d bytes", a, b, n)
		}
	}
	if eightBytes([]byte{1}) != 1<<56 || eightBytes([]byte("12345678")) != eightBytes([]byte("123456789")) {
		t.Error("missing bytes are not 0, or more than eight count")
	}
}

// Rows are spread over all shards. A Wait for a batch that its shard has written does not end the window of the next.
func TestWriter_shards(t *testing.T) {
	w := newTestWriter(&memory{}, Config{Shards: 3, Window: time.Hour})
	defer w.Close()
	batches := map[*Batch]bool{}
	var last *Batch
	for hour := range int64(64) {
		b, err := w.Add(t.Context(), point(1292148000+3600*hour, encoding.IntValue(1)))
		if err != nil {
			t.Fatal(err)
		}
		batches[b], last = true, b
	}
	if len(batches) != 3 {
		t.Errorf("%d batches of 64 rows, want one in each of 3 shards", len(batches))
	}
	sh := w.shards[slices.IndexFunc(w.shards, func(sh *shard) bool { return sh.open == last })]
	if sh.hurry(&Batch{}); len(sh.endWindow) > 0 {
		t.Error("a batch that was written ends the window of another")
	}
}
