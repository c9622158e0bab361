package dispatch

import (
	"bytes"
	"encoding/binary"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// part is a part to be executed and the region server that holds its first row.
type part struct {
	Range  scanplan.KeyRange
	Region string // host:port, "" on the embedded store
	Mode   scanplan.Mode
	Bytes  int64 // that it will read, about; 0 where that is not known
}

// limits say how many pieces there should be, and what is known of the rows.
type limits struct {
	parts int             // about as many keep all places busy
	rows  operator.Access // how the first range's are selected, as those of all
	bytes weights
}

// cut divides a plan's ranges into pieces: at the borders of regions, which are
// in key order and may cover more than the plan, and by bytes, where they are
// known, else by hours, until there are about as many as wanted. The pieces are
// exactly the plan's ranges, ascending.
//
// Where buckets reach over row borders every cut costs open buckets, whose
// points must be shipped, and calendar buckets cannot be cut at all; such a plan
// is cut into its salt buckets only.
func cut(plan *scanplan.Plan, regions []store.Region, want limits, c choice) []part {
	var pieces []part
	cheap, way := cheap(plan), want.rows
	if way.Parts > 0 { // of equally many hours
		want.parts, want.bytes = max(want.parts, min(way.Parts, mostSeeking)*len(plan.Ranges)), nil
	}
	for i := range plan.Ranges {
		r := plan.Ranges[i]
		var borders [][]byte
		if cheap {
			borders = regionBorders(r, regions)
			if !way.Nothing && !way.Few || way.Parts > 0 { // else it is not worth more than one scan
				borders = append(borders, want.borders(plan, r, borders)...)
			}
			if c.partial {
				borders = isolate(plan, r, borders)
			}
			slices.SortFunc(borders, bytes.Compare)
			borders = slices.CompactFunc(borders, bytes.Equal)
		}
		from := len(pieces)
		pieces = appendParts(pieces, r, borders, regions)
		want.estimate(plan, pieces[from:])
	}
	for i := range pieces {
		pieces[i].Mode = c.mode(plan, pieces[i].Range)
	}
	return pieces
}

// cheap tells whether cuts between rows are cuts between buckets.
func cheap(p *scanplan.Plan) bool { return p.Downsample == nil || p.Downsample.DividesHour() }

// mostSeeking bounds into how many pieces a range is cut so that each can seek.
const mostSeeking = 256

// borders are the keys between hours at which a range is cut beside the borders
// of regions in it.
func (l limits) borders(plan *scanplan.Plan, r scanplan.KeyRange, regions [][]byte) [][]byte {
	if l.bytes != nil {
		return sizeBorders(plan, r, regions, l.bytes, l.size(plan))
	}
	return hourBorders(plan, r, (l.parts+len(plan.Ranges)-1)/len(plan.Ranges))
}

// size is how many bytes a piece of the plan should have: as many pieces as are
// wanted, unless they would be too small to be worth their cost, or too large; but
// one for each slot, if that is possible. It counts as weights do, all salt buckets
// together.
func (l limits) size(plan *scanplan.Plan) float64 {
	total, pieces := l.bytes.total(), float64(l.parts)
	size := min(max(total/pieces, goodPart), mostPart)
	size = max(min(size, total*partsPerSlot/pieces), leastPart)
	return max(size, total/mostParts) * float64(len(plan.Ranges))
}

// estimate notes how many bytes pieces will read.
func (l limits) estimate(plan *scanplan.Plan, pieces []part) {
	if l.bytes == nil {
		return
	}
	for i := range pieces {
		from, to := places(plan, pieces[i].Range)
		pieces[i].Bytes = int64((l.bytes.before(to) - l.bytes.before(from)) / float64(len(plan.Ranges)))
	}
}

func regionBorders(r scanplan.KeyRange, regions []store.Region) (borders [][]byte) {
	for _, region := range regions {
		if inside(r, region.Start) {
			borders = append(borders, region.Start)
		}
	}
	return borders
}

// inside tells whether key lies in r and is not its start.
func inside(r scanplan.KeyRange, key []byte) bool {
	return bytes.Compare(key, r.Start) > 0 && (len(r.Stop) == 0 || bytes.Compare(key, r.Stop) < 0)
}

// hourBorders divides a range into n stretches of about equally many hours.
func hourBorders(plan *scanplan.Plan, r scanplan.KeyRange, n int) (borders [][]byte) {
	head := plan.Schema.BaseTimeAt()
	if len(r.Start) < head {
		return nil
	}
	hours := (plan.To - plan.From) / encoding.RowSeconds
	n64 := min(int64(n), hours)
	for i := int64(1); i < n64; i++ {
		if key := hourKey(plan, r, int(hours*i/n64)); inside(r, key) {
			borders = append(borders, key)
		}
	}
	return borders
}

// sizeBorders cuts a range between hours into pieces of about size bytes, counted
// from one border of a region to the next.
func sizeBorders(plan *scanplan.Plan, r scanplan.KeyRange, regions [][]byte, w weights, size float64) (borders [][]byte) {
	if len(r.Start) < plan.Schema.BaseTimeAt() {
		return nil
	}
	at := r.Start
	for _, end := range append(slices.Clone(regions), r.Stop) {
		from, to := places(plan, scanplan.KeyRange{Start: at, Stop: end})
		for _, hour := range w.cuts(plan.From/encoding.RowSeconds, from, to, size) {
			borders = append(borders, hourKey(plan, r, hour))
		}
		at = end
	}
	return borders
}

// hourKey is the first key of the plan's i-th hour in a range's salt bucket.
func hourKey(plan *scanplan.Plan, r scanplan.KeyRange, i int) []byte {
	head := plan.Schema.BaseTimeAt()
	return binary.BigEndian.AppendUint32(bytes.Clone(r.Start[:head]), uint32(plan.From+int64(i)*encoding.RowSeconds))
}

func appendParts(pieces []part, r scanplan.KeyRange, borders [][]byte, regions []store.Region) []part {
	start := r.Start
	for _, b := range borders {
		pieces = append(pieces, part{Range: scanplan.KeyRange{Start: start, Stop: b}, Region: serverOf(regions, start)})
		start = b
	}
	return append(pieces, part{Range: scanplan.KeyRange{Start: start, Stop: r.Stop}, Region: serverOf(regions, start)})
}

// serverOf is the server of the region that holds key.
func serverOf(regions []store.Region, key []byte) string {
	for _, r := range regions {
		if (store.KeyRange{Start: r.Start, Stop: r.Stop}).Contains(key) {
			return r.Server
		}
	}
	return ""
}
