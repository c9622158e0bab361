package operator

import (
	"bytes"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/process/memory"
)

// grouping is the last stage of a part with partial aggregation: it makes one partial
// aggregate of each group and bucket. Series are added in span order, and gaps
// between two rows of the part are interpolated or filled, so that a partial aggregate
// has the bits that aggregating the series in the gateway would give.
type grouping struct {
	plan         *scanplan.Plan
	fn           *aggregate.Function
	countsN      bool // fn uses the accumulator N
	gathers      bool // fn needs all values of a bucket at once
	nameless     bool // see scanplan.PartialWithoutNames
	hours        scanplan.Hours
	grid         []int64 // bucket starts of the part, ms; nil until there is a point
	held         int64   // bytes of the grid and of partial aggregates, and of values that they gather
	recordBytes  int64   // of the records that will be made of them
	mostStates   int64   // bound of held in addition to that of the plan; 0 is none
	starts, ends bool    // the plan has no row before, after the part
	fill         bool    // the fill policy gives empty buckets a value
	missing      float64 // that value

	groups  map[string]*group
	order   []*group
	key     []byte
	dense   []float64
	scratch []float64
	series  batch.Series
}

// group is a group of the part, and the row of the batch that it will be.
type group struct {
	key     string
	partial *aggregate.Partial   // nil while there is no point
	common  *encoding.CommonTags // of the members with points; nil if all are listed
	row     batch.Partial
}

// newGrouping returns the grouping of a part, nil with per-series aggregation.
func newGrouping(part *scanplan.Part) (*grouping, error) {
	// Histograms have partial sums of their own, see histograms.
	if !part.Mode.IsPartial() || part.Plan.Histograms != nil {
		return nil, nil
	}

	p := &part.Plan
	fn, ok := aggregate.Lookup(p.Aggregator)
	if !ok || !fn.Mergeable() {
		return nil, fmt.Errorf("aggregator %q has no partial aggregates", p.Aggregator)
	}

	hours, _ := p.WholeHours(part.Range) // Part.Validate has checked that they are whole
	g := &grouping{
		plan:     p,
		fn:       fn,
		hours:    hours,
		groups:   map[string]*group{},
		nameless: part.Mode == scanplan.PartialWithoutNames,
		starts:   hours.From == p.From,
		ends:     hours.To == p.To,
	}
	g.countsN, _, _ = fn.Columns()
	m, _ := fn.Mergeability()
	g.gathers = m.AllAtOnce
	g.missing, g.fill = p.Downsample.Fill.Value()
	return g, nil
}

// finishGroups aggregates the series of the part and makes its batches.
func (o *partOperator) finishGroups() error {
	// Sums depend on the order of their additions, which is that of spans.
	slices.SortFunc(o.spans.spans, func(a, b *series) int { return bytes.Compare(a.id, b.id) })
	for i, sp := range o.spans.spans {
		if i%checkSpans == 0 {
			if err := o.memory.Check(); err != nil {
				return err
			}
		}

		o.downsampler.finish(&o.arena, sp)
		// A span with neither points nor annotations is no member of its group.
		if sp.hasPoint || len(sp.annotations) > 0 {
			o.arena.gather(sp, &o.groups.series)
			if _, err := o.groups.add(&o.groups.series, o.memory); err != nil {
				return err
			}
		}
	}
	o.arena.reset()

	if err := o.groups.finish(&o.emit, o.memory, o.opts.Mem); err != nil {
		return err
	}
	o.done = true
	return o.checkShipped()
}

// finish makes the records of all groups.
func (g *grouping) finish(e *emitter, held *memory.Lease, mem batch.Allocator) error {
	// They are made before the first one is returned.
	if err := held.Reserve(g.recordBytes); err != nil {
		return err
	}
	e.addGroups(g, batch.NewPartialWriter(mem))
	return nil
}

