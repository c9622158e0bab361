package merge

import (
	"errors"
	"fmt"
	"math"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// ErrOrder says that states of groups do not give the answer: something would
// have to be added to them in the order of spans, or a point was not shipped.
// The same plan with strict parts answers.
var ErrOrder = errors.New("merge: states of parts do not add up to the same bits")

// joiner makes groups of states, and of series in the hours whose parts are
// strict. An hour of a salt bucket is all states or all series.
//
// A state holds what its part's series contribute between their first and last
// point there. What is added here is the rest: what a series contributes between
// two parts, and the fill values of parts that have no row of it. Where that is
// not the same to the last bit as adding everything in span order, and the proof
// that comes with sums does not show that it is nonetheless, the answer is
// ErrOrder, unless rounding is allowed.
type joiner struct {
	m       *Merger
	fn      *aggregate.Function
	sharing aggregate.Mergeability
	grid    []int64
	strict  map[string][][2]int // by salt: stretches of the grid without states
	fill    bool
	missing float64

	// Of the present group.
	sum     *aggregate.Partial
	owners  []uint8 // by time: state parts with members there, 2 is several
	late    []bool  // by time: something was added out of span order
	inexact bool
	scratch []float64
	values  []float64
}

func (m *Merger) newJoiner(fn *aggregate.Function) *joiner {
	p := m.plan
	j := &joiner{m: m, fn: fn, strict: map[string][][2]int{}}
	j.sharing, _ = fn.Mergeability()
	for t := p.From * 1000; t < p.To*1000; t += p.Downsample.Interval {
		j.grid = append(j.grid, t)
	}
	switch p.Downsample.Fill {
	case scanplan.FillNaN, scanplan.FillNull:
		j.fill, j.missing = true, math.NaN()
	case scanplan.FillZero:
		j.fill = true
	}
	at := map[string]int{}
	for _, s := range m.states { // ascending
		salt := s.hours.Salt
		if s.at > at[salt] {
			j.strict[salt] = append(j.strict[salt], [2]int{at[salt], s.at})
		}
		at[salt] = s.to
	}
	for _, r := range p.Ranges {
		salt := string(r.Start[:p.Schema.SaltWidth])
		if at[salt] < len(j.grid) {
			j.strict[salt] = append(j.strict[salt], [2]int{at[salt], len(j.grid)})
		}
	}
	return j
}

// checkMembers is after how many members of a group the bounds are asked whether
// to go on: each may touch every bucket.
const checkMembers = 16

// group computes a group's points.
func (j *joiner) group(ms members, scratch []*segment, out *encoding.Points) error {
	j.begin(string(ms.key))
	saltMembers := map[string]int32{}
	for i, sp := range ms.spans {
		if i%checkMembers == 0 {
			if err := j.m.Check(); err != nil {
				return err
			}
		}
		if !sp.hasData {
			continue
		}
		salt := string(sp.id[:j.m.plan.Schema.SaltWidth])
		saltMembers[salt]++
		segments := sp.joined(scratch[:0])
		if err := j.series(salt, segments); err != nil {
			return fmt.Errorf("merge: series %s: %w", encoding.UID(j.m.plan.Schema.SpanTSUID(sp.id)), err)
		}
	}
	if j.fill {
		j.absent(string(ms.key), saltMembers)
	}
	return j.finish(out)
}

// begin adds up the states of a group, in the order of keys, which is that of
// spans at any one time.
func (j *joiner) begin(key string) {
	j.sum = j.fn.NewPartial(len(j.grid))
	j.owners = append(j.owners[:0], make([]uint8, len(j.grid))...)
	j.late = append(j.late[:0], make([]bool, len(j.grid))...)
	j.inexact = false
	for _, p := range j.m.states {
		g := p.groups[key]
		if g == nil || g.state == nil {
			continue
		}
		j.fn.Merge(j.sum, p.at, g.state)
		for i, live := range g.state.Live {
			if live > 0 && j.owners[p.at+i] < 2 {
				j.owners[p.at+i]++
			}
			j.late[p.at+i] = j.owners[p.at+i] > 1 && !j.sharing.InOrder
		}
	}
}

// series adds what the strict parts say of a series, and what none could.
func (j *joiner) series(salt string, segments []*segment) error {
	if err := checkOrder(segments); err != nil {
		return err
	}
	if j.fill {
		j.filled(salt, segments)
		return nil
	}
	return j.chain(segments)
}

// chain adds a series: its points in strict hours, and what it contributes
// between one part and the next.
func (j *joiner) chain(segments []*segment) error {
	var before *edges
	for _, s := range segments {
		e := s.edges
		if e == nil {
			if len(s.time) == 0 {
				continue
			}
			last := len(s.time) - 1
			e = &edges{s.time[0], s.time[last], s.value[0], s.value[last], true, true}
		}
		if before != nil && e.first <= before.last {
			return fmt.Errorf("a part begins at %d, another goes on until %d", e.first, before.last)
		}
		if before != nil {
			j.between(before, e)
		}
		if s.edges == nil {
			at, values, scratch := j.fn.Contribute(j.grid, aggregate.Series{Time: s.time, Value: s.value}, j.scratch)
			j.scratch = scratch
			j.add(at, values, false)
			j.sum.MarkReal(j.grid[at:][:len(values)], at, s.time)
		}
		before = e
	}
	return nil
}

// between adds what a series contributes strictly between two of its points.
func (j *joiner) between(a, b *edges) {
	at, to := j.m.gridIndex(a.last)+1, j.m.gridIndex(b.first)
	if at >= to {
		return
	}
	earlier, later := j.fn.GapNeeds()
	if earlier && !a.knowsLast || later && !b.knowsFirst {
		j.inexact = true
		j.m.doubt = true
		return
	}
	j.values = append(j.values[:0], make([]float64, to-at)...)
	j.fn.Gap(j.values, j.grid[at:to], a.last, b.first, a.lastValue, b.firstValue)
	j.add(at, j.values, true)
}

// add adds a series' contributions; gap says that they are the policy's.
func (j *joiner) add(at int, values []float64, gap bool) {
	for i, v := range values {
		k := at + i
		if j.owners[k] == 0 {
			continue
		}
		if exact := j.sharing.AnyOrder || gap && j.sharing.Gaps; !exact {
			j.late[k] = true
			j.m.doubt = j.m.doubt || j.fn.Class == aggregate.Ordered
		} else if j.fn.Tie(j.sum, k, v) {
			j.inexact = true
		}
	}
	j.fn.AddValues(j.sum, at, values)
}

// filled adds a series with a value in every bucket of the strict hours.
func (j *joiner) filled(salt string, segments []*segment) {
	for _, r := range j.strict[salt] {
		j.values = j.values[:0]
		for range r[1] - r[0] {
			j.values = append(j.values, j.missing)
		}
		for _, s := range segments {
			for i, t := range s.time {
				if k := j.m.gridIndex(t); k >= r[0] && k < r[1] {
					j.values[k-r[0]] = s.value[i]
				}
			}
		}
		j.add(r[0], j.values, false)
	}
}

// absent adds the fill values of series in the parts that have no row of them.
func (j *joiner) absent(key string, saltMembers map[string]int32) {
	for _, p := range j.m.states {
		n := saltMembers[p.hours.Salt]
		if g := p.groups[key]; g != nil {
			n -= g.listed
		}
		if n == 0 {
			continue
		}
		if !j.sharing.SkipsNaN {
			j.m.doubt = true
		} else if j.missing == 0 && !j.fn.AddZeros(j.sum, p.at, p.to, n) {
			j.inexact = true
		}
	}
	for i := range j.sum.Real {
		j.sum.Real[i] = len(saltMembers) > 0
	}
}

// rounds tells whether the state at i may have other bits than adding everything
// in span order gives.
func (j *joiner) rounds(i int) bool {
	switch {
	case !j.late[i] || j.sharing.AnyOrder:
		return false
	case j.sharing.Proven:
		return !j.sum.Exact(i)
	}
	return true
}

// finish makes points of the group's times inside the query.
func (j *joiner) finish(out *encoding.Points) error {
	p := j.m.plan
	values := make([]float64, len(j.grid))
	j.fn.Finish(j.sum, 0, values)
	for i, t := range j.grid {
		if !j.sum.Real[i] || t < p.Start || t > p.End {
			continue
		}
		j.inexact = j.inexact || j.rounds(i)
		if math.IsInf(values[i], 0) {
			if j.m.doubt || j.inexact { // it may be finite in span order
				return ErrOrder
			}
			return &aggregate.InfinityError{Value: values[i], Time: t}
		}
		out.Append(t, encoding.FloatValue(values[i]))
	}
	if j.m.doubt || j.inexact && !j.m.rounding {
		return ErrOrder
	}
	return nil
}
