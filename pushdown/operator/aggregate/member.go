package aggregate

import (
	"math"
	"unsafe"

	"downpour/encoding/scanplan"
)

// member is a series during the aggregation of its group.
type member struct {
	time   []int64
	double []float64 // nil if no output of the group is a double
	long   []int64   // nil if the series has only doubles; meaningless where float is set
	float  []bool

	next int // index of the first point not before the block
	// Of the present block: [at, to) are the indexes of the timestamps at which the
	// member contributes, end is the index of the first point after the block.
	at, to, end int
}

func (m *member) doubleValues() []float64 { return m.double }
func (m *member) longValues() []int64     { return m.long }

// prepare makes the members and returns the times to emit and their types. Its
// errors are the guard's.
func (g *Group) prepare(q Query, series []Series) ([]int64, typing, error) {
	g.members = g.members[:0]
	kind := g.start(q, series)
	times, err := g.union(q)
	if err != nil {
		return nil, kind, err
	}

	if kind == mixed {
		if err := g.toMixed(times); err != nil {
			return nil, kind, err
		}
	}
	if kind != integers {
		if err := g.toDoubles(); err != nil {
			return nil, kind, err
		}
	}

	for i := range g.members {
		m := &g.members[i]
		// Points before the first time that is emitted only serve to interpolate.
		if len(times) > 0 {
			m.next = from(m.time, times[0])
		}
		if q.BogusStart() { // the first rate is already current, see union
			m.next = max(m.next, 1)
		}
	}
	return times, kind, nil
}

// toMixed finds the type of each output. It gives members that have only doubles an
// empty column of integers, which a pass over integers reads.
func (g *Group) toMixed(times []int64) error {
	need := int64(len(times))
	for i := range g.members {
		if g.members[i].long == nil {
			need += 8 * int64(len(g.members[i].time))
		}
	}
	if err := g.Guard.Reserve(need); err != nil {
		return err
	}

	g.float = sized(g.float, len(times), false)
	for i := range g.members {
		if err := g.Guard.Check(); err != nil {
			return err
		}
		g.members[i].markFloats(times, g.float)
		g.members[i].toLong()
	}
	return nil
}

// toDoubles converts stored points to columns of doubles.
func (g *Group) toDoubles() error {
	need := int64(0)
	for i := range g.members {
		if m := &g.members[i]; m.double == nil {
			need += 8 * int64(len(m.time))
		}
	}
	if need == 0 {
		return nil
	}
	if err := g.Guard.Reserve(need); err != nil {
		return err
	}

	for i := range g.members {
		if err := g.Guard.Check(); err != nil {
			return err
		}
		g.members[i].toDouble(&g.arena)
	}
	return nil
}

// start makes the members, as OpenTSDB's iterator does when it starts: points before
// the scan range are skipped, and a series whose only rate is the one from 1970
// contributes nothing. It returns which types there are.
func (g *Group) start(q Query, series []Series) typing {
	anyFloat, anyInt := false, false
	for i := range series {
		m := newMember(&series[i], q.From*1000)
		if len(m.time) == 0 || q.BogusStart() && len(m.time) == 1 {
			continue
		}

		hasFloat, hasInt := m.types()
		if !hasInt && m.double == nil {
			m.double = doubles(m.long) // all are floats: their bits are doubles already
		}
		anyFloat, anyInt = anyFloat || hasFloat, anyInt || hasInt
		g.members = append(g.members, m)
	}

	switch {
	// With this fix integers are aggregated in doubles.
	case q.Fix&scanplan.FixIntegers != 0:
		return floats
	case !anyFloat:
		return integers
	case !anyInt:
		return floats
	}
	return mixed
}

// newMember returns a member with the points of s from first, in ms, on.
func newMember(s *Series, first int64) member {
	skip := 0
	for skip < len(s.Time) && s.Time[skip] < first {
		skip++
	}

	m := member{time: s.Time[skip:]}
	if s.Bits != nil {
		m.long, m.float = signed(s.Bits[skip:]), s.Float[skip:]
	}
	if s.Value != nil {
		m.double = s.Value[skip:]
	}
	return m
}

// signed returns a view of bits as integers.
func signed(bits []uint64) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(bits))), len(bits))
}

