package merge

import (
	"fmt"
	"math"

	"downpour/encoding"
	"downpour/pushdown/operator/aggregate"
)

// joiner makes groups of partial aggregates, and of series in the hours whose parts are
// per-series. An hour of a salt bucket is either all partial or all per-series.
//
// A part's partial aggregate has what its series contribute between their first and
// last point in the part. The joiner adds the rest: what a series contributes between
// two parts, and the fill values of parts that have no row of it. Where that does not
// give the same bits as adding everything in span order, and where the proof that
// comes with sums does not show that it does nonetheless, the answer is ErrOrder,
// unless rounding is allowed.
type joiner struct {
	m            *Merger
	fn           *aggregate.Function
	mergeability aggregate.Mergeability
	grid         []int64               // starts of the plan's buckets, ms
	perSeries    map[string][]gridSpan // by salt: buckets that no partial part covers
	fills        bool                  // the plan fills empty buckets
	fillValue    float64

	// Of the present group, by bucket where they are slices.
	sum        *aggregate.Partial
	owners     []uint8 // partial parts with members in the bucket; 2 is several
	outOfOrder []bool  // something was added that comes earlier in span order
	inexact    bool    // some bucket may have other bits than in span order

	// Memory that is used again.
	received aggregate.Partial
	scratch  []float64
	values   []float64
}

// gridSpan is a half-open stretch of the grid.
type gridSpan struct{ from, to int }

// newJoiner lays out the plan's grid and finds which stretches of it no partial part
// covers.
func (m *Merger) newJoiner(fn *aggregate.Function) *joiner {
	p := m.plan
	j := &joiner{m: m, fn: fn, perSeries: map[string][]gridSpan{}}
	j.mergeability, _ = fn.Mergeability()
	for t := p.From * 1000; t < p.To*1000; t += p.Downsample.Interval {
		j.grid = append(j.grid, t)
	}

	j.fillValue, j.fills = p.Downsample.Fill.Value()

	// Per salt, what lies between the partial parts is per-series, and so is the rest
	// after the last of them.
	covered := map[string]int{}
	for _, part := range m.partialParts { // ascending
		salt := part.hours.Salt
		if part.from > covered[salt] {
			j.perSeries[salt] = append(j.perSeries[salt], gridSpan{covered[salt], part.from})
		}
		covered[salt] = part.to
	}
	for _, r := range p.Ranges { // one for each salt
		salt := string(r.Start[:p.Schema.SaltWidth])
		if covered[salt] < len(j.grid) {
			j.perSeries[salt] = append(j.perSeries[salt], gridSpan{covered[salt], len(j.grid)})
		}
	}
	return j
}

// checkMembers is after how many members of a group the joiner asks whether the request
// has ended: each member may touch every bucket.
const checkMembers = 16

// group appends to out the points of a group: its partial aggregates, and the members' points where no
// part has aggregated them. scratch is memory for the segments of one member.
func (j *joiner) group(members groupMembers, scratch []*segment, out *encoding.Points) error {
	j.mergePartials(string(members.key))

	membersBySalt := map[string]int32{}
	for i, sp := range members.spans {
		if i%checkMembers == 0 {
			if err := j.m.Check(); err != nil {
				return err
			}
		}
		if !sp.hasData { // it has annotations alone
			continue
		}
		salt := string(sp.id[:j.m.plan.Schema.SaltWidth])
		membersBySalt[salt]++
		sp.runs = j.m.joinRuns(sp.runs)
		if err := j.addSeries(salt, sp.inTimeOrder(scratch[:0]), sp.runs); err != nil {
			return fmt.Errorf("merge: series %s: %w", encoding.UID(j.m.plan.Schema.SpanTSUID(sp.id)), err)
		}
	}

	if j.fills {
		j.addAbsent(string(members.key), membersBySalt)
	}
	return j.finish(out)
}

