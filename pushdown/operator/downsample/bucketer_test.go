package downsample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/aggregate/guardtest"
)

// names are all functions that a bucket may have.
func names() (out []string) {
	for _, n := range aggregate.Names() {
		if n != "none" {
			out = append(out, n)
		}
	}
	return out
}

// naive buckets one series by a map, with a fixed interval.
func naive(t *rapid.T, function string, interval, from int64, times []int64,
	values []float64) (outTimes []int64, outValues []float64) {
	fn, ok := aggregate.Lookup(scanplan.Aggregator(function))
	if !ok {
		t.Fatalf("no function %s", function)
	}
	buckets := map[int64][]float64{}
	for i, ms := range times {
		start := ms / interval * interval
		if start < from*1000 { // the bucket begins before the scan and is dropped
			continue
		}
		if buckets[start] == nil {
			outTimes = append(outTimes, start)
		}
		buckets[start] = append(buckets[start], values[i])
	}
	for _, start := range outTimes {
		var s aggregate.State
		fn.Reset(&s)
		fn.Update(&s, buckets[start])
		outValues = append(outValues, fn.Value(&s))
	}
	return outTimes, outValues
}

// text is columns for comparison, NaN equal to NaN, 0.0 not to -0.0.
func text(times []int64, values []float64) string {
	var b strings.Builder
	for i, v := range values {
		fmt.Fprintf(&b, "%d=%v/%x ", times[i], v, math.Float64bits(v+0))
	}
	return strings.ReplaceAll(b.String(), fmt.Sprintf("%x", math.Float64bits(math.NaN())), "nan")
}

func drawSeries(t *rapid.T, begin int64) (times []int64, values []float64) {
	ms := begin
	for range rapid.IntRange(0, 60).Draw(t, "points") {
		ms += rapid.SampledFrom([]int64{1, 250, 1000, 10_000, 60_000, 700_000}).Draw(t, "gap")
		times = append(times, ms)
		values = append(values, rapid.OneOf(rapid.Float64Range(-100, 100), rapid.Just(math.NaN())).Draw(t, "value"))
	}
	return times, values
}

var fixedIntervals = []int64{500, 1000, 7000, 10_000, 60_000, 90_000, 420_000, 3_600_000, 5_400_000, 86_400_000}

// TestFixedEqualsNaive: a bucketer makes the buckets that naive makes of a series that it gets in
// pieces, some of them as whole buckets that another bucketer made; and so of a second series.
func TestFixedEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &scanplan.Downsample{Interval: rapid.SampledFrom(fixedIntervals).Draw(t, "interval"),
			Function: scanplan.Aggregator(rapid.SampledFrom(names()).Draw(t, "function"))}
		from := int64(3600 * 100)
		b, err := New(d, from, from+7200, from*1000, from*1000+7_200_000)
		if err != nil {
			t.Fatal(err)
		}
		elsewhere, _ := New(d, from, from+7200, 0, 0)
		for range 2 {
			times, values := drawSeries(t, from*1000-1)
			b.Reset()
			for at := 0; at < len(times); {
				end := rapid.IntRange(at+1, len(times)).Draw(t, "end")
				if rapid.Bool().Draw(t, "buckets") && wholeBuckets(d.Interval, times, at, end) {
					elsewhere.Reset()
					elsewhere.Points(times[at:end], values[at:end])
					b.Buckets(elsewhere.Finish())
				} else {
					b.Points(times[at:end], values[at:end])
				}
				at = end
			}
			wantTimes, want := naive(t, string(d.Function), d.Interval, from, times, values)
			gotTimes, got := b.Finish()
			if diff := cmp.Diff(text(wantTimes, want), text(gotTimes, got)); diff != "" {
				t.Fatalf("%s: want -, got +: %s", d, diff)
			}
		}
	})
}