// doubles returns a view of bits as doubles.
func doubles(bits []int64) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(bits))), len(bits))
}

// types reports which value types a member has.
func (m *member) types() (hasFloat, hasInt bool) {
	if m.long == nil { // doubles only, see Series.Bits
		return true, false
	}
	for _, f := range m.float {
		if f {
			hasFloat = true
		} else {
			hasInt = true
		}
	}
	return hasFloat, hasInt
}

// union returns the times at which some member has a point, inside the query and the
// scan range. A first rate measured from 1970 is the member's current one from the
// start: it contributes at all times before the second rate, and its own time is not
// emitted. Errors are the guard's.
func (g *Group) union(q Query) ([]int64, error) {
	first, last := q.Start, min(q.End, q.To*1000)
	g.times.reset(g.Guard)
	for i := range g.members {
		t := g.members[i].time
		if q.BogusStart() {
			t = t[1:]
		}
		// Most columns are inside: then all members may share one slice, which the
		// timeline recognises.
		if len(t) > 0 && (t[0] < first || t[len(t)-1] > last) {
			t = t[from(t, first):]
			t = t[:after(t, last)]
		}
		if err := g.times.add(t); err != nil {
			return nil, err
		}
	}
	return g.times.union()
}

// markFloats sets float at the times at which the member's current or next point is
// a float. A float point k is the next one from point k-1 on, or from the beginning
// if it is the first; it is the current one before point k+1, or only at its own
// time if it is the last.
func (m *member) markFloats(times []int64, float []bool) {
	n := len(m.time)
	for k := 0; k < n; k++ {
		if !m.isFloat(k) {
			continue
		}

		// The run of consecutive floats that begins with k has one interval of times.
		begin, end := 0, 0
		if k > 0 {
			begin = from(times, m.time[k-1])
		}
		for k+1 < n && m.isFloat(k+1) {
			k++
		}
		if end = after(times, m.time[n-1]); k+1 < n {
			end = from(times, m.time[k+1])
		}
		for j := begin; j < end; j++ {
			float[j] = true
		}
	}
}

// isFloat reports whether point k is a float.
func (m *member) isFloat(k int) bool { return m.float == nil || m.float[k] }

// toDouble converts stored points to a column of doubles. Where float is set, long has the
// bits of a double.
func (m *member) toDouble(a *arena) {
	if m.double != nil {
		return
	}

	m.double = a.alloc(len(m.time))
	for i, v := range m.long {
		m.double[i] = float64(v)
		if m.float[i] {
			m.double[i] = math.Float64frombits(uint64(v))
		}
	}
}

// toLong gives a member of doubles a column of integers. A pass over integers reads
// it also at times whose output is a double; the results there are not used.
func (m *member) toLong() {
	if m.long == nil {
		m.long = make([]int64, len(m.time))
	}
}

// locate finds the times of the block at which the member contributes.
func (m *member) locate(block []int64) {
	// The block has a time for each point of a member, so that a member has at most
	// len(block) points in it.
	own := m.time[m.next:min(len(m.time), m.next+len(block))]
	m.end = m.next + after(own, block[len(block)-1])
	m.at, m.to = 0, len(block)
	switch {
	case m.next > 0: // in progress
	case m.end == 0: // not yet begun
		m.to = 0
		return
	default:
		m.at = from(block, m.time[0])
	}
	if m.end < len(m.time) {
		return // continues after the block
	}

	// If it ended before the block, no time is left; at is 0 then.
	m.to = 0
	if m.next < m.end { // ends in this block
		m.to = from(block, m.time[m.end-1]) + 1
	}
}

// arena allocates columns of doubles that are valid until reset.
type arena struct {
	chunk []float64
	used  int
}

// arenaChunk is the smallest number of doubles allocated at once.
const arenaChunk = 16 << 10

func (a *arena) reset() { a.used = 0 }

// alloc returns n doubles. If they do not fit the chunk it makes a new one, which is
// kept for the next group.
func (a *arena) alloc(n int) []float64 {
	// Columns in the old chunk stay valid: they refer to it.
	if a.used+n > len(a.chunk) {
		a.chunk, a.used = make([]float64, max(n, arenaChunk, 2*len(a.chunk))), 0
	}
	s := a.chunk[a.used:][:n:n]
	a.used += n
	return s
}
