package aggregate

import (
	"unsafe"

	"downpour/encoding/scanplan"
)

// Aligned aggregates a group whose members all have points at the same times: there is no
// gap to interpolate, and each time has the values of all members in span order, as in
// Group.Aggregate. Values are added column by column, and all of them are integers, or all
// doubles. The zero Aligned has no function; Reset gives it one. It is for one goroutine.
type Aligned struct {
	f       *Function
	floats  bool
	columns columns
	size    int
}

// Aligns reports whether Aligned can compute f: it keeps no values, and aggregates some.
func (f *Function) Aligns() bool { return f.Class != Holistic && !f.identity }

// Reset begins the aggregation of size times by a function that Aligns. floats is set if values are
// doubles.
func (a *Aligned) Reset(f *Function, floats bool, size int) {
	a.f, a.floats, a.size = f, floats, size
	if floats {
		f.double.reset(&a.columns, size)
	} else {
		f.long.reset(&a.columns, size)
	}
}

// Add adds the values of the next member in span order: encoding.Value.Bits, of integers or of
// doubles as set by Reset, one for each time.
func (a *Aligned) Add(bits []uint64) {
	if a.floats {
		a.f.double.add(&a.columns, 0, doublesOf(bits))
	} else {
		a.f.long.add(&a.columns, 0, signed(bits))
	}
}

// AddDoubles is Add for columns of doubles.
func (a *Aligned) AddDoubles(values []float64) { a.f.double.add(&a.columns, 0, values) }

// Finish fills bits, one for each time, with the results. At least one member was added.
func (a *Aligned) Finish(bits []uint64) {
	if a.floats {
		a.f.double.finish(&a.columns, doublesOf(bits))
	} else {
		a.f.long.finish(&a.columns, signed(bits))
	}
}

// Bytes is the memory of the accumulators.
func (a *Aligned) Bytes() int64 {
	c := &a.columns
	return int64(4*cap(c.n) + 8*(cap(c.a)+cap(c.b)+cap(c.i)+cap(c.j)))
}

// MayAlign reports whether a plan's groups can be aggregated by Aligned, if their series have
// points at the same times: it has neither buckets nor corrections, and no rate that is
// dropped at some times of some series alone.
func MayAlign(p *scanplan.Plan) bool {
	f, ok := Lookup(p.Aggregator)
	return ok && f.Aligns() && p.Downsample == nil && p.Window == nil && p.Rollup == nil && p.Histograms == nil &&
		p.Fix == 0 &&
		(p.Rate == nil || !p.Rate.Counter || !p.Rate.DropResets)
}

// doublesOf returns a view of bits as doubles.
func doublesOf(bits []uint64) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(bits))), len(bits))
}
