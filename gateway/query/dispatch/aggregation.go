package dispatch

import (
	"bytes"
	"encoding/binary"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// Aggregation says how the parts of a run may answer; see scanplan.Mode.
type Aggregation string

const (
	// PerSeries: series by series, everywhere.
	PerSeries Aggregation = "strict"
	// Auto: states of groups where they ship less and the answer has the same
	// bits; where the merge finds afterwards that it would not, it says so.
	Auto Aggregation = ""
	// PartialAggregation: states of groups wherever a state exists, at the price of the
	// last bits of sums.
	PartialAggregation Aggregation = "partial"
)

// mostBuckets bounds the times of a plan whose parts answer with states: a state
// has a value for each of its part's times, and the sum of a group one for each of
// the plan's, whether there is a point or not. So many take some 10 MB a group:
// five-minute buckets of two and a half years, or seconds of three days.
const mostBuckets = 1 << 18

// choice is how a plan's parts are to answer, and why.
type choice struct {
	partial bool
	reason  string
}

// choose decides for a whole plan. remote tells whether there is a server to
// ship from: in process nothing is shipped, and series by series is as fast.
func choose(plan *scanplan.Plan, how Aggregation, remote bool) choice {
	fn, ok := aggregate.Lookup(plan.Aggregator)
	if !ok {
		return choice{reason: "unknown aggregator"}
	}
	sharing, ok := fn.Mergeability()
	switch {
	case how == PerSeries:
		return choice{reason: "asked for"}
	case !ok:
		return choice{reason: string(plan.Aggregator) + " needs all values of a time at once"}
	case plan.Fix != 0:
		return choice{reason: "OpenTSDB's errors are put right series by series"}
	case plan.Rate != nil:
		return choice{reason: "rates need both points of every series"}
	case !plan.Downsample.DividesHour():
		return choice{reason: "no buckets that divide the hour"}
	case (scanplan.Hours{From: plan.From, To: plan.To}).Grid(plan.Downsample) > mostBuckets:
		return choice{reason: "too many buckets, of which a state has all"}
	case how == PartialAggregation:
		return choice{true, "asked for"}
	case !remote:
		return choice{reason: "nothing is shipped in process"}
	case len(plan.Ranges) == 1 || sharing.AnyOrder || sharing.InOrder:
		return choice{true, "the same bits, less to ship"}
	case sharing.Proven:
		return choice{true, "the same bits if no addition rounds, less to ship"}
	}
	return choice{reason: "the order of salt buckets matters to " + string(plan.Aggregator)}
}

// mode is the mode of one piece: a state of a part of an hour's series would
// have to be added to another part's, so hours that are cut are strict.
func (c choice) mode(plan *scanplan.Plan, r scanplan.KeyRange) scanplan.Mode {
	if _, whole := plan.WholeHours(r); c.partial && whole {
		return scanplan.PartialAggregation
	}
	return scanplan.PerSeries
}

// isolate adds the borders of the hours that a border lies inside of, so that
// only those hours are cut.
func isolate(plan *scanplan.Plan, r scanplan.KeyRange, borders [][]byte) [][]byte {
	head := plan.Schema.SaltWidth + plan.Schema.MetricWidth
	for _, b := range borders {
		var base [4]byte
		copy(base[:], b[min(head, len(b)):])
		t := int64(binary.BigEndian.Uint32(base[:]))
		hour := t - t%encoding.RowSeconds
		if len(b) == head+4 && t == hour {
			continue
		}
		for _, at := range [2]int64{hour, hour + encoding.RowSeconds} {
			key := binary.BigEndian.AppendUint32(bytes.Clone(r.Start[:head]), uint32(at))
			if inside(r, key) {
				borders = append(borders, key)
			}
		}
	}
	return borders
}
