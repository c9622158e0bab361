package scanplan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/encoding/seedtest"
)

// Times are found by their place, and the windows inside a stretch are those all of whose times are.
func TestWindow_times(t *testing.T) {
	r := seedtest.Rand(t)
	for range 2000 {
		w := &Window{Range: 1 + r.Int64N(40), First: r.Int64N(60) - 30, Step: 1 + r.Int64N(20)}
		w.Last = w.First + r.Int64N(200)
		at := r.Int64N(300) - 50
		want := 0
		for want < w.Len() && w.At(want) < at {
			want++
		}
		if got := w.From(at); got != want || w.At(w.Len()-1) > w.Last || w.At(w.Len()) <= w.Last {
			t.Fatalf("%s: got index %d of %d ms, want %d of %d times", w, got, at, want, w.Len())
		}
		from, to := at, at+r.Int64N(100)
		bounds := [][2]int64{{from, to}, {math.MinInt64, to}, {from, math.MaxInt64}, {math.MinInt64, math.MaxInt64}}
		for _, b := range bounds {
			var inside []int
			for i := range w.Len() {
				first := w.At(i) - w.Range + 1
				if (b[0] == math.MinInt64 || first >= b[0]) && w.At(i) < b[1] {
					inside = append(inside, i)
				}
			}
			i, j := w.Inside(b[0], b[1])
			var got []int
			for ; i < j; i++ {
				got = append(got, i)
			}
			if !slices.Equal(got, inside) {
				t.Fatalf("%s in %d: got %v, want %v", w, b, got, inside)
			}
		}
	}
}

// A part has the rows of a series that its keys hold, whatever key cuts it.
//
//fault:window-hour-of-a-cut < 0 => <= 0
func TestSeriesTimes(t *testing.T) {
	r := seedtest.Rand(t)
	for range 5000 {
		s := encoding.DefaultSchema()
		if r.IntN(2) == 0 {
			s.SaltWidth, s.SaltBuckets = 1, 4
		}
		metric, salt := encoding.UID{0, 0, 7}, r.IntN(s.Buckets())
		p := &Plan{Schema: s, Metric: metric, From: 1356998400, To: 1356998400 + 6*3600}
		tag := func() []byte { return []byte{0, 0, byte(1 + r.IntN(3)), 0, 0, byte(1 + r.IntN(3))} }
		key := func() []byte {
			k := s.AppendRangeKey(nil, salt, metric, uint32(p.From+3600*r.Int64N(8)-3600))
			switch r.IntN(5) {
			case 0:
				k = append(k, tag()...)
			case 1:
				k = append(k, tag()[:r.IntN(6)]...)
			case 2:
				k = k[:s.BaseTimeAt()+r.IntN(4)]
			case 3:
				k[len(k)-1] += byte(r.IntN(9))
			}
			return k
		}
		part := KeyRange{Start: key(), Stop: key()}
		if string(part.Start) > string(part.Stop) {
			part.Start, part.Stop = part.Stop, part.Start
		}
		if r.IntN(9) == 0 {
			part.Stop = nil
		}
		tags := tag()
		span := append(s.AppendRangeKey(nil, salt, metric, 0)[:s.BaseTimeAt()], tags...)
		from, to := p.SeriesTimes(part, span)
		for base := p.From; base < p.To; base += 3600 {
			row := append(s.AppendRangeKey(nil, salt, metric, uint32(base)), tags...)
			has := string(row) >= string(part.Start) && (len(part.Stop) == 0 || string(row) < string(part.Stop))
			if got := base*1000 >= from && base*1000 < to; got != has {
				t.Fatalf("part %s to %s, row %x: got %t in [%d, %d), want %t",
					part.Start, part.Stop, row, got, from, to, has)
			}
			if has && base == p.From && from != math.MinInt64 || has && base == p.To-3600 && to != math.MaxInt64 {
				t.Fatalf("part %s to %s has the first or last row %x: got [%d, %d), want no such end",
					part.Start, part.Stop, row, from, to)
			}
		}
	}
}

func TestWindow_refused(t *testing.T) {
	good := Window{Function: "rate", Range: 60_000, First: -5, Last: 100, Step: 7}
	f := func(says string, change func(w *Window, p *Plan)) {
		t.Helper()
		w, p := good, Plan{Aggregator: None}
		change(&w, &p)
		err := w.validate(&p)
		if fmt.Sprint(err) != says && (says == "<nil>" || !strings.Contains(fmt.Sprint(err), says)) {
			t.Errorf("got %v, want %s", err, says)
		}
	}
	f("<nil>", func(*Window, *Plan) {})
	f("window of 0 ms", func(w *Window, _ *Plan) { w.Range = 0 })
	f("up to 1048576 times", func(w *Window, _ *Plan) { w.Last = 8 << 20 })
	f("by 0 ms", func(w *Window, _ *Plan) { w.Step = 0 })
	f("from 101 to 100 ms", func(w *Window, _ *Plan) { w.First = 101 })
	f("want up to", func(w *Window, _ *Plan) { w.First, w.Step = math.MinInt64, 1<<51 })
	f("want up to", func(w *Window, _ *Plan) { w.Last, w.Step = math.MaxInt64, 1<<51 })
	f("want up to", func(w *Window, _ *Plan) { w.First = -8 << 20 })
	f("<nil>", func(w *Window, _ *Plan) { w.First = w.Last })
	f("<nil>", func(w *Window, _ *Plan) { w.Range, w.Step = maxWindowMS, maxWindowMS })
	f("<nil>", func(w *Window, _ *Plan) { w.First, w.Last, w.Step = -maxWindowMS, maxWindowMS, maxWindowMS })
	f("want up to", func(w *Window, _ *Plan) { w.Range = maxWindowMS + 1 })
	f("want up to", func(w *Window, _ *Plan) { w.Step = maxWindowMS + 1 })
	f("<nil>", func(w *Window, p *Plan) {
		p.Schema = encoding.DefaultSchema()
		w.Groups = &WindowGroups{Function: "max", Keys: []encoding.UID{{0, 0, 1}, {0, 0, 2}}}
	})
	f("tagk 000001 is out of order", func(w *Window, p *Plan) {
		p.Schema = encoding.DefaultSchema()
		w.Groups = &WindowGroups{Function: "max", Keys: []encoding.UID{{0, 0, 1}, {0, 0, 1}}}
	})
	f("with a downsample", func(_ *Window, p *Plan) { p.Downsample = &Downsample{} })
	f("the aggregator sum", func(_ *Window, p *Plan) { p.Aggregator = "sum" })
}
