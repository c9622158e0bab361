package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/operatortest"
)

const alignedBase = 1_356_998_400

// mergedBy executes a plan and merges its parts.
func mergedBy(ctx context.Context, e *dispatch.Executor, p *scanplan.Plan,
	how dispatch.Aggregation) ([]merge.Group, dispatch.Stats, error) {
	m := merge.New(p, nil)
	defer m.Free()
	stats, err := e.Run(ctx, p, dispatch.Options{Aggregation: how, Trace: true},
		func(part scanplan.KeyRange, records []batch.Record) error {
			for _, r := range records {
				if err := m.Add(part, r); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		return nil, stats, err
	}
	groups, err := m.Finish()
	return groups, stats, err
}

// answersAligned reports whether all parts of a run answered with aligned aggregates.
func answersAligned(s dispatch.Stats) bool {
	for _, a := range s.Trace {
		if a.Mode != scanplan.Aligned {
			return false
		}
	}
	return len(s.Trace) > 0
}

// alignedTable is a drawn table of series that mostly have points at the same times.
type alignedTable struct {
	store *operatortest.Store
	plan  scanplan.Plan
	all   []operatortest.Series
}

// drawValue draws a value: numbers whose sums round, that wrap around, and those that
// compare and add in their own ways.
func drawValue(t *rapid.T, isFloat bool) encoding.Value {
	if !isFloat {
		return encoding.IntValue(rapid.SampledFrom([]int64{0, 1, -1, 7, 100, 70_000, -5_000_000_000, 1 << 53,
			1<<53 + 1, math.MaxInt64, math.MinInt64}).Draw(t, "int"))
	}
	return encoding.FloatValue(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 0.1, 0.2, 0.3, 1e16, -1e16, 1, 4.5,
		math.NaN(), math.MaxFloat64, math.Inf(-1), 1e-300}).Draw(t, "float"))
}

// drawAligned draws a table. sound has no series that differs from the others.
func drawAligned(t *rapid.T, sound bool) (a alignedTable) {
	s := encoding.DefaultSchema()
	if !sound && rapid.IntRange(0, 7).Draw(t, "salted") == 0 {
		s.SaltWidth, s.SaltBuckets = 1, 3
	}
	hours := rapid.Int64Range(1, 6).Draw(t, "hours")
	a.store = &operatortest.Store{
		BlockRows: rapid.IntRange(0, 3).Draw(t, "block"),
		Sealed:    rapid.Bool().Draw(t, "sealed"),
	}

	times := drawTimes(t, hours)
	types := rapid.SampledFrom([]string{"ints", "floats", "ints", "floats", "ints", "floats", "mixed", "by series",
		"by hour"}).Draw(t, "types")
	if sound && types != "floats" {
		types = "ints"
	}
	turn := alignedBase*1000 + 3600_000*rapid.Int64Range(0, hours).Draw(t, "turn") // where the type changes, by hour
	first := rapid.Bool().Draw(t, "floats first")
	odd := rapid.IntRange(-2, 4).Draw(t, "odd series") // mostly there is one at most
	for i := range rapid.IntRange(1, 5).Draw(t, "series") {
		one := operatortest.Series{
			Tags:     []encoding.TagPair{operatortest.Tag(1, i+1), operatortest.Tag(2, 1+i%2)},
			Appended: rapid.Bool().Draw(t, "appended"),
		}
		own := times
		if !sound && (i == odd || rapid.IntRange(0, 9).Draw(t, "odd too") == 0) {
			own = drawOdd(t, times)
		}
		small := rapid.Bool().Draw(t, "small") // values of one length
		for _, at := range own {
			isFloat := types == "floats" || types == "by series" && i%2 == 0 ||
				types == "mixed" && rapid.Bool().Draw(t, "is float") ||
				types == "by hour" && (at < turn) == first
			v := drawValue(t, isFloat)
			if small && isFloat {
				v = encoding.FloatValue(float64(rapid.IntRange(-9, 9).Draw(t, "small float")) / 4)
			} else if small {
				v = encoding.IntValue(int64(rapid.IntRange(-9, 9).Draw(t, "small int")))
			}
			if sound && isFloat && math.IsInf(v.Double(), 0) {
				v = encoding.FloatValue(1)
			}
			one.Points.Append(at, v)
		}
		a.all = append(a.all, one)
	}
	metric := operatortest.UID(9)
	a.store.Load(s, metric, a.all...)
	a.drawCells(t, s, metric, hours, sound)

	a.plan = operatortest.Plan(s, metric, alignedBase, alignedBase+hours*3600)
	if rapid.Bool().Draw(t, "trimmed") {
		a.plan.Start += rapid.Int64Range(0, hours*3600_000/2).Draw(t, "start")
		a.plan.End -= rapid.Int64Range(0, hours*3600_000/2-1).Draw(t, "end")
	}
	names := aggregate.Names()
	if sound || rapid.IntRange(0, 3).Draw(t, "any aggregator") > 0 {
		names = slices.DeleteFunc(names,
			func(n string) bool { f, _ := aggregate.Lookup(scanplan.Aggregator(n)); return !f.Aligns() })
	}
	a.plan.Aggregator = scanplan.Aggregator(rapid.SampledFrom(names).Draw(t, "aggregator"))
	if rapid.Bool().Draw(t, "by tag") {
		a.plan.GroupBy = []encoding.UID{operatortest.UID(2)}
	}
	if rapid.Bool().Draw(t, "rate") {
		a.plan.Rate = drawRate(t, sound)
	}
	if !sound {
		a.plan.FixDuplicates = rapid.Bool().Draw(t, "fix duplicates")
		if rapid.IntRange(0, 7).Draw(t, "fixed") == 0 {
			a.plan.Fix = rapid.SampledFrom([]scanplan.Fixes{scanplan.FixRateStart, scanplan.FixIntegers,
				scanplan.FixGaps}).Draw(t, "fix")
		}
	}
	return a
}