// mergePartials starts a group with the sum of its partial aggregates, added in the
// order of the parts' keys. At any one time that is span order: parts that share a
// bucket differ in their salt, with which spans begin too.
func (j *joiner) mergePartials(key string) {
	j.sum = j.fn.NewPartial(len(j.grid))
	j.owners = append(j.owners[:0], make([]uint8, len(j.grid))...)
	j.outOfOrder = append(j.outOfOrder[:0], make([]bool, len(j.grid))...)
	j.inexact = false

	for _, p := range j.m.partialParts {
		g := p.groups[key]
		if g == nil || g.buckets == nil {
			continue
		}
		j.m.receive(&j.received, g.buckets)
		j.fn.Merge(j.sum, p.from, &j.received)
		for i, live := range g.buckets.live {
			if live > 0 && j.owners[p.from+i] < 2 { // 2 stands for any more
				j.owners[p.from+i]++
			}
			// (a+b)+(c+d) may differ from ((a+b)+c)+d.
			isOfSeveral := j.owners[p.from+i] > 1 //fault:salts-added-up TestPartials_several
			j.outOfOrder[p.from+i] = isOfSeveral && !j.mergeability.InOrder
			j.m.needsSpanOrder = j.m.needsSpanOrder || isOfSeveral && j.mergeability.AllAtOnce
		}
	}
}

// addSeries adds what the partial aggregates do not have of a series: its points in per-series hours, and what it
// contributes between its runs, which are ascending.
func (j *joiner) addSeries(salt string, segments []*segment, runs []run) error {
	if err := checkOrder(segments); err != nil {
		return err
	}
	if j.mergeability.AllAtOnce {
		if err := j.m.account(j.gatheredBytes(salt, segments)); err != nil {
			return err
		}
	}
	if j.fills {
		j.addFilled(salt, segments)
		return nil
	}
	return j.addUnfilled(segments, runs)
}

// gatheredBytes is about what a series' own values take, where all of a group are kept until its end. Values between
// two parts are few, or refused.
func (j *joiner) gatheredBytes(salt string, segments []*segment) (bytes int64) {
	const each = 12 // 8 and room for growth
	if j.fills {
		for _, r := range j.perSeries[salt] {
			bytes += int64(r.to-r.from) * each
		}
		return bytes
	}
	for _, s := range segments {
		if n := len(s.time); n > 0 {
			bytes += ((s.time[n-1]-s.time[0])/j.m.plan.Downsample.Interval + 1) * each
		}
	}
	return bytes
}

// addUnfilled adds a series' points in per-series hours, and what it contributes
// between one part and the next.
func (j *joiner) addUnfilled(segments []*segment, runs []run) error {
	var before *run
	add := func(next *run) error {
		if before != nil && next.first <= before.last {
			return fmt.Errorf("a part begins at %d, another goes on until %d", next.first, before.last)
		}
		if before != nil {
			j.addGap(before, next)
		}
		before = next
		return nil
	}

	for _, s := range segments {
		if len(s.time) == 0 {
			continue
		}
		for len(runs) > 0 && runs[0].first < s.time[0] {
			if err := add(&runs[0]); err != nil {
				return err
			}
			runs = runs[1:]
		}
		// A per-series part: its own buckets are the edges, with known values.
		last := len(s.time) - 1
		if err := add(&run{first: s.time[0], last: s.time[last], firstValue: s.value[0], lastValue: s.value[last],
			knowsFirst: true, knowsLast: true}); err != nil {
			return err
		}
		at, values, scratch := j.fn.Contribute(j.grid, aggregate.Series{Time: s.time, Value: s.value}, j.scratch)
		j.scratch = scratch
		j.addValues(at, values, realValues)
		j.sum.MarkReal(j.grid[at:][:len(values)], at, s.time)
	}
	for i := range runs {
		if err := add(&runs[i]); err != nil {
			return err
		}
	}
	return nil
}

// addGap adds what a series contributes strictly between two of its points: values that
// the aggregator interpolates.
func (j *joiner) addGap(a, b *run) {
	from, to := j.m.gridIndex(a.last)+1, j.m.gridIndex(b.first)
	if from >= to {
		return
	}

	// The values at the edges that the interpolation needs may not have been shipped: then only
	// the columns of the series have them.
	earlier, later := j.fn.GapNeeds()
	if earlier && !a.knowsLast || later && !b.knowsFirst {
		j.m.needsSpanOrder = true
		return
	}

	j.values = append(j.values[:0], make([]float64, to-from)...)
	j.fn.Gap(j.values, j.grid[from:to], a.last, b.first, a.lastValue, b.firstValue)
	j.addValues(from, j.values, gapValues)
}

