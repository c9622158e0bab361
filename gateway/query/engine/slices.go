package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine/stage"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
)

// SliceSizes are by what a sub-query is read in slices, see sliced. Zero values are the defaults.
type SliceSizes struct {
	// LeastBytes is what rows take on the disk from which on they are read in slices. Default 8 MiB: some 3 million
	// points that are stored one by one, 10 million in columns.
	LeastBytes int64
	// FirstRows is the size of the first slice, which is small so that its points are soon there. Each slice may
	// have twice the rows of the one before. Default 256.
	FirstRows int64
	// Points is about how many points a slice has at most, unless one series has more. Default a million.
	Points int64
}

func (s SliceSizes) withDefaults() SliceSizes {
	return SliceSizes{
		LeastBytes: cmp.Or(s.LeastBytes, 8<<20), FirstRows: cmp.Or(s.FirstRows, 256), Points: cmp.Or(s.Points, 1<<20),
	}
}

// maxSliceKeys bounds the keys that a slice can have, which is its series in all hours of the plan: the operator does
// not seek more than 20,000 one by one.
const maxSliceKeys = 16 << 10

// sliced reads the series of a sub-query in slices, one after the other: the series in the order of the answer are
// known beforehand, by the keys of the rows alone, and each slice is the same plan with some of the series as its
// TSUIDs. So an answer of any size takes the memory of a slice, and its first points come as soon as a small one is
// read. It is only for answers whose groups have one series each, because then a group has the same tags whatever
// the rows turn out to hold, or no points. A series that is new while the slices are read is not in the answer.
type sliced struct {
	engine  *Engine
	request *stage.Request // whose budget is that of all slices
	series  []listedSeries // in the order of groups

	slice      pointSource   // the one in memory; nil before the first
	groups     []merge.Group // those of the slice, in order
	next       int           // the first series after it
	rowLimit   int64         // of the next slice
	mostPoints int64         // of a slice, about
}

// listedSeries is a series as the keys of its rows show it.
type listedSeries struct {
	group []byte // its key
	span  []byte
	rows  int64
}

// listedBytes is about the memory of a listed series without its span: a group's description, and a place in a map.
const listedBytes = 300

// mayBeSliced reports whether a request may be read in slices if its answer has one series in each group.
func mayBeSliced(r *stage.Request) bool {
	// Rows are deleted once all points are known, and what is missing must be said before the first.
	return !r.Query.Delete && !r.Query.AllowPartial && r.Plan.Rows(r.Plan.From, r.Plan.To) <= maxSliceKeys
}

// isLarge reports whether the rows of a plan are known to be so many that they should be read in slices.
func (e *Engine) isLarge(ctx context.Context, p *scanplan.Plan) (bool, error) {
	size, err := e.cfg.Exec.DiskBytes(ctx, p)
	return size >= e.cfg.Slices.LeastBytes, err
}

// tooLargeAtOnce reports whether reading rows at once needed more memory than one sub-query may have.
func tooLargeAtOnce(err error) bool {
	var merged *merge.MemoryError
	var held *operator.LimitError
	return errors.As(err, &merged) || errors.As(err, &held) && held.What == operator.Memory
}

// needsSlices reports whether an answer of few values was refused for the memory of the points that they are computed
// of: a request may have too little, too.
func needsSlices(err error) bool {
	var large *memory.LimitError
	return tooLargeAtOnce(err) || errors.As(err, &large)
}

// windowsInSlices answers a sub-query of windows slice by slice. Windows that are longer than parts need all points
// here, but not those of all series at once.
//
// refused is why they were not read at once. It stands where not even the values fit.
func (e *Engine) windowsInSlices(ctx context.Context, r *stage.Request,
	refused error) ([]Result, dispatch.Stats, error) {
	o, ok, err := e.openSliced(ctx, r)
	if err != nil || !ok {
		return nil, o.stats, errors.Join(err, refused)
	}
	defer o.source.free()
	values := int64(len(o.results)) * int64(r.Plan.Window.Len()) * merge.PointBytes
	if memory.Reserve(ctx, values) != nil {
		return nil, o.stats, refused
	}
	memory.Release(ctx, values)
	var large *memory.LimitError
	if s, ok := o.source.(*sliced); ok && errors.As(refused, &large) { // values have their part of it, too
		s.mostPoints = min(s.mostPoints, (large.Limit-values)/(8*merge.PointBytes))
		s.rowLimit = max(1, min(s.rowLimit, s.mostPoints/encoding.RowSeconds)) // rows may have a point each second
	}
	for i := range o.results {
		if o.results[i].Points, err = o.source.points(ctx, i, &o.stats); err != nil {
			return nil, o.stats, err
		}
	}
	return o.results, o.stats, nil
}

// openSliced lists the groups of a sub-query that may be read in slices. ok is false if it must be read at once.
func (e *Engine) openSliced(ctx context.Context, r *stage.Request) (o openSubQuery, ok bool, err error) {
	list, ok, err := e.listSeries(ctx, r)
	if err != nil || !ok {
		return o, false, err
	}
	o.results, err = e.nameGroups(ctx, r.Query, subPlan{r.Sub, r.Compiled}, describeSeries(r.Plan.Schema, list))
	request := r.InOneBudget()
	request.Uncached = true
	o.source = &sliced{engine: e, request: request, series: list, rowLimit: e.cfg.Slices.FirstRows,
		mostPoints: e.cfg.Slices.Points}
	return o, true, err
}