func drawRate(t *rapid.T, sound bool) *scanplan.Rate {
	r := &scanplan.Rate{
		Counter:    rapid.Bool().Draw(t, "counter"),
		CounterMax: rapid.SampledFrom([]int64{math.MaxInt64, 255}).Draw(t, "max"),
		ResetValue: rapid.SampledFrom([]int64{0, 3}).Draw(t, "reset value"),
	}
	r.DropResets = (!sound || !r.Counter) && rapid.Bool().Draw(t, "drop")
	return r
}

// drawTimes draws the times of all series, some in each of most hours.
func drawTimes(t *rapid.T, hours int64) (times []int64) {
	for h := range hours {
		at := (alignedBase + h*3600) * 1000
		end := at + 3_600_000
		at += rapid.SampledFrom([]int64{0, 0, 1000, 10_000, 999, 3_599_000}).Draw(t, "first")
		step := rapid.SampledFrom([]int64{60_000, 60_000, 600_000, 1000, 250, 0}).Draw(t, "step")
		if rapid.IntRange(0, 9).Draw(t, "empty") == 0 {
			continue
		}
		for range rapid.IntRange(1, 9).Draw(t, "points") {
			if at >= end {
				break
			}
			times = append(times, at)
			if step == 0 {
				at += rapid.SampledFrom([]int64{1, 999, 1000, 600_000}).Draw(t, "gap")
			} else {
				at += step
			}
		}
	}
	return times
}