// add adds a span. If it lists the span it keeps its name and annotations; it keeps no other slice of s. Spans
// come in ascending order. The error is a *LimitError, or one of the lease.
func (g *grouping) add(s *batch.Series, held *memory.Lease) (listed bool, err error) {
	gr, err := g.group(s.Span, held)
	// Without an error the series lacks a tag key of the group-by.
	if gr == nil {
		return false, err
	}

	// Buckets divide the hour, so that every point is in one: without a bucket there is none.
	if len(s.Time) == 0 {
		gr.list(s, batch.EdgeAnnotationsOnly)
		return true, nil
	}
	first := gr.partial == nil
	if first {
		if err := g.newPartial(gr, held); err != nil {
			return false, err
		}
	}

	// The first shows that the group has a member, even if it has no tags.
	news := gr.common == nil || gr.common.Add(g.plan.Schema.SpanTags(s.Span))
	if listed = first || news || len(s.Notes) > 0; listed {
		gr.list(s, g.edges(&gr.row, s))
	}
	return listed, g.addMember(gr, s, held)
}

// list lists a span with its annotations.
func (gr *group) list(s *batch.Series, flags uint8) {
	row := &gr.row
	for _, n := range s.Notes {
		row.NoteSpan, row.Notes = append(row.NoteSpan, int32(len(row.Spans))), append(row.Notes, n)
	}
	row.Spans, row.Flags = append(row.Spans, s.Span), append(row.Flags, flags)
}

// addMember adds the points of a member. The error is a *LimitError, or one of the lease.
func (g *grouping) addMember(gr *group, s *batch.Series, held *memory.Lease) error {
	m := g.member(s)
	if g.gathers {
		buckets := (m.Time[len(m.Time)-1]-m.Time[0])/g.plan.Downsample.Interval + 1
		if err := g.reserve(buckets*gatheredBytes, held); err != nil {
			return err
		}
	}
	g.scratch = g.fn.AddMember(gr.partial, g.grid, m, g.scratch)
	return nil
}

// gatheredBytes is about what a value takes that is gathered, with room for growth.
const gatheredBytes = 12

// reserve takes memory for partial aggregates. The error is a *LimitError, or one of the lease.
func (g *grouping) reserve(bytes int64, held *memory.Lease) error {
	need := g.held + bytes
	if limit := g.plan.MaxBytes; limit > 0 && need > limit {
		return &LimitError{What: States, Limit: limit, Need: need}
	}
	if g.mostStates > 0 && need > g.mostStates {
		return &LimitError{What: States, Limit: g.mostStates, Need: need}
	}
	if err := held.Reserve(bytes); err != nil {
		return err
	}
	g.held = need
	return nil
}

// newPartial makes the partial aggregates of a group, and the grid for the first group.
// Both have all buckets of the part, even if few have points, so their size is checked
// before they are made.
func (g *grouping) newPartial(gr *group, held *memory.Lease) error {
	buckets := g.hours.Grid(g.plan.Downsample)
	if err := g.reserve(int64(buckets)*workBytes, held); err != nil {
		return err
	}
	g.recordBytes += int64(buckets) * partialBucketBytes

	if g.grid == nil {
		g.grid = make([]int64, buckets)
		for i := range g.grid {
			g.grid[i] = g.hours.From*1000 + int64(i)*g.plan.Downsample.Interval
		}
	}
	gr.partial = g.fn.NewPartial(buckets)
	// A part that is all of the plan is merged with no other one.
	if g.starts && g.ends && g.plan.Schema.SaltWidth == 0 {
		gr.partial.DropProof()
	}
	return nil
}

// groupBytes is about the bytes of a group without its partial aggregates and its members, commonBytes those of
// what its members have in common.
const groupBytes, commonBytes = 600, 800

// group returns the group of a span, nil if it is in none. The error is one of the lease.
func (g *grouping) group(span []byte, held *memory.Lease) (*group, error) {
	var ok bool
	if g.key, ok = g.plan.AppendGroupKey(g.key[:0], span); !ok {
		return nil, nil
	}

	gr := g.groups[string(g.key)]
	if gr == nil {
		gr = &group{key: string(g.key)}
		bytes := int64(groupBytes)
		if g.nameless {
			gr.common = encoding.NewCommonTags(g.plan.Schema)
			bytes += commonBytes
		}
		if err := held.Reserve(bytes); err != nil {
			return nil, err
		}
		g.groups[gr.key] = gr
		g.order = append(g.order, gr)
	}
	return gr, nil
}

