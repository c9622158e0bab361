package dispatch

import (
	"bytes"
	"slices"
	"sort"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// part is an interval of a plan's keys that is to be executed at one place.
type part struct {
	Range        scanplan.KeyRange
	RegionServer string // region server that holds the first row, host:port; "" on the embedded store
	Mode         scanplan.Mode
	Bytes        int64 // estimate of the bytes it will read; 0 where nothing is known
	Here         bool  // this process executes it first, and a server if it fails: see readsHere
}

// cutGoal is the number of parts into which a plan should be cut, and the known sizes of its rows.
type cutGoal struct {
	parts int             // about this many keep all places busy
	path  operator.Access // access path of the first range, which is like that of all
	bytes cumulativeBytes // of the plan's hours; nil where nothing is known
}

// cutPlan cuts a plan's ranges into parts: at region boundaries, and between hours
// until there are about as many parts as wanted, of about equally many bytes where
// these are known, else of equally many hours. regions are in key order and may
// cover more than the plan. The parts are exactly the plan's ranges, ascending.
//
// If buckets extend over the end of a row, every cut leaves buckets open, whose points
// must be shipped; calendar buckets cannot be cut at all. Such a plan is cut into its
// salt buckets only. One whose hours are read side by side is not cut.
func cutPlan(plan *scanplan.Plan, regions []store.Region, goal cutGoal, choice aggregationChoice) []part {
	var parts []part
	betweenBuckets := cutsBetweenBuckets(plan)
	for _, r := range plan.Ranges {
		regions := overlapping(regions, r.Start, r.Stop)
		var borders [][]byte
		if betweenBuckets && !choice.whole {
			borders = regionBorders(r, regions)
			// A range with few rows to read, or none, is not worth more than one scan.
			if !goal.path.Nothing && !goal.path.Few {
				borders = append(borders, goal.hourBorders(plan, r, borders)...)
			}
			// The halves of an hour of histograms can be added up; all else needs whole hours.
			if choice.partial && plan.Histograms == nil {
				borders = cutAroundSplitHours(plan, r, borders)
			}
			slices.SortFunc(borders, bytes.Compare)
			borders = slices.CompactFunc(borders, bytes.Equal)
		}

		from := len(parts)
		parts = appendParts(parts, r, borders, regions)
		goal.estimateBytes(plan, parts[from:])
	}

	if choice.aligned && !wholeHours(plan, parts) {
		choice = aggregationChoice{}
	}
	for i := range parts {
		parts[i].Mode = choice.mode(plan, parts[i].Range)
	}
	return parts
}

// wholeHours reports whether each part is of whole hours.
func wholeHours(plan *scanplan.Plan, parts []part) bool {
	for i := range parts {
		if _, whole := plan.WholeHours(parts[i].Range); !whole {
			return false
		}
	}
	return true
}

// cutsBetweenBuckets reports whether every cut between rows is a cut between buckets, or harmless:
// histograms of one bucket are added up across parts.
func cutsBetweenBuckets(p *scanplan.Plan) bool {
	return p.Downsample == nil || p.Histograms != nil || p.BucketsInRows()
}

// hourBorders returns the keys between hours at which a range is cut in addition to the region
// boundaries inside it.
func (g cutGoal) hourBorders(plan *scanplan.Plan, r scanplan.KeyRange, regionBorders [][]byte) [][]byte {
	if g.bytes != nil {
		return bordersByBytes(plan, r, regionBorders, g.bytes, g.partBytes(plan))
	}
	partsPerRange := (g.parts + len(plan.Ranges) - 1) / len(plan.Ranges)
	return bordersByHours(plan, r, partsPerRange)
}

// partBytes returns how many bytes a part of the plan should have, all salt buckets
// counted together as cumulativeBytes does. That is the total divided by the wanted
// number of parts, raised if parts would not be worth their cost and lowered if they
// would take too long; but every slot gets a part, if parts of minPartBytes allow it.
func (g cutGoal) partBytes(plan *scanplan.Plan) float64 {
	total, parts := g.bytes.total(), float64(g.parts)
	size := min(max(total/parts, goodPartBytes), maxPartBytes)
	size = max(min(size, total*partsPerSlot/parts), minPartBytes)
	return max(size, total/maxParts) * float64(len(plan.Ranges))
}

// estimateBytes sets how many bytes the parts will read. Salt buckets are taken to
// be equally full.
func (g cutGoal) estimateBytes(plan *scanplan.Plan, parts []part) {
	if g.bytes == nil {
		return
	}
	for i := range parts {
		from, to := hourPositions(plan, parts[i].Range)
		parts[i].Bytes = int64((g.bytes.before(to) - g.bytes.before(from)) / float64(len(plan.Ranges)))
	}
}

// regionBorders returns the first keys of the regions that begin inside a range.
func regionBorders(r scanplan.KeyRange, regions []store.Region) (borders [][]byte) {
	for _, region := range regions {
		if strictlyInside(r, region.Start) {
			borders = append(borders, region.Start)
		}
	}
	return borders
}

// strictlyInside reports whether key is in r and is not its start.
func strictlyInside(r scanplan.KeyRange, key []byte) bool {
	return bytes.Compare(key, r.Start) > 0 && (len(r.Stop) == 0 || bytes.Compare(key, r.Stop) < 0)
}

// bordersByHours divides a range into n ranges of about equally many hours.
func bordersByHours(plan *scanplan.Plan, r scanplan.KeyRange, n int) (borders [][]byte) {
	// A range that is not inside one salt bucket has no key between two of its hours.
	if len(r.Start) < plan.Schema.BaseTimeAt() {
		return nil
	}
	hours := (plan.To - plan.From) / encoding.RowSeconds
	stretches := min(int64(n), hours)
	for i := int64(1); i < stretches; i++ {
		if key := hourKey(plan, r, int(hours*i/stretches)); strictlyInside(r, key) {
			borders = append(borders, key)
		}
	}
	return borders
}

// bordersByBytes divides a range between hours into ranges of about partBytes bytes. Each count
// starts at a region boundary, where a part ends anyway.
func bordersByBytes(plan *scanplan.Plan, r scanplan.KeyRange, regionBorders [][]byte, w cumulativeBytes,
	partBytes float64) (borders [][]byte) {
	// A range that is not inside one salt bucket has no key between two of its hours.
	if len(r.Start) < plan.Schema.BaseTimeAt() {
		return nil
	}
	start := r.Start
	for _, end := range append(slices.Clone(regionBorders), r.Stop) {
		from, to := hourPositions(plan, scanplan.KeyRange{Start: start, Stop: end})
		for _, hour := range w.cuts(plan.From/encoding.RowSeconds, from, to, partBytes) {
			// A row of rollups holds many hours: its first key may be that of the range.
			if key := hourKey(plan, r, hour); strictlyInside(r, key) {
				borders = append(borders, key)
			}
		}
		start = end
	}
	return borders
}

// hourKey returns the first key of the row that holds the plan's i-th hour, in a range's
// salt bucket.
func hourKey(plan *scanplan.Plan, r scanplan.KeyRange, i int) []byte {
	return plan.HourKey(r, plan.RowBase(plan.From+int64(i)*encoding.RowSeconds))
}

// appendParts cuts a range at borders, which are ascending and inside it.
func appendParts(parts []part, r scanplan.KeyRange, borders [][]byte, regions []store.Region) []part {
	start := r.Start
	for _, b := range borders {
		parts = append(parts, part{
			Range:        scanplan.KeyRange{Start: start, Stop: b},
			RegionServer: regionServer(regions, start),
		})
		start = b //fault:cut-loses-a-row TestCut_property
	}
	return append(parts, part{
		Range:        scanplan.KeyRange{Start: start, Stop: r.Stop},
		RegionServer: regionServer(regions, start),
	})
}

// regionServer returns the server of the region that holds key, "" if no region
// does, or if the region has no server, as on the embedded store.
func regionServer(regions []store.Region, key []byte) string {
	after := sort.Search(len(regions), func(i int) bool { return bytes.Compare(regions[i].Start, key) > 0 })
	if after == 0 {
		return ""
	}
	r := regions[after-1]
	if !(store.KeyRange{Start: r.Start, Stop: r.Stop}).Contains(key) {
		return ""
	}
	return r.Server
}