// drawOdd draws the times of a series, which are not quite those of all.
func drawOdd(t *rapid.T, times []int64) []int64 {
	own := slices.Clone(times)
	n := len(own)
	if n == 0 {
		return own
	}
	at := rapid.IntRange(0, n-1).Draw(t, "at")
	hour := func(i int) int64 { return own[i] / 3_600_000 }
	switch rapid.SampledFrom([]string{"lacks one", "one more", "later", "earlier", "later hour", "earlier hour",
		"without an hour", "other time"}).Draw(t, "odd") {
	case "lacks one":
		return slices.Delete(own, at, at+1)
	case "one more":
		if at+1 == n || own[at+1] > own[at]+1 {
			return slices.Insert(own, at+1, own[at]+1)
		}
	case "later":
		return own[at:]
	case "earlier":
		return own[:at]
	case "later hour":
		first := hour(at)
		return slices.DeleteFunc(own, func(ms int64) bool { return ms/3_600_000 < first })
	case "earlier hour":
		last := hour(at)
		return slices.DeleteFunc(own, func(ms int64) bool { return ms/3_600_000 > last })
	case "without an hour":
		gone := hour(at)
		return slices.DeleteFunc(own, func(ms int64) bool { return ms/3_600_000 == gone })
	case "other time":
		if (at+1 == n || own[at+1] > own[at]+1) && own[at]%3_600_000 < 3_599_000 {
			own[at]++
		}
	}
	return own
}

// drawCells adds annotations, and points in cells of their own: ones that are there already, with
// the same value or, rarely, with another one.
func (a *alignedTable) drawCells(t *rapid.T, s encoding.Schema, metric encoding.UID, hours int64, sound bool) {
	for i, one := range a.all {
		tags := s.AppendTags(nil, one.Tags)
		if rapid.IntRange(0, 4).Draw(t, "note") == 0 {
			hour := alignedBase + 3600*rapid.Int64Range(0, hours-1).Draw(t, "hour")
			a.store.Cell(s.AppendRowKey(nil, metric, uint32(hour), tags),
				[]byte{encoding.PrefixAnnotation, 0, byte(i)}, fmt.Appendf(nil, "note %d", i), 2)
		}
		if n := one.Points.Len(); n > 0 && !one.Appended && rapid.IntRange(0, 4).Draw(t, "twice") == 0 {
			ms, v := one.Points.At(rapid.IntRange(0, n-1).Draw(t, "which"))
			if !sound && rapid.IntRange(0, 3).Draw(t, "other value") == 0 {
				v = encoding.IntValue(4)
			}
			q, value := operatortest.Encode(ms, v)
			a.store.Cell(s.AppendRowKey(nil, metric, encoding.KeyTime(encoding.Hour(ms/1000)), tags),
				encoding.AppendQualifier(nil, q), value, 3)
		}
	}
}

// executor returns one that cuts a plan into parts of one or two hours, or not at all.
func (a *alignedTable) executor(t *rapid.T) *dispatch.Executor {
	return a.cutBy(rapid.IntRange(1, 2).Draw(t, "slots"), rapid.Bool().Draw(t, "whole"))
}

// cutBy returns an executor that cuts the plan into parts of about equally many hours, four for
// each slot, or not at all.
func (a *alignedTable) cutBy(slots int, whole bool) *dispatch.Executor {
	e := dispatch.New(dispatch.Config{Store: a.store, Local: slots})
	if whole {
		// An executor that knows how few bytes the hours have does not cut them.
		_, _, _ = mergedBy(context.Background(), e, &a.plan, dispatch.PerSeries)
	}
	return e
}

// sameGroups compares answers to the last bit.
func sameGroups(want, got []merge.Group) string { return cmp.Diff(want, got) }

// Aligned aggregation gives the answer of per-series aggregation to the last bit, or refuses:
// whatever is odd about a series, whatever the cut.
func TestAligned_isPerSeries(t *testing.T) {
	aligned, all, parts := 0, 0, map[int]int{}
	check := func(t *rapid.T) {
		a := drawAligned(t, false)
		want, _, wantErr := mergedBy(t.Context(), a.executor(t), &a.plan, dispatch.PerSeries)
		got, stats, err := mergedBy(t.Context(), a.executor(t), &a.plan, dispatch.Auto)
		all++
		if errors.Is(err, merge.ErrOrder) {
			return
		}
		var data, wantData *operator.DataError
		if errors.As(err, &data) && errors.As(wantErr, &wantData) {
			return // which of several is found first depends on the order of parts
		}
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("error %v, per series %v", err, wantErr)
		}
		if diff := sameGroups(want, got); diff != "" {
			t.Fatalf("%s rate %v (- per series, + aligned):\n%s", a.plan.Aggregator, a.plan.Rate, diff)
		}
		if answersAligned(stats) {
			aligned++
			parts[stats.Parts]++
		}
	}
	for range 4 {
		rapid.Check(t, check)
	}
	t.Logf("%d of %d answers aligned, by parts: %v", aligned, all, parts)
	if aligned < all/20 {
		t.Errorf("%d of %d answers aligned: the test tries nothing", aligned, all)
	}
}