// valueKind says where values that are added come from.
type valueKind bool

const (
	realValues valueKind = false // points, fill values, or values at the times of other series between them
	gapValues  valueKind = true  // interpolated between two parts
)

// addValues adds a series' contributions to consecutive buckets.
func (j *joiner) addValues(at int, values []float64, kind valueKind) {
	for i, v := range values {
		k := at + i
		// A bucket without partial aggregates gets its values in span order, because the
		// members are added in it.
		if j.owners[k] == 0 {
			continue
		}

		// A gap value that is 0 in a sum, or is only counted, changes no bit wherever it is added.
		if exact := j.mergeability.AnyOrder || kind == gapValues && j.mergeability.Gaps; !exact {
			j.outOfOrder[k] = true
			j.m.needsSpanOrder = j.m.needsSpanOrder || j.fn.Class == aggregate.Ordered || j.mergeability.AllAtOnce
		} else if j.fn.Tie(j.sum, k, v) {
			// Of 0.0 and -0.0 the first in span order stays the minimum or maximum.
			j.inexact = true
		}
	}
	j.fn.AddValues(j.sum, at, values)
}

// addFilled adds a series with a value in every bucket that no partial part of its salt
// covers: its point, or the fill value.
func (j *joiner) addFilled(salt string, segments []*segment) {
	for _, r := range j.perSeries[salt] {
		j.values = j.values[:0]
		for range r.to - r.from {
			j.values = append(j.values, j.fillValue)
		}
		for _, s := range segments {
			for i, t := range s.time {
				if k := j.m.gridIndex(t); k >= r.from && k < r.to {
					j.values[k-r.from] = s.value[i]
				}
			}
		}
		j.addValues(r.from, j.values, realValues)
	}
}

// addAbsent adds the fill values of series in the parts that have no row of them.
func (j *joiner) addAbsent(key string, membersBySalt map[string]int32) {
	for _, p := range j.m.partialParts {
		n := membersBySalt[p.hours.Salt]
		if g := p.groups[key]; g != nil {
			n -= g.members
		}
		if n == 0 { // every member of the salt has rows in the part
			continue
		}

		switch {
		case j.mergeability.SkipsNaN && math.IsNaN(j.fillValue): // counts for nothing
		case !j.mergeability.SkipsNaN || j.mergeability.AllAtOnce: // the fill value has its place among the others
			j.m.needsSpanOrder = true
		case !j.fn.AddZeros(j.sum, p.from, p.to, n): // all at once
			j.inexact = true
		}
	}

	// With fill every bucket of a group with members has a value.
	for i := range j.sum.Real {
		j.sum.Real[i] = len(membersBySalt) > 0
	}
}

// mayRound reports whether bucket i may have other bits than adding everything in span
// order gives.
func (j *joiner) mayRound(i int) bool {
	switch {
	case !j.outOfOrder[i] || j.mergeability.AnyOrder:
		return false
	case j.mergeability.Proven:
		return !j.sum.Exact(i)
	}
	return true
}

// finish makes points of the group's buckets inside the query.
func (j *joiner) finish(out *encoding.Points) error {
	p := j.m.plan
	values := make([]float64, len(j.grid)) // those of buckets without a point are not used
	j.fn.Finish(j.sum, 0, values)

	for i, t := range j.grid {
		if !j.sum.Real[i] || t < p.Start || t > p.End {
			continue
		}
		mayRound := j.mayRound(i)
		j.inexact = j.inexact || mayRound
		// A part's product, or its sum, may have passed the largest double, where in span
		// order it does not: then 0 times it, or its difference to another one, is NaN.
		if mayRound && math.IsNaN(values[i]) {
			return ErrOrder
		}
		if math.IsInf(values[i], 0) {
			// In span order the same sum may be finite.
			if j.m.needsSpanOrder || j.inexact {
				return ErrOrder
			}
			return &aggregate.InfinityError{Value: values[i], Time: t}
		}
		out.Append(t, encoding.FloatValue(values[i]))
	}

	if j.m.needsSpanOrder || j.inexact && !j.m.roundingAllowed {
		return ErrOrder
	}
	return nil
}
