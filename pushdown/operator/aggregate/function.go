// Package aggregate holds OpenTSDB's aggregators: the function of a downsample
// bucket over one series, and the function of a group over the values that its
// member series have at one time. It knows neither store nor network nor clock.
//
// One table (table) says for each of the 35 names its class, what a member
// contributes between two of its own points, and its arithmetic over integers
// and over doubles. The two differ in more than type: integer sums wrap and
// integer averages truncate, doubles skip NaN.
//
// A function over doubles has the verbs reset, update and value on a State, so
// that a bucket can be fed piece by piece. Over a group it works on columns: one
// accumulator per timestamp, members added one after the other in span order,
// so that each timestamp sees its additions in the order in which OpenTSDB makes
// them, and double sums are equal to the last bit. Functions that need all values
// at once gather them by timestamp in blocks of bounded size.
//
// Source: net.opentsdb.core.Aggregators, AggregationIterator.
package aggregate

import (
	"slices"

	"downpour/encoding/scanplan"
)

// Class says what an aggregator must remember of the values it has seen, and so
// what a partial aggregate of it could be.
type Class uint8

const (
	Distributive Class = iota // one accumulator, the same function merges
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

	scalar scalar
	double columnFunctions[float64]
	long   columnFunctions[int64]
}

// scalar is a function over doubles as verbs on a State.
type scalar struct {
	initial float64 // State.a before the first value
	update  func(s *State, values []float64)
	value   func(s *State) float64
	sums    bool // update is updateSum: what Buckets knows how to do faster
}

// State is what a function remembers of the values of one bucket. The zero
// State belongs to no function; Function.Reset makes it one's. It keeps its
// memory from bucket to bucket.
type State struct {
	a, b float64
	n    int64
	keys []int64 // of holistic functions: the values, see key
}

// Reset makes s the state of f before any value.
func (f *Function) Reset(s *State) { s.a, s.b, s.n, s.keys = f.scalar.initial, 0, 0, s.keys[:0] }

// Update adds values, in time order, to s. It does not keep or change values.
func (f *Function) Update(s *State, values []float64) { f.scalar.update(s, values) }

// Value is the result over the values added since Reset, at least one. More may
// be added afterwards. Source: the runDouble methods of Aggregators.
func (f *Function) Value(s *State) float64 { return f.scalar.value(s) }

// Bytes is the memory that s holds beside itself.
func (s *State) Bytes() int64 { return 8 * int64(cap(s.keys)) }

var byName = func() map[scanplan.Aggregator]*Function {
	m := make(map[scanplan.Aggregator]*Function, len(table))
	for i := range table {
		m[table[i].Name] = &table[i]
	}
	return m
}()

// Lookup returns the function of a name, which is case-sensitive.
func Lookup(name scanplan.Aggregator) (*Function, bool) {
	f, ok := byName[name]
	return f, ok
}

// Names lists the names of all functions, sorted.
func Names() []string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = string(table[i].Name)
	}
	slices.Sort(names)
	return names
}
