package exec

import (
	"bytes"
	"encoding/binary"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/seek"
	"downpour/pushdown/store"
)

// piece is a part to be executed and the region server that holds its first row.
type piece struct {
	Range  scanplan.KeyRange
	Region string // host:port, "" on the embedded store
	Mode   scanplan.Mode
}

// cut divides a plan's ranges into pieces: at the borders of regions, which are
// in key order and may cover more than the plan, and by hours until there are
// about want of them. The pieces are exactly the plan's ranges, ascending.
//
// Where buckets reach over row borders every cut costs open buckets, whose
// points must be shipped, and calendar buckets cannot be cut at all; such a plan
// is cut into its salt buckets only.
func cut(plan *scanplan.Plan, regions []store.Region, want int, c choice, memory *seek.Memory) []piece {
	var pieces []piece
	for i := range plan.Ranges {
		r := plan.Ranges[i]
		var borders [][]byte
		if cheap(plan) {
			borders = append(regionBorders(r, regions), hourBorders(plan, r, share(plan, want, memory))...)
			if c.partial {
				borders = isolate(plan, r, borders)
			}
			slices.SortFunc(borders, bytes.Compare)
			borders = slices.CompactFunc(borders, bytes.Equal)
		}
		pieces = appendPieces(pieces, r, borders, regions)
	}
	for i := range pieces {
		pieces[i].Mode = c.mode(plan, pieces[i].Range)
	}
	return pieces
}

// cheap tells whether cuts between rows are cuts between buckets.
func cheap(p *scanplan.Plan) bool { return p.Downsample == nil || p.Downsample.DividesHour() }

// mostPieces bounds into how many pieces a range is cut so that each can seek.
const mostPieces = 256

// share is the number of pieces that one range should be cut into by hours. A
// plan that looks at few rows is not worth more than one scan.
func share(plan *scanplan.Plan, want int, memory *seek.Memory) int {
	a := operator.ExplainWith(&scanplan.Part{Plan: *plan, Range: plan.Ranges[0]}, memory)
	if a.Nothing || a.Few && a.Pieces == 0 {
		return 1
	}
	return max((want+len(plan.Ranges)-1)/len(plan.Ranges), min(a.Pieces, mostPieces))
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
	head := plan.Schema.SaltWidth + plan.Schema.MetricWidth
	if len(r.Start) < head {
		return nil
	}
	hours := (plan.To - plan.From) / encoding.RowSeconds
	n64 := min(int64(n), hours)
	for i := int64(1); i < n64; i++ {
		hour := plan.From + hours*i/n64*encoding.RowSeconds
		key := binary.BigEndian.AppendUint32(bytes.Clone(r.Start[:head]), uint32(hour))
		if inside(r, key) {
			borders = append(borders, key)
		}
	}
	return borders
}

func appendPieces(pieces []piece, r scanplan.KeyRange, borders [][]byte, regions []store.Region) []piece {
	start := r.Start
	for _, b := range borders {
		pieces = append(pieces, piece{Range: scanplan.KeyRange{Start: start, Stop: b}, Region: serverOf(regions, start)})
		start = b
	}
	return append(pieces, piece{Range: scanplan.KeyRange{Start: start, Stop: r.Stop}, Region: serverOf(regions, start)})
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
