package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/query"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store/open/opentest"
)

// withSlices returns an engine as e that reads in slices what may be, from a row on.
func (e *Engine) withSlices(s SliceSizes, maxBytes int64) *Engine {
	cfg := e.cfg
	cfg.Slices, cfg.Compile.MaxBytes = s, maxBytes
	return New(cfg)
}

// lines draws a query whose groups have one series each, mostly.
func (b *board) lines() *query.Query {
	b.Helper()
	one := func(texts ...string) string { return texts[b.rng.IntN(len(texts))] }
	start := hourZero + b.rng.IntN(3600)
	body := fmt.Sprintf(`{"start":%d,"end":%d,"msResolution":true,"showTSUIDs":%v,`+
		`"queries":[{"metric":"m","aggregator":%q,"downsample":%q,"rate":%v,"filters":[%s]}]}`,
		start, start+3600*(1+b.rng.IntN(boardHours)), b.rng.IntN(3) == 0, one("sum", "avg", "none", "none"),
		one("", "", "5m-avg", "7m-max", "10m-sum-zero"), b.rng.IntN(4) == 0,
		one(byTag("dc", "wildcard", "*")+","+byTag("host", "wildcard", "*"),
			byTag("host", "not_literal_or", "b")+","+byTag("dc", "wildcard", "*"), byTag("host", "regexp", "a|c"), ""))
	q, err := query.Parser{Now: time.Now()}.JSON([]byte(body))
	if err != nil {
		b.Fatalf("%s: %v", body, err)
	}
	return q
}

// byTag is a filter that groups.
func byTag(key, kind, text string) string {
	return fmt.Sprintf(`{"tagk":%q,"type":%q,"filter":%q,"groupBy":true}`, key, kind, text)
}

// asLines returns the groups of an answer that have points, which are what a client of Arrow sees, and
// counts the slices that were read for them.
func (b *board) asLines(e *Engine, q *query.Query, slices *int) []Result {
	b.Helper()
	a, err := e.Open(b.Context(), q, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Free()
	read, before := int64(0), *slices
	for i := range a.Results {
		parts := a.Stats.Parts
		if err := a.Fill(b.Context(), i); err != nil {
			b.Fatal(err)
		}
		if a.Stats.Parts != parts {
			*slices++
		}
		read += int64(a.Results[i].Points.Len())
	}
	if *slices > before && !a.ReadsOn() {
		b.Error("the answer does not say that it reads rows while it is filled")
	}
	if int64(a.Stats.PointsOut) != read {
		b.Errorf("%d points counted, %d made", a.Stats.PointsOut, read)
	}
	return withPoints(a.Results)
}

// withPoints returns the results that have points, without their annotations.
func withPoints(all []Result) (out []Result) {
	for _, r := range all {
		if r.Points.Len() > 0 {
			r.Annotations, r.HasNotes = nil, false
			out = append(out, r)
		}
	}
	return out
}

// An answer that is read in slices has the groups and points of one that is read at once, on both stores, with any
// size of slices. Where groups have several series it is read at once.
//
//fault:group-cut-into-slices i > 0 && => i > 1<<30 &&
func TestLaw_sliced(t *testing.T) {
	for _, kind := range opentest.Kinds {
		slices := 0
		first := seedtest.Of(t)
		for seed := first; seed < first+4; seed++ {
			t.Run(fmt.Sprintf("%s, seed=%d", kind.Name, seed), func(t *testing.T) {
				b := newBoard(t, rand.New(rand.NewPCG(seed, 0)), kind.Open(t, boardTables...))
				for range 30 {
					q := b.lines()
					sizes := SliceSizes{LeastBytes: -1, FirstRows: 1 + b.rng.Int64N(8), Points: 1 + b.rng.Int64N(100)}
					want, _, err := b.reading.Run(b.Context(), q, Options{})
					if err != nil {
						t.Fatal(err)
					}
					got := b.asLines(b.reading.withSlices(sizes, 0), q, &slices)
					if d := cmp.Diff(withPoints(want), got, cmpopts.EquateEmpty()); d != "" {
						t.Fatalf("%+v, %+v: -want +got\n%s", q.Queries[0], sizes, d)
					}
				}
			})
		}
		t.Log(kind.Name, slices)
		if slices < 200 {
			t.Errorf("%s: %d slices were read, want at least 200, or the cases test too little", kind.Name, slices)
		}
	}
}

// An answer that takes more memory than one sub-query may have is read in slices, on any store. If one series takes
// as much, it is refused.
func TestSliced_tooLargeAtOnce(t *testing.T) {
	for _, kind := range opentest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			b := newBoard(t, rand.New(rand.NewPCG(1, 1)), kind.Open(t, boardTables...))
			for range 400 {
				b.putAt(b.rng.IntN(boardHours))
			}
			q, err := query.Parser{Now: time.Now()}.JSON(fmt.Appendf(nil,
				`{"start":%d,"end":%d,"queries":[{"metric":"m","aggregator":"none"}]}`,
				hourZero, hourZero+boardHours*3600-1))
			if err != nil {
				t.Fatal(err)
			}
			slices := 0
			want := b.asLines(b.reading, q, &slices)
			got := b.asLines(b.reading.withSlices(SliceSizes{FirstRows: 1}, 6<<10), q, &slices)
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || slices < 2 {
				t.Errorf("%d slices: -at once +in slices\n%s", slices, d)
			}

			a, err := b.reading.withSlices(SliceSizes{FirstRows: 1}, 200).Open(t.Context(), q, Options{})
			if err == nil {
				err = a.Fill(t.Context(), 0)
				a.Free()
			}
			if !tooLargeAtOnce(err) {
				t.Errorf("one series alone is too large: got %v, want the error that says so", err)
			}
		})
	}
}

// Rows whose base time is no full hour, also one before the first hour of the query, have points of other rows'
// hours: they are in the answer as if it were read at once.
//
//fault:off-hour-row-in-slices errors.As(err, &offHour) => false && errors.As(err, &offHour)
func TestSliced_offHour(t *testing.T) {
	for _, hour := range []int{0, 1} {
		b := newBoard(t, rand.New(rand.NewPCG(2, 2)), embedded(t))
		for range 60 {
			b.putAt(b.rng.IntN(boardHours))
		}
		m := b.pointAt(hour)
		k, err := b.schema.ParseRowKey(m.Row)
		if err != nil {
			t.Fatal(err)
		}
		tags := b.schema.SpanTags(b.schema.AppendSpan(nil, m.Row))
		m.Row = b.schema.AppendRowKey(nil, k.Metric, k.BaseTime+1800, tags)
		q, value := operatortest.Encode((int64(k.BaseTime)+1800+2500)*1000, encoding.IntValue(77)) // of the next hour
		m.Qualifier, m.Value = encoding.AppendQualifier(nil, q), value
		b.apply(m)

		asked, err := query.Parser{Now: time.Now()}.JSON(fmt.Appendf(nil,
			`{"start":%d,"end":%d,"queries":[{"metric":"m","aggregator":"none"}]}`, hourZero+3600,
			hourZero+boardHours*3600-1))
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := b.reading.Run(t.Context(), asked, Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		got := b.asLines(b.reading.withSlices(SliceSizes{LeastBytes: -1, FirstRows: 1, Points: 1}, 0), asked, &n)
		if d := cmp.Diff(withPoints(want), got, cmpopts.EquateEmpty()); d != "" || n < 3 {
			t.Errorf("a row off the hour %d: %d slices; -want +got\n%s", hour, n, d)
		}
	}
}