// listSeries returns the series of a request in the order of its groups. ok is false if groups have several.
func (e *Engine) listSeries(ctx context.Context, r *stage.Request) (list []listedSeries, ok bool, err error) {
	schema := r.Plan.Schema
	index := map[string]int{} // in list, by span; -1 for a series that is not in the answer
	var span []byte
	err = e.cfg.Exec.Keys(ctx, r.Plan, func(keys [][]byte) error {
		for _, key := range keys {
			span = schema.AppendSpan(span[:0], key)
			i, known := index[string(span)]
			if !known {
				var err error
				if i, err = e.addListed(ctx, r, &list, span); err != nil {
					return err
				}
				index[string(span)] = i
			}
			if i >= 0 {
				list[i].rows++
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}

	slices.SortFunc(list, func(a, b listedSeries) int {
		return cmp.Or(bytes.Compare(a.group, b.group), bytes.Compare(a.span, b.span))
	})
	for i := range list {
		if i > 0 && bytes.Equal(list[i-1].group, list[i].group) { //fault:group-cut-into-slices TestLaw_sliced
			return nil, false, nil
		}
	}
	return list, true, nil
}

// addListed adds a series to the list if it is in the answer, and returns its place there, or -1.
func (e *Engine) addListed(ctx context.Context, r *stage.Request, list *[]listedSeries, span []byte) (int, error) {
	group, ok := r.Plan.AppendGroupKey(nil, span)
	if ok && r.Keep != nil {
		var err error
		if ok, err = r.Keep(span); err != nil {
			return 0, err
		}
	}
	if err := memory.Reserve(ctx, int64(2*len(span))+listedBytes); err != nil {
		return 0, err
	}
	if !ok {
		return -1, nil
	}
	*list = append(*list, listedSeries{group: group, span: bytes.Clone(span)})
	return len(*list) - 1, nil
}

// describeSeries returns the groups of series, without points.
func describeSeries(schema encoding.Schema, list []listedSeries) []merge.Group {
	groups := make([]merge.Group, len(list))
	for i, s := range list {
		groups[i] = merge.Group{
			Key: s.group, Spans: [][]byte{s.span},
			Tags:   schema.AppendPairs(nil, schema.SpanTags(s.span)),
			TSUIDs: []encoding.UID{schema.SpanTSUID(s.span)},
		}
	}
	return groups
}

// points returns those of group i, and reads the slice that begins there if it is not in memory. Groups are
// read in ascending order.
func (s *sliced) points(ctx context.Context, i int, stats *dispatch.Stats) (encoding.Points, error) {
	if s.slice == nil || i >= s.next {
		if err := s.read(ctx, i, stats); err != nil {
			return encoding.Points{}, err
		}
	}
	// A series without points in its rows may be missing from the slice, and a group that is new may be in it.
	at, found := slices.BinarySearchFunc(s.groups, s.series[i].group,
		func(g merge.Group, key []byte) int { return bytes.Compare(g.Key, key) })
	if !found {
		return encoding.Points{}, nil
	}
	return s.slice.points(ctx, at, stats)
}

// read reads the slice that begins with a series.
func (s *sliced) read(ctx context.Context, first int, stats *dispatch.Stats) error {
	s.free()
	plan := *s.request.Plan
	hours := plan.Rows(plan.From, plan.To)
	var rows int64
	plan.TSUIDs = nil
	for s.next = first; s.next < len(s.series); s.next++ {
		n := s.next - first
		if n > 0 && (rows+s.series[s.next].rows > s.rowLimit || (int64(n)+1)*hours > maxSliceKeys) {
			break
		}
		rows += s.series[s.next].rows
		plan.TSUIDs = append(plan.TSUIDs, plan.Schema.SpanTSUID(s.series[s.next].span))
	}
	// Two spans with the aggregator none may be one series, under two salts.
	slices.SortFunc(plan.TSUIDs, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
	plan.TSUIDs = slices.CompactFunc(plan.TSUIDs, func(a, b encoding.UID) bool { return bytes.Equal(a, b) })

	read, err := s.readPlan(ctx, s.request.WithScan(&plan))
	stats.Add(read)
	if err != nil {
		return err
	}
	points := s.mostPoints
	if plan.MaxBytes > 0 {
		points = min(points, plan.MaxBytes/(4*merge.PointBytes)) // as points come and as they are merged, twice over
	}
	s.rowLimit = min(2*s.rowLimit, max(1, points*rows/max(1, read.Points)))
	return nil
}

// readPlan reads a slice. If it has off-hour rows, which hold points of other rows' hours, all stages make its groups.
func (s *sliced) readPlan(ctx context.Context, r *stage.Request) (dispatch.Stats, error) {
	whole, stats, err := s.engine.readWhole(ctx, r)
	var offHour *operator.OffHourError
	if errors.As(err, &offHour) { //fault:off-hour-row-in-slices TestSliced_offHour
		a, err := s.engine.groups(ctx, r)
		if err == nil {
			s.slice, s.groups = madeGroups(a.Groups), a.Groups
		}
		return a.Stats, err
	}
	if err == nil {
		s.slice, s.groups = whole, whole.groups.Described
	}
	return stats, err
}

// madeGroups are groups with their points.
type madeGroups []merge.Group

func (m madeGroups) points(_ context.Context, i int, _ *dispatch.Stats) (encoding.Points, error) {
	return m[i].Points, nil
}

func (m madeGroups) free() {}

// free releases the slice in memory.
func (s *sliced) free() {
	if s.slice != nil {
		s.slice.free()
		s.slice = nil
	}
}