// Series at the same times and of one type are aggregated row by row.
func TestAligned_takes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAligned(t, true)
		want, _, wantErr := mergedBy(t.Context(), a.executor(t), &a.plan, dispatch.PerSeries)
		got, stats, err := mergedBy(t.Context(), a.executor(t), &a.plan, dispatch.Auto)
		if !answersAligned(stats) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("parts %v: %v, per series %v", stats.Trace, err, wantErr)
		}
		if diff := sameGroups(want, got); diff != "" {
			t.Fatalf("%s rate %v (- per series, + aligned):\n%s", a.plan.Aggregator, a.plan.Rate, diff)
		}
	})
}

// mergedParts executes a plan in parts of some hours each, and merges them. The modes are those of
// the parts, again and again.
func mergedParts(ctx context.Context, from *operatortest.Store, p *scanplan.Plan, hours int64,
	modes ...scanplan.Mode) ([]merge.Group, error) {
	m := merge.New(p, nil)
	defer m.Free()
	n := 0
	for at := p.From; at < p.To; at += hours * 3600 {
		mode := modes[n%len(modes)]
		n++
		r := scanplan.KeyRange{
			Start: p.HourKey(p.Ranges[0], at),
			Stop:  p.HourKey(p.Ranges[0], min(at+hours*3600, p.To)),
		}
		op, err := operator.New(from, &scanplan.Part{Plan: *p, Range: r, Mode: mode}, operator.Options{})
		if err != nil {
			return nil, err
		}
		defer op.Close()
		for {
			rec, err := op.Next(ctx)
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			err = m.Add(r, rec)
			rec.Release()
			if err != nil {
				return nil, err
			}
		}
	}
	return m.Finish()
}

// Two series that have points in some of four hours, every choice, in parts of one to four hours:
// aligned aggregation gives the answer of per-series aggregation, or refuses.
//
//fault:aligned-hole-between-parts sp.alignedSeen != n => false
func TestAligned_everyHole(t *testing.T) {
	const hours = 4
	s := encoding.DefaultSchema()
	refused := map[bool]int{}
	for choice := range 1 << (2 * hours) {
		m := &operatortest.Store{}
		for i := range 2 {
			one := operatortest.Series{Tags: []encoding.TagPair{operatortest.Tag(1, i+1)}}
			for h := range int64(hours) {
				for k := range int64(2) {
					if choice>>(int64(i)*hours+h)&1 != 0 {
						one.Points.Append((alignedBase+h*3600+k*60)*1000, encoding.IntValue(10*h+3*k+int64(100*i)))
					}
				}
			}
			m.Load(s, operatortest.UID(9), one)
		}
		for _, r := range []*scanplan.Rate{nil, {}} {
			p := operatortest.Plan(s, operatortest.UID(9), alignedBase, alignedBase+hours*3600)
			p.Rate = r
			want, err := mergedParts(t.Context(), m, &p, hours, scanplan.PerSeries)
			if err != nil {
				t.Fatal(err)
			}
			for perPart := int64(1); perPart <= hours; perPart++ {
				got, err := mergedParts(t.Context(), m, &p, perPart, scanplan.Aligned)
				refused[errors.Is(err, merge.ErrOrder)]++
				if errors.Is(err, merge.ErrOrder) {
					continue
				}
				if diff := sameGroups(want, got); diff != "" || err != nil {
					t.Fatalf("hours %08b in parts of %d, rate %v: %v (- per series, + aligned):\n%s", choice, perPart,
						r, err, diff)
				}
			}
		}
	}
	if refused[false] < refused[true]/2 {
		t.Errorf("%d answers, %d refused", refused[false], refused[true])
	}
}

