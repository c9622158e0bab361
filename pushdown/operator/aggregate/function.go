// Package aggregate holds OpenTSDB's aggregators. Each is used in two places: over
// the points that one series has in a downsample bucket, and over the values that
// the member series of a group have at one time. The package knows no store,
// network or clock.
//
// One table (table) has all traits of the 35 aggregators: class, what a member
// contributes between two of its own points, arithmetic, and how partial aggregates
// merge. Arithmetic over integers and over doubles differ in more than type: integer
// sums wrap and integer averages truncate, doubles skip NaN.
//
// For a bucket a function has the methods Reset, Update and Value on a State, so that
// points can be added a few at a time. For a group it works on columns, with one
// accumulator for each timestamp. Members are added one after the other in span
// order, so that each timestamp has its additions in the order in which OpenTSDB
// makes them, and sums of doubles are equal to the last bit. Functions that need all
// values at once gather them by timestamp, in blocks of bounded size.
//
// Source: net.opentsdb.core.Aggregators, AggregationIterator.
package aggregate

import (
	"slices"

	"downpour/encoding/scanplan"
)

// Class says what an aggregator must keep of the values that it has seen.
type Class uint8

const (
	Distributive Class = iota // one accumulator; the function itself merges two of them
	Algebraic                 // a fixed number of accumulators
	Holistic                  // all values
	Ordered                   // depends on the order of the values
)

// String is the class in words.
func (c Class) String() string {
	return [...]string{"distributive", "algebraic", "holistic", "ordered"}[c]
}

// Interpolation says what a member contributes at a time between two of its own
// points. Before its first and after its last it contributes nothing.
// Source: Aggregators.Interpolation.
type Interpolation uint8

const (
	LERP Interpolation = iota // on the line between the two points
	ZIM                       // 0
	MAX                       // the largest number: 1<<63 - 1, or the largest double
	MIN                       // the smallest number: -1<<63, or minus the largest double
	PREV                      // the earlier point
)

// String is OpenTSDB's name of the policy.
func (i Interpolation) String() string {
	return [...]string{"LERP", "ZIM", "MAX", "MIN", "PREV"}[i]
}

// Function is one aggregator. Functions are shared and never change.
type Function struct {
	Name          scanplan.Aggregator
	Class         Class
	Interpolation Interpolation

	arithmetic
	// merging says how partial aggregates merge; nil if the function has none.
	merging *merging
	// gapsFixable: with scanplan.FixGaps, only members that have a point at a time
	// contribute to it.
	gapsFixable bool
	// identity: nothing is aggregated, and a group has one member.
	identity bool
}

// arithmetic is what a function computes: over the doubles of a bucket, and over
// the doubles and the integers of a group.
type arithmetic struct {
	scalar scalar
	double columnFunctions[float64]
	long   columnFunctions[int64]
}

// scalar is a function over the doubles of one bucket, as functions on a State.
type scalar struct {
	initial float64 // State.a before the first value
	update  func(s *State, values []float64)
	value   func(s *State) float64
	sums    bool // update is updateSum, which Buckets does faster for several buckets
	needs   Needs
}

// Needs says what of the values of a bucket a function is computed from. None of them may be NaN.
type Needs uint8

// What functions are computed from.
const (
	NeedsAll    Needs = iota // each value
	NeedsSum                 // the sum and the number of the values, by OfSum
	NeedsCount               // their number, by OfSum
	NeedsBounds              // the least and the largest, by OfTwo
	NeedsEnds                // the first and the last, by OfTwo
)

// State is the accumulators of one bucket. The zero State belongs to no function;
// Function.Reset makes it belong to one. Its memory is used again from bucket to
// bucket.
type State struct {
	a, b float64
	n    int64
	keys []int64    // for holistic functions: all values, see key
	two  [2]float64 // of OfTwo, so that it need not be allocated
}

// Reset makes s the state of f before any value.
func (f *Function) Reset(s *State) { s.a, s.b, s.n, s.keys = f.scalar.initial, 0, 0, s.keys[:0] }

// Update adds values, in order of time, to s. It does not keep or change values.
func (f *Function) Update(s *State, values []float64) { f.scalar.update(s, values) }

// Value is the result over the values added since Reset, at least one. More may be
// added afterwards. Source: the runDouble methods of Aggregators.
func (f *Function) Value(s *State) float64 { return f.scalar.value(s) }

// Identity reports whether f is the function of the aggregator none, which
// aggregates nothing.
func (f *Function) Identity() bool { return f.identity }

// Bytes is the memory that s refers to.
func (s *State) Bytes() int64 { return 8 * int64(cap(s.keys)) }

var byName = func() map[scanplan.Aggregator]*Function {
	m := make(map[scanplan.Aggregator]*Function, len(table))
	for i := range table {
		m[table[i].Name] = &table[i]
	}
	return m
}()

// Lookup returns the function with a name; case matters.
func Lookup(name scanplan.Aggregator) (*Function, bool) {
	f, ok := byName[name]
	return f, ok
}

// Names returns the names of all functions, sorted.
func Names() []string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = string(table[i].Name)
	}
	slices.Sort(names)
	return names
}
