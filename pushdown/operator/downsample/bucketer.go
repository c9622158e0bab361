// Package downsample makes one value of each time bucket of a series, and fills
// empty buckets, as OpenTSDB does. It knows neither store nor network nor clock;
// of time zones it knows the IANA database, which it carries along, so that
// answers do not depend on the machine.
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

// Bucketer downsamples series, one after the other. It keeps its memory in
// between and is for one goroutine.
type Bucketer struct {
	fn    *aggregate.Function
	fill  scanplan.Fill
	state aggregate.State

	// Points of [first, last) take part; points before are skipped as by the
	// reference's seek, which leaves no partial bucket at the head of a scan.
	first, last int64
	bucketing   bucketing

	open       bool
	start, end int64 // open bucket, ms
	times      []int64
	values     []float64
	ends       []int32 // scratch of AppendHour

	// The grid spans [gridFrom, gridTo) ms in steps of about width; see Grid.
	gridFrom, gridTo, width int64
	grid, match             []int64
	guard                   aggregate.Guard
}

// bucketing finds the bucket of a time.
type bucketing interface {
	// bounds returns the start and end of the bucket of t. Calls for one series
	// come in ascending order of t; prev is the end of the bucket before, or
	// math.MinInt64 for the first one of a series.
	bounds(t, prev int64) (start, end int64)
	// grid returns the stamps of all buckets of the scan range [from, to) in ms,
	// and the bucket starts that they stand for; about so many are to be expected.
	// It asks check every checkBuckets buckets and returns its error.
	grid(from, to int64, about int, check func() error) (stamps, starts []int64, err error)
}

// New returns a bucketer for the scan range [from, to), in seconds, of a query
// with the bounds start and end in ms. Its errors have OpenTSDB's wording.
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
	default:
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

// Points takes points of the series, ascending in time and behind all earlier
// ones: it may be called again for each stretch of the series.
func (b *Bucketer) Points(times []int64, values []float64) {
	if len(times) == 0 || times[len(times)-1] < b.first {
		return
	}
	for times[0] < b.first {
		times, values = times[1:], values[1:]
	}
	for len(times) > 0 && times[0] < b.last {
		if !b.open || times[0] >= b.end {
			b.openAt(times[0])
		}
		n := run(times, b.end)
		b.fn.Update(&b.state, values[:n])
		times, values = times[n:], values[n:]
	}
}

// run counts the leading times before end.
func run(times []int64, end int64) int {
	for i, t := range times {
		if t >= end {
			return i
		}
	}
	return len(times)
}

// AppendHour appends the buckets of one row to times and values: offsets are the
// points' ms from the row's base time, ascending, base is that time in ms. It is
// Points and Finish in one for intervals that divide the hour, where no bucket
// has points of two rows, and stands outside the series that Points feeds.
func (b *Bucketer) AppendHour(times []int64, values []float64, base int64, offsets []int32, doubles []float64) ([]int64, []float64) {
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

// sizeOf counts the leading offsets before end; guess is how many there may be.
func sizeOf(offsets []int32, end int32, guess int) int {
	if guess > 0 && guess <= len(offsets) && offsets[guess-1] < end && (guess == len(offsets) || offsets[guess] >= end) {
		return guess
	}
	for i, o := range offsets {
		if o >= end {
			return i
		}
	}
	return len(offsets)
}

// Buckets takes whole buckets that another bucketer of the same plan computed:
// starts and values, ascending and behind all earlier points. It closes the open
// bucket. Calendar buckets have the phase of their series' first point, so those
// of a series are either all computed elsewhere or none.
func (b *Bucketer) Buckets(times []int64, values []float64) {
	if len(times) == 0 {
		return
	}
	b.close()
	b.times = append(b.times, times...)
	b.values = append(b.values, values...)
	b.end = math.MinInt64
}

// Held is the memory that the series' buckets take, in bytes.
func (b *Bucketer) Held() int64 { return int64(cap(b.times)+cap(b.values))*8 + b.state.Bytes() }

// Finish closes the last bucket and returns the stamps and values of all buckets
// of the series that have points. They are views, valid until Reset.
func (b *Bucketer) Finish() (times []int64, values []float64) {
	b.close()
	return b.times, b.values
}

// BucketStart is the start of the bucket that a time falls into, for buckets
// that lie the same for every series: fixed intervals, and the whole query.
func (b *Bucketer) BucketStart(ms int64) int64 {
	start, _ := b.bucketing.bounds(ms, math.MinInt64)
	return start
}

// openAt closes the open bucket and opens that of time t.
func (b *Bucketer) openAt(t int64) {
	b.close()
	b.start, b.end = b.bucketing.bounds(t, b.end)
	b.open = true
}

func (b *Bucketer) close() {
	if b.open {
		b.times = append(b.times, b.start)
		b.values = append(b.values, b.fn.Value(&b.state))
		b.fn.Reset(&b.state)
		b.open = false
	}
}