// wholeBuckets reports whether the points [at, end) share no bucket with points before or after.
func wholeBuckets(interval int64, times []int64, at, end int) bool {
	return (at == 0 || times[at-1]/interval < times[at]/interval) &&
		(end == len(times) || times[end-1]/interval < times[end]/interval)
}

// TestWholeQuery: a bucket for the whole query has the points from its start on and before its
// end, and the time of the start.
func TestWholeQuery(t *testing.T) {
	b, err := New(&scanplan.Downsample{All: true, Function: "sum", Fill: scanplan.FillZero}, 0, 7200, 1500, 4000)
	if err != nil {
		t.Fatal(err)
	}
	f := func(want string, times ...int64) {
		t.Helper()
		b.Reset()
		for _, ms := range times {
			b.Points([]int64{ms}, []float64{1})
		}
		if got := text(b.Finish()); got != want {
			t.Errorf("points at %v: got %s, want %s", times, got, want)
		}
	}
	f(text([]int64{1500}, []float64{2}), 1499, 1500, 3999, 4000, 5000)
	f("", 1499, 4000)
	f("")
	if grid, err := b.Grid(); b.Fills() || grid != nil || err != nil {
		t.Error("want one bucket of the whole query not to be filled and to have no grid")
	}
}

func TestNewErrors(t *testing.T) {
	f := func(want string, d scanplan.Downsample) {
		t.Helper()
		_, err := New(&d, 0, 3600, 0, 3_600_000)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	f("No such downsampling function: SUM", scanplan.Downsample{Function: "SUM", Interval: 1})
	f("cannot use the NONE aggregator for downsampling", scanplan.Downsample{Function: "none", Interval: 1})
	f("downsample: interval 0 ms", scanplan.Downsample{Function: "sum"})
	f("unhandled fill policy", scanplan.Downsample{Function: "sum", Interval: 1, Fill: "scalar"})
	f("The timezone specification could not be found",
		scanplan.Downsample{Function: "sum", Interval: 1, Calendar: true, Count: 1, Unit: "h", Zone: "Mars/Base"})
	f("downsample: calendar unit \"q\"",
		scanplan.Downsample{Function: "sum", Interval: 1, Calendar: true, Count: 1, Unit: "q"})
	f("downsample: 0 calendar units", scanplan.Downsample{Function: "sum", Interval: 1, Calendar: true, Unit: "h"})
}

// TestGridOfIntervalAcrossTheScanStart: if the interval, as 7 minutes, does not divide
// the scan's start, the grid begins with the bucket that begins before it, which stays
// empty.
func TestGridOfIntervalAcrossTheScanStart(t *testing.T) {
	b, err := New(&scanplan.Downsample{Interval: 420_000, Function: "sum", Fill: scanplan.FillNaN}, 3600, 7200, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	grid, err := b.Grid()
	if err != nil {
		t.Fatal(err)
	}
	fill := func(times []int64, values []float64) []float64 {
		out, err := b.Fill(nil, times, values)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if grid[0] != 3_360_000 || grid[len(grid)-1] != 6_720_000 || len(grid) != 9 || b.GridLen() < 9 {
		t.Errorf("got grid %v, length %d, want 9 buckets from 3360000 to 6720000 and a length of at least 9", grid,
			b.GridLen())
	}
	b.Points([]int64{3_600_000, 3_780_000}, []float64{1, 2}) // the first in a bucket that begins before the scan
	times, values := b.Finish()
	got := text(grid[:3], fill(times, values)[:3])
	if want := text(grid[:3], []float64{math.NaN(), 2, math.NaN()}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBucketStart(t *testing.T) {
	b, err := New(&scanplan.Downsample{Interval: 300_000, Function: "avg"}, 0, 3600, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for ms, want := range map[int64]int64{0: 0, 299_999: 0, 300_000: 300_000, 899_999: 600_000} {
		if got := b.BucketStart(ms); got != want {
			t.Errorf("bucket of %d: got %d, want %d", ms, got, want)
		}
	}
}

// TestCalendarBuckets: points every 15 minutes make calendar buckets that begin at the listed
// local times.
func TestCalendarBuckets(t *testing.T) {
	f := func(zone string, n int, unit, first, last string, want ...string) {
		t.Helper()
		d := &scanplan.Downsample{
			Interval: 1,
			Calendar: true,
			Count:    n,
			Unit:     unit,
			Zone:     zone,
			Function: "count",
			Fill:     scanplan.FillNone,
		}
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		at := func(s string) int64 {
			v, err := time.ParseInLocation("2006-01-02 15:04", s, loc)
			if err != nil {
				t.Fatal(err)
			}
			return v.UnixMilli()
		}
		b, err := New(d, 0, 1<<31, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for ms := at(first); ms <= at(last); ms += 900_000 {
			b.Points([]int64{ms}, []float64{1})
		}
		times, _ := b.Finish()
		var got []string
		for _, ms := range times {
			got = append(got, time.UnixMilli(ms).In(loc).Format("2006-01-02 15:04"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d%s in %s: %s", n, unit, zone, diff)
		}
	}
	f("UTC", 1, "d", "2013-03-09 13:00", "2013-03-11 01:00", "2013-03-09 00:00", "2013-03-10 00:00", "2013-03-11 00:00")
	// A day of 23 hours, and one of 25.
	f("America/New_York", 1, "d", "2013-03-09 13:00", "2013-03-11 01:00", "2013-03-09 00:00", "2013-03-10 00:00",
		"2013-03-11 00:00")
	f("Europe/Berlin", 1, "d", "2013-10-27 00:00", "2013-10-28 01:00", "2013-10-27 00:00", "2013-10-28 00:00")
	// Midnight is skipped on the 20th; the days after begin at 01:00 too.
	f("America/Sao_Paulo", 1, "d", "2013-10-18 12:00", "2013-10-22 02:00", "2013-10-18 00:00", "2013-10-19 00:00",
		"2013-10-20 01:00", "2013-10-21 01:00", "2013-10-22 01:00")
	f("America/Sao_Paulo", 1, "d", "2013-10-21 12:00", "2013-10-22 02:00", "2013-10-21 01:00", "2013-10-22 01:00")
	// Midnight is skipped on the second: a first point at the first moment of the month is where its bucket begins.
	// A month later days are counted from that one's own begin.
	f("America/Sao_Paulo", 1, "d", "2004-11-01 00:00", "2004-11-01 01:00", "2004-11-01 00:00")
	f("America/Sao_Paulo", 1, "d", "2004-12-01 12:00", "2004-12-01 12:00", "2004-12-01 00:00")
	// Hours that divide the day are counted from its begin, also after clocks were set forward.
	f("Europe/Berlin", 2, "h", "2013-04-01 01:00", "2013-04-01 02:00", "2013-04-01 00:00", "2013-04-01 02:00")
	// Clocks go back by half an hour, from 02:00 to 01:30.
	f("Australia/Lord_Howe", 1, "h", "2013-04-07 00:30", "2013-04-07 03:30", "2013-04-07 00:00", "2013-04-07 01:00",
		"2013-04-07 01:30", "2013-04-07 02:30", "2013-04-07 03:30")
	f("Asia/Kathmandu", 6, "h", "2013-03-10 05:00", "2013-03-10 13:00", "2013-03-10 00:00", "2013-03-10 06:00",
		"2013-03-10 12:00")
	f("UTC", 1, "w", "2013-03-13 00:00", "2013-03-17 01:00", "2013-03-10 00:00", "2013-03-17 00:00")
	// Two weeks are found without steps from January, which would come through a Sunday without midnight.
	f("America/Sao_Paulo", 2, "w", "2017-12-13 00:00", "2017-12-25 00:00", "2017-12-10 00:00", "2017-12-24 00:00")
	f("America/Sao_Paulo", 3, "w", "2017-12-13 00:00", "2017-12-13 00:00", "2017-12-10 01:00")
	// Weeks are counted from that of January with the same number. In 1974 clocks skipped midnight on the 13th of
	// January.
	f("America/Montevideo", 3, "w", "1974-02-15 00:00", "1974-02-15 00:00", "1974-02-10 01:30")
	// The hour before three is skipped, so that the hour of three begins with the change.
	f("America/New_York", 15, "m", "2013-03-10 03:00", "2013-03-10 03:15", "2013-03-10 03:00", "2013-03-10 03:15")
	f("UTC", 3, "w", "2013-03-13 00:00", "2013-03-31 01:00", "2013-03-10 00:00", "2013-03-31 00:00")
	// Of several days, too, buckets are counted from the begin of the year.
	f("UTC", 3, "d", "2013-02-14 00:00", "2013-02-15 00:00", "2013-02-12 00:00", "2013-02-15 00:00")
	f("UTC", 1, "n", "2013-01-31 00:00", "2013-03-01 00:00", "2013-01-01 00:00", "2013-02-01 00:00", "2013-03-01 00:00")
	f("UTC", 5, "n", "2013-11-30 00:00", "2014-04-01 00:00", "2013-11-01 00:00", "2014-04-01 00:00")
	f("UTC", 1, "y", "2013-12-31 00:00", "2014-01-01 00:00", "2013-01-01 00:00", "2014-01-01 00:00")
	// 7 hours do not divide the day: buckets are counted from the first of the month of the first
	// point, also into the next month.
	f("UTC", 7, "h", "2013-03-31 20:00", "2013-04-01 09:00", "2013-03-31 15:00", "2013-03-31 22:00", "2013-04-01 05:00")
	f("UTC", 90, "m", "2013-03-31 23:00", "2013-04-01 01:00", "2013-03-31 22:30", "2013-04-01 00:00")
	f("UTC", 7, "m", "2013-03-31 01:00", "2013-03-31 01:15", "2013-03-31 00:56", "2013-03-31 01:10")
}

// A series with gaps has its points in the buckets that they have in one without, also where a point is the first
// moment of a bucket after some that are empty.
func TestCalendar_gaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &scanplan.Downsample{Calendar: true, Interval: 1, Function: "count", Fill: scanplan.FillNone,
			Unit:  rapid.SampledFrom([]string{"h", "d", "w", "n"}).Draw(t, "unit"),
			Count: rapid.IntRange(1, 3).Draw(t, "count"),
			Zone:  rapid.SampledFrom([]string{"UTC", "America/Sao_Paulo", "Europe/Berlin"}).Draw(t, "zone")}
		starts := func(points []int64) []int64 {
			b, err := New(d, 0, 1<<31, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, ms := range points {
				b.Points([]int64{ms}, []float64{1})
			}
			times, _ := b.Finish()
			return times
		}
		const every = 3_600_000
		dense := []int64{rapid.Int64Range(374_000, 378_000).Draw(t, "first hour") * every}
		for range 24 * 100 {
			dense = append(dense, dense[len(dense)-1]+every)
		}
		all := starts(dense)
		points, want := dense[:1:1], all[:1:1]
		for i, start := range all[1:] {
			if rapid.Bool().Draw(t, "empty") {
				continue
			}
			want = append(want, start)
			if rapid.Bool().Draw(t, "at its start") {
				points = append(points, start)
			} else if i+2 < len(all) {
				points = append(points, all[i+2]-1)
			} else {
				points = append(points, start+1)
			}
		}
		if diff := cmp.Diff(want, starts(points)); diff != "" {
			t.Errorf("%d%s in %s: points at %d: want -, got +: %s", d.Count, d.Unit, d.Zone, points, diff)
		}
	})
}

// In UTC, calendar buckets of a length that divides the day are those of the fixed interval: where
// the reading of a series begins, and the grid, whose memory is reserved.
func TestCalendar_equalsFixed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]scanplan.Downsample{{Unit: "ms", Count: 250, Interval: 250},
			{Unit: "s", Count: 15, Interval: 15_000},
			{Unit: "m", Count: 30, Interval: 1_800_000}, {Unit: "h", Count: 6, Interval: 21_600_000},
			{Unit: "d", Count: 1, Interval: 86_400_000}}).Draw(t, "of")
		d.Function, d.Fill = "sum", scanplan.FillNaN
		from := rapid.Int64Range(0, 1<<31).Draw(t, "from")
		if rapid.Bool().Draw(t, "from the start of a bucket") {
			from -= from % max(1, d.Interval/1000)
		}
		to := from + max(1, d.Interval*rapid.Int64Range(1, 40).Draw(t, "buckets")/1000)
		var firsts [2]int64
		var grids [2][]int64
		for i := range grids {
			d.Calendar = i == 1
			b, err := New(&d, from, to, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			guard := &guardtest.Guard{}
			b.Guarded(guard)
			firsts[i] = b.first
			if grids[i], err = b.Grid(); err != nil || guard.Reserved < gridBytes*int64(len(grids[i])) {
				t.Errorf("reserved %d bytes for %d buckets, error %v", guard.Reserved, len(grids[i]), err)
			}
		}
		if diff := cmp.Diff(grids[0], grids[1]); diff != "" || firsts[0] != firsts[1] {
			t.Errorf("%d%s from %d to %d: first %d and %d, grid fixed -, calendar +: %s", d.Count, d.Unit, from, to,
				firsts[0], firsts[1], diff)
		}
	})
}

// Whichever call of the guard fails, Grid and Fill end with its error. Not many buckets come between
// two checks.
func TestFill_guard(t *testing.T) {
	const buckets = 3 * checkBuckets
	for _, d := range []scanplan.Downsample{{Interval: 1000}, {Calendar: true, Unit: "s", Count: 1, Interval: 1000}} {
		d.Function, d.Fill = "sum", scanplan.FillZero
		guard := guardtest.EachCall(t, func(guard *guardtest.Guard) error {
			b, err := New(&d, 0, buckets, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			b.Guarded(guard)
			if _, err := b.Grid(); err != nil {
				return err
			}
			_, err = b.Fill(nil, nil, nil)
			return err
		})
		if guard.Checks < 2*3 || guard.Checks > 2*5 {
			t.Errorf("calendar %t: %d checks for two times %d buckets, want one for %d", d.Calendar, guard.Checks,
				buckets, checkBuckets)
		}
	}
}

// Where midnight comes twice, as in the Azores on 2025-10-26, a week begins at the
// first of the two for all series except those whose first point comes after the
// second, and no point is lost. Weeks that follow begin together.
func TestCalendar_midnightTwice(t *testing.T) {
	c, err := newCalendar(&scanplan.Downsample{
		Count:    1,
		Unit:     "w",
		Zone:     "Atlantic/Azores",
		Calendar: true,
		Interval: 7 * 86_400_000,
	})
	if err != nil {
		t.Fatal(err)
	}
	const first, second, next = 1761436800_000, 1761440400_000, 1762045200_000
	for _, test := range []struct{ at, prev, want int64 }{
		{first + 1800_000, math.MinInt64, first},                // begins between them
		{first + 1800_000, first, first},                        // has begun a week before
		{second, math.MinInt64, second}, {second, first, first}, // at the second
		{next - 1, math.MinInt64, second}, {next - 1, first, first}, // at the week's end
	} {
		if start, end := c.bounds(test.at, test.prev); start != test.want || end != next {
			t.Errorf("point at %d, bucket before ends at %d: got %d to %d, want %d to %d", test.at, test.prev, start,
				end, test.want, int64(next))
		}
	}
}

// A grid is made once; a plan that does not fill has none.
func TestGrid_once(t *testing.T) {
	for fill, want := range map[scanplan.Fill]int{scanplan.FillZero: 4, scanplan.FillNone: 0} {
		b, err := New(&scanplan.Downsample{Interval: 1000, Function: "sum", Fill: fill}, 0, 4, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		var guard guardtest.Guard
		b.Guarded(&guard)
		for range 2 {
			if grid, err := b.Grid(); len(grid) != want || err != nil {
				t.Errorf("fill %q: %v, %v, want %d buckets", fill, grid, err, want)
			}
		}
		if most := (b.gridTo - b.gridFrom) / b.width * 3 / 2 * gridBytes; guard.Reserved > most {
			t.Errorf("fill %q: %d bytes were reserved, want %d at most", fill, guard.Reserved, most)
		}
	}
}

// No buckets of another bucketer leave the open one as it is.
func TestBuckets_none(t *testing.T) {
	b, err := New(&scanplan.Downsample{Interval: 1000, Function: "sum"}, 0, 4, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.Points([]int64{1000}, []float64{1})
	b.Buckets(nil, nil)
	b.Points([]int64{1001}, []float64{2})
	if got := text(b.Finish()); got != text([]int64{1000}, []float64{3}) {
		t.Errorf("got %s, want one bucket with both points", got)
	}
}

// In a zone whose clocks have never changed before a time, the search for a change ends.
func TestWallClock_first(t *testing.T) {
	c := wallClock{time.UTC}
	if got := c.instant(wallTime{year: -5, month: 1, day: 1}); time.UnixMilli(got).UTC().Year() != -5 {
		t.Errorf("got %d, want the begin of the year -5", got)
	}
}

// TestFillOfAnotherPhase: Fill drops buckets whose times are not on the grid.
func TestFillOfAnotherPhase(t *testing.T) {
	b, err := New(&scanplan.Downsample{Interval: 1000, Function: "sum", Fill: scanplan.FillZero}, 0, 4, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Fill(nil, []int64{500, 1000, 1500, 3000}, []float64{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{0, 2, 0, 4}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestAppendHour: AppendHour makes of a row the buckets that Points makes of it, whether its
// points are at equal distances or not.
func TestAppendHour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &scanplan.Downsample{
			Interval: rapid.SampledFrom([]int64{500, 1000, 60_000, 300_000, 3_600_000}).Draw(t, "interval"),
			Function: scanplan.Aggregator(rapid.SampledFrom(names()).Draw(t, "function")),
		}
		b, err := New(d, 3600, 7200, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time with the memory of the first
			var offsets []int32
			var times []int64
			var values []float64
			step := rapid.Int32Range(1, 60_000).Draw(t, "step")
			for at := rapid.Int32Range(0, 100_000).Draw(t, "first"); at < 3_600_000 && len(offsets) < 200; {
				offsets, times = append(offsets, at), append(times, 3_600_000+int64(at))
				values = append(values, rapid.Float64Range(-100, 100).Draw(t, "value"))
				if at += step; rapid.IntRange(0, 20).Draw(t, "jump") == 0 {
					at += rapid.Int32Range(0, 900_000).Draw(t, "by")
				}
			}
			gotTimes, got := b.AppendHour(nil, nil, 3_600_000, offsets, values)
			b.Reset()
			b.Points(times, values)
			wantTimes, want := b.Finish()
			if diff := cmp.Diff(text(wantTimes, want), text(gotTimes, got)); diff != "" {
				t.Fatalf("%s: want -, got +: %s", d, diff)
			}
		}
	})
}

// TestAppendEven: AppendEven makes of points at equal distances the buckets that AppendHour makes
// of the same points.
func TestAppendEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &scanplan.Downsample{
			Interval: rapid.SampledFrom([]int64{500, 1000, 60_000, 300_000, 3_600_000}).Draw(t, "interval"),
			Function: scanplan.Aggregator(rapid.SampledFrom(names()).Draw(t, "function")),
		}
		b, err := New(d, 3600, 7200, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		sealed := rapid.Bool().Draw(t, "sealed")
		if !b.TakesEvenlySpaced(sealed) {
			return
		}
		var entries []byte
		first, step := rapid.IntRange(0, 1800).Draw(t, "first"), rapid.IntRange(1, 1799).Draw(t, "step")
		wide := rapid.SampledFrom([]int{0, 200, 40_000}).Draw(t, "at least")
		until := rapid.IntRange(first+step+1, 3600).Draw(t, "until")
		for at := first; at < until; at += step {
			value := encoding.AppendInt(nil, int64(wide+rapid.IntRange(0, 100).Draw(t, "value")))
			entries = encoding.AppendEntry(entries, encoding.Qualifier{OffsetMS: int32(at) * 1000, Width: len(value)},
				value)
		}
		if s := new(encoding.Sealer); sealed {
			if entries, ok := s.Seal(nil, entries); ok {
				checkEven(t, b, d, entries)
				return
			}
		}
		checkEven(t, b, d, entries)
	})
}

func checkEven(t *rapid.T, b *Bucketer, d *scanplan.Downsample, entries []byte) {
	var row, other encoding.RowDecoder
	even, ok := row.OnlyEvenlySpaced(encoding.AppendColumn, entries)
	offsets, values, plain := other.OnlyCell(encoding.AppendColumn, entries, nil)
	if !ok || !plain {
		t.Fatalf("even: %t, plain: %t: % X", ok, plain, entries)
	}
	var times []int64
	for _, offset := range offsets {
		times = append(times, 3_600_000+int64(offset))
	}
	for range 2 { // the second time with the memory of the first, and after points by themselves
		gotTimes, got := b.AppendEvenlySpaced([]int64{1}, []float64{1}, 3_600_000, &even)
		b.Points(times, values)
		wantTimes, want := b.Finish()
		if diff := cmp.Diff(text(wantTimes, want), text(gotTimes[1:], got[1:])); diff != "" {
			t.Fatalf("%s: points by themselves -, evenly spaced +: %s", d, diff)
		}
		b.Reset()
		wantTimes, want = b.AppendHour([]int64{1}, []float64{1}, 3_600_000, offsets, values)
		if diff := cmp.Diff(text(wantTimes, want), text(gotTimes, got)); diff != "" {
			t.Fatalf("%s: want -, got +: %s", d, diff)
		}
	}
}

// Place gives each time the bucket in which Points counts its value. The scan begins on
// 2013-03-31, the day on which clocks in Berlin go forward.
func TestBucketer_place(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 5))
	for range 400 {
		from := int64(1_364_700_000 - 1_364_700_000%3600)
		to := from + 48*3600
		d := &scanplan.Downsample{Function: "count", Interval: []int64{60_000, 300_000, 420_000, 7_200_000}[r.IntN(4)]}
		switch r.IntN(3) {
		case 0:
			d = &scanplan.Downsample{
				Function: "count",
				Interval: 3_600_000,
				Count:    1 + r.IntN(7),
				Unit:     []string{"m", "h", "d"}[r.IntN(3)],
				Calendar: true,
				Zone:     "Europe/Berlin",
			}
		case 1:
			d = &scanplan.Downsample{Function: "count", All: true}
		}
		start, end := from*1000+1_800_000, to*1000-3_000_000
		whole, err := New(d, from, to, start, end)
		if err != nil {
			t.Fatal(err)
		}
		single, _ := New(d, from, to, start, end)

		var times []int64
		for at := from * 1000; at < to*1000; at += 1 + r.Int64N(3_000_000) {
			times = append(times, at)
		}
		times = append(times, start-1, start, end-1, end)
		slices.Sort(times)
		times = slices.Compact(times)
		whole.Points(times, make([]float64, len(times)))
		starts, counts := whole.Finish()
		want := map[int64]float64{}
		for i, s := range starts {
			want[s] = counts[i]
		}
		got := map[int64]float64{}
		for _, at := range times {
			if s, ok := single.Place(at); ok {
				got[s]++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d, %v: want -, got +: %s", seed, d, diff)
		}
	}
}