// edges adds the first and the last bucket of a series to the row if neighbouring parts need them
// to interpolate. They do not if empty buckets are filled, because such a series has no gaps, nor
// if the bucket is at the end of the part, because there is no bucket between them.
func (g *grouping) edges(row *batch.Partial, s *batch.Series) (flags uint8) {
	if g.fill {
		return 0
	}

	last := len(s.Time) - 1
	if !g.starts && s.Time[0] != g.grid[0] {
		flags |= batch.EdgeFirst
		row.EdgeTime, row.EdgeValue = append(row.EdgeTime, s.Time[0]), append(row.EdgeValue, s.Value[0])
	}
	if !g.ends && s.Time[last] != g.grid[len(g.grid)-1] { //fault:edge-dropped TestCutting_oneAnswer
		flags |= batch.EdgeLast
		row.EdgeTime, row.EdgeValue = append(row.EdgeTime, s.Time[last]), append(row.EdgeValue, s.Value[last])
	}
	return flags
}

// member returns a series as a member of its group: filled, if the plan fills.
func (g *grouping) member(s *batch.Series) aggregate.Series {
	if !g.fill {
		return aggregate.Series{Time: s.Time, Value: s.Value}
	}

	g.dense = slices.Grow(g.dense[:0], len(g.grid))
	k := 0
	for _, t := range g.grid {
		v := g.missing
		if k < len(s.Time) && s.Time[k] == t {
			v = s.Value[k]
			k++
		}
		g.dense = append(g.dense, v)
	}
	return aggregate.Series{Time: g.grid, Value: g.dense}
}

// finishRow completes the row of a group. Columns that follow from others are omitted, see package
// batch.
func (g *grouping) finishRow(gr *group) *batch.Partial {
	row, p := &gr.row, gr.partial
	row.Group = []byte(gr.key)
	// All members have annotations only.
	if p == nil {
		return row
	}

	if g.gathers {
		g.fn.Settle(p)
	}
	row.Live = p.Live
	// If this column is absent all are true; if the next is absent it is equal to live.
	if slices.Contains(p.Real, false) {
		row.Real = p.Real
	}
	if g.countsN && !slices.Equal(p.N, p.Live) {
		row.N = p.N
	}
	row.A, row.B = p.A, p.B // nil if the function does not use them
	row.Low, row.High = p.Shipped()
	return row
}

// addGroups makes records of all groups, in the order in which they were found.
func (e *emitter) addGroups(g *grouping, w *batch.PartialWriter) {
	defer w.Release()
	pending := 0
	cut := func() {
		if pending > 0 {
			e.push(w.Record())
			pending = 0
		}
	}

	for _, gr := range g.order {
		row := g.finishRow(gr)
		w.Append(row)
		if pending += partialBytes(row); pending >= e.limit {
			cut()
		}
	}
	cut()
}

// push adds a record to those that are ready to be returned.
func (e *emitter) push(r batch.Record) {
	n := RecordBytes(r)
	e.ready = append(e.ready, r)
	e.batches++
	e.shipped += n
	e.waiting += n
	// A SeriesWriter keeps its columns, about as large as the record that it made of them.
	e.most = max(e.most, e.waiting+n)
}

// partialBucketBytes is about the bytes of one bucket's partial aggregate in a batch,
// and workBytes those while it is computed.
const (
	partialBucketBytes = 29
	workBytes          = 48
)

// partialBytes returns about the bytes of a row in a batch.
func partialBytes(p *batch.Partial) int {
	n := len(p.Group) + len(p.Live)*partialBucketBytes + len(p.EdgeTime)*bucketBytes
	for _, s := range p.Spans {
		n += len(s) + 8
	}
	for _, s := range p.Notes {
		n += len(s)
	}
	return n
}