// Two series whose points are integers or floats, every choice for each of three hours, in parts of
// one to three: aligned aggregation gives the answer of per-series aggregation, or refuses.
func TestAligned_everyType(t *testing.T) {
	const hours = 3
	s := encoding.DefaultSchema()
	refused := map[bool]int{}
	for choice := range 1 << (2 * hours) {
		m := &operatortest.Store{}
		for i := range 2 {
			one := operatortest.Series{Tags: []encoding.TagPair{operatortest.Tag(1, i+1)}}
			for h := range int64(hours) {
				for k := range int64(2) {
					v := encoding.IntValue(10*h + 3*k + int64(100*i))
					if choice>>(int64(i)*hours+h)&1 != 0 {
						v = encoding.FloatValue(float64(h) + 0.1*float64(k) + float64(i))
					}
					one.Points.Append((alignedBase+h*3600+k*60)*1000, v)
				}
			}
			m.Load(s, operatortest.UID(9), one)
		}
		for _, r := range []*scanplan.Rate{nil, {}} {
			p := operatortest.Plan(s, operatortest.UID(9), alignedBase, alignedBase+hours*3600)
			p.Rate = r
			want, err := mergedParts(t.Context(), m, &p, hours, scanplan.PerSeries)
			if err != nil {
				t.Fatal(err)
			}
			for perPart := int64(1); perPart <= hours; perPart++ {
				got, err := mergedParts(t.Context(), m, &p, perPart, scanplan.Aligned)
				refused[errors.Is(err, merge.ErrOrder)]++
				if errors.Is(err, merge.ErrOrder) {
					continue
				}
				if diff := sameGroups(want, got); diff != "" || err != nil {
					t.Fatalf("floats %06b in parts of %d, rate %v: %v (- per series, + aligned):\n%s", choice, perPart,
						r, err, diff)
				}
			}
		}
	}
	// All rates are floats.
	if refused[false] < 1<<(2*hours)*hours {
		t.Errorf("%d answers, %d refused", refused[false], refused[true])
	}
}

// Parts that were aggregated row by row are not mixed with others: their series cannot
// be added to groups that are finished.
func TestAligned_besideOthers(t *testing.T) {
	const hours = 3
	s, m := encoding.DefaultSchema(), &operatortest.Store{}
	for i := range 2 {
		one := operatortest.Series{Tags: []encoding.TagPair{operatortest.Tag(1, i+1)}}
		for h := range int64(hours) {
			one.Points.Append((alignedBase+h*3600)*1000, encoding.IntValue(10*h+int64(100*i)))
		}
		m.Load(s, operatortest.UID(9), one)
	}
	for _, r := range []*scanplan.Rate{nil, {}} {
		p := operatortest.Plan(s, operatortest.UID(9), alignedBase, alignedBase+hours*3600)
		p.Rate = r
		want, err := mergedParts(t.Context(), m, &p, hours, scanplan.PerSeries)
		if err != nil {
			t.Fatal(err)
		}
		for choice := range 1 << hours {
			modes := make([]scanplan.Mode, hours)
			for h := range modes {
				modes[h] = []scanplan.Mode{scanplan.PerSeries, scanplan.Aligned}[choice>>h&1]
			}
			got, err := mergedParts(t.Context(), m, &p, 1, modes...)
			if mixed := choice != 0 && choice != 1<<hours-1; mixed != errors.Is(err, merge.ErrOrder) ||
				!mixed && err != nil {
				t.Fatalf("modes %v, rate %v: error %v", modes, r, err)
			}
			if diff := sameGroups(want, got); err == nil && diff != "" {
				t.Fatalf("modes %v, rate %v (- per series, + these):\n%s", modes, r, diff)
			}
		}
	}
}
