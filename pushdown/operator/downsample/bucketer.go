// Package downsample computes one value for each time bucket of a series, and fills
// empty buckets, as OpenTSDB does. It knows no store, network or clock. It includes the
// IANA database of time zones, so that answers do not depend on the machine.
//
// Results are doubles, whatever the points were. Source: net.opentsdb.core
// Downsampler, FillingDownsampler, DownsamplingSpecification.
package downsample

import (
	"errors"
	"fmt"
	"math"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// Bucketer downsamples series, one after the other. Its memory is used again from
// series to series. It is for one goroutine.
type Bucketer struct {
	fn    *aggregate.Function
	fill  scanplan.Fill
	state aggregate.State

	// Points outside [first, last) are ignored. OpenTSDB seeks to first, so that the
	// scan does not begin with a bucket that is cut.
	first, last int64
	bucketing   bucketing

	open       bool  // there is a bucket to which points can be added
	start, end int64 // of that bucket, or of the last one; ms
	times      []int64
	values     []float64
	ends       []int32 // scratch of AppendHour

	// The grid covers [gridFrom, gridTo), in ms, in steps of about width; see Grid.
	gridFrom, gridTo, width int64
	grid, gridStarts        []int64
	guard                   aggregate.Guard
}

// bucketing is where buckets are. All times are in ms.
type bucketing interface {
	// bounds returns the start and end of the bucket of t. For one series t ascends
	// from call to call; prev is the end of the bucket before, or math.MinInt64 for the
	// first bucket of the series.
	bounds(t, prev int64) (start, end int64)
	// grid returns the stamps of all buckets of the scan range [from, to), and the
	// bucket starts that they stand for; about is the expected number. It calls check
	// every checkBuckets buckets and returns its error.
	grid(from, to int64, about int, check func() error) (stamps, starts []int64, err error)
}

// New returns a bucketer for a query with the scan range [from, to), in seconds, and
// the bounds start and end, in ms. Its errors have OpenTSDB's wording.
func New(d *scanplan.Downsample, from, to, start, end int64) (*Bucketer, error) {
	fn, ok := aggregate.Lookup(d.Function)
	if !ok {
		return nil, fmt.Errorf("No such downsampling function: %s", d.Function)
	}
	if fn.Identity() {
		return nil, errors.New("cannot use the NONE aggregator for downsampling")
	}

	b := &Bucketer{fn: fn, fill: d.Fill, last: math.MaxInt64, guard: aggregate.Unguarded{}}
	b.Reset()

	switch {
	case d.All:
		// Unlike elsewhere end is exclusive, see whole. The bucket is never filled, so that any
		// fill policy will do.
		b.bucketing, b.first, b.last = whole{start, end}, start, end
		return b, nil
	case d.Interval <= 0:
		return nil, fmt.Errorf("downsample: interval %d ms, want more than 0", d.Interval)
	case d.Calendar:
		c, err := newCalendar(d)
		if err != nil {
			return nil, err
		}
		b.bucketing, b.first = c, c.seek(from*1000)
	default: // the first bucket that begins inside the scan range
		f := fixed(d.Interval)
		b.bucketing, b.first = f, f.floor(from*1000+d.Interval-1)
	}

	b.gridFrom, b.gridTo, b.width = from*1000, to*1000, d.Interval
	return b, checkFill(d.Fill)
}

// Reset begins the next series.
func (b *Bucketer) Reset() {
	b.open, b.end = false, math.MinInt64
	b.times, b.values = b.times[:0], b.values[:0]
	b.fn.Reset(&b.state)
}

// Points adds points of the series, which ascend in time and come after all earlier
// ones. It may be called any number of times for a series. Points before the first whole
// bucket are ignored, and those from the query's end on if it is one bucket.
func (b *Bucketer) Points(times []int64, values []float64) {
	if len(times) == 0 || times[len(times)-1] < b.first {
		return
	}

	for times[0] < b.first {
		times, values = times[1:], values[1:]
	}

	for len(times) > 0 && times[0] < b.last {
		if times[0] >= b.end { // of a bucketer without an open bucket too: it has no end
			b.openAt(times[0])
		}

		// The points up to the bucket's end are added in one call.
		n := countBefore(times, b.end)
		b.fn.Update(&b.state, values[:n])
		times, values = times[n:], values[n:]
	}
}

// countBefore returns the number of leading times before end.
func countBefore(times []int64, end int64) int {
	for i, t := range times {
		if t >= end {
			return i
		}
	}
	return len(times)
}

// AppendHour appends the buckets of one row to times and values. base is the row's base
// time and offsets are the times of its points from there, ascending, all in ms. It
// replaces Points and Finish for intervals that divide the hour, for which no bucket has
// points of two rows. No bucket may be open: AppendHour uses the same state.
func (b *Bucketer) AppendHour(times []int64, values []float64, base int64, offsets []int32,
	doubles []float64) ([]int64, []float64) {
	width, size := int32(b.width), 0
	b.ends = b.ends[:0]

	for i := 0; i < len(offsets); i += size {
		start := offsets[i] - offsets[i]%width
		size = sizeOf(offsets[i:], start+width, size)
		times = append(times, base+int64(start))
		b.ends = append(b.ends, int32(i+size))
	}

	return times, b.fn.Buckets(&b.state, values, doubles, b.ends)
}

// sizeOf returns the number of leading offsets before end. guess is tried first: usually a bucket
// has as many points as the one before it.
func sizeOf(offsets []int32, end int32, guess int) int {
	if guess > 0 && guess <= len(offsets) && offsets[guess-1] < end &&
		(guess == len(offsets) || offsets[guess] >= end) {
		return guess
	}

	for i, o := range offsets {
		if o >= end {
			return i
		}
	}
	return len(offsets)
}

// Buckets adds whole buckets that another bucketer of the same plan has computed: their
// starts and values, ascending and after all earlier points. It closes the open bucket.
// The place of calendar buckets depends on the first point of their series, so for a
// series either all of them are added or none.
func (b *Bucketer) Buckets(times []int64, values []float64) {
	if len(times) == 0 {
		return
	}

	b.close()
	b.times = append(b.times, times...)
	b.values = append(b.values, values...)
	b.end = math.MinInt64 // the end of the last one is unknown: the next is searched
}

// Held is the bytes of memory that the series' buckets take.
func (b *Bucketer) Held() int64 { return int64(cap(b.times)+cap(b.values))*8 + b.state.Bytes() }

// Finish closes the last bucket and returns the starts and values of all buckets of
// the series that have points. They are valid until Reset.
func (b *Bucketer) Finish() (times []int64, values []float64) {
	b.close()
	return b.times, b.values
}

// BucketStart returns the start of the bucket of a time. Buckets must not depend on the
// series: they have a fixed width, or there is one for the whole query.
func (b *Bucketer) BucketStart(ms int64) int64 {
	start, _ := b.bucketing.bounds(ms, math.MinInt64)
	return start
}

// Place returns the start of the bucket of a time of the series, for callers that add
// up the buckets themselves; ok is false for a time outside all buckets. The times of a
// series ascend from call to call, unless buckets do not depend on the series.
func (b *Bucketer) Place(ms int64) (start int64, ok bool) {
	if ms < b.first || ms >= b.last {
		return 0, false
	}
	switch {
	case ms >= b.end:
		b.start, b.end = b.bucketing.bounds(ms, b.end)
	// A time that goes back: these buckets do not depend on the series.
	case ms < b.start:
		b.start, b.end = b.bucketing.bounds(ms, math.MinInt64)
	}
	return b.start, true
}

// openAt closes the open bucket and opens that of time t.
func (b *Bucketer) openAt(t int64) {
	b.close()
	b.start, b.end = b.bucketing.bounds(t, b.end)
	b.open = true
}

// close adds the value of the open bucket, if there is one.
func (b *Bucketer) close() {
	if b.open {
		b.times = append(b.times, b.start)
		b.values = append(b.values, b.fn.Value(&b.state))
		b.fn.Reset(&b.state)
		b.open = false
	}
}
