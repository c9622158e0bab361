package dispatch

import (
	"encoding/binary"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/aggregate"
)

// Aggregation is the form of the answers that the parts of a run may give; see
// scanplan.Mode. The texts are the values of the query parameter mode.
type Aggregation string

const (
	// PerSeries has every part answer with the columns of each series.
	PerSeries Aggregation = "strict"
	// Auto makes parts answer with partial aggregates where that ships less and gives the same bits
	// as PerSeries. If the merge finds that it would not, it fails with merge.ErrOrder.
	Auto Aggregation = ""
	// PartialAggregation makes parts answer with partial aggregates whenever the aggregator has
	// them. The last bits of sums may differ from those of PerSeries.
	PartialAggregation Aggregation = "partial"
)

// maxPartialBuckets bounds the buckets of a plan whose parts answer with partial
// aggregates. Such an answer has a value for each of the part's buckets, and the sum
// of a group one for each of the plan's, whether there is a point or not. At this
// bound a group takes some 10 MB: five-minute buckets of two and a half years, or
// one-second buckets of three days.
const maxPartialBuckets = 1 << 18

// aggregationChoice is what a plan's parts answer with, and why.
type aggregationChoice struct {
	partial bool
	whole   bool // the plan is one part, whose hours are read side by side
	unnamed bool // the answer names no series
	reason  string
	aligned bool // with aligned aggregates, if each part is of whole hours; then partial is false
}

// places is where the parts of a plan can be executed.
type places struct {
	remote     bool            // there is a healthy pushdown server
	before     bool            // one of them is of the release before
	sideBySide bool            // see Config.SideBySide
	path       operator.Access // of the plan's first range
}

// Bounds of a plan whose hours are read side by side, in addition to
// operator.MaxHoursSideBySide. A series contributes to each bucket between its first and
// its last point: with many more buckets than a series has points that would cost more
// than it saves.
const maxBucketsSideBySide = 400

// sideBySideFits reports whether a plan's hours can be read side by side, as one part. It has
// one range, because the series of two would have to be merged in span order.
func (p *places) sideBySideFits(plan *scanplan.Plan) bool {
	if !p.sideBySide || p.remote || len(plan.Ranges) != 1 || skipsRows(p.path) || p.path.Few {
		return false
	}
	hours, ok := plan.WholeHours(plan.Ranges[0])
	return ok && hours.From == plan.From && hours.To == plan.To &&
		(hours.To-hours.From)/encoding.RowSeconds <= operator.MaxHoursSideBySide &&
		hours.Grid(plan.Downsample) <= maxBucketsSideBySide
}

// chooseAggregation decides for a whole plan. In this process nothing is shipped, so that
// per-series aggregation is as fast, unless the hours can be read side by side.
func chooseAggregation(plan *scanplan.Plan, how Aggregation, at places) aggregationChoice {
	if plan.Histograms != nil {
		return chooseHistogramAggregation(plan, how)
	}
	fn, ok := aggregate.Lookup(plan.Aggregator)
	if !ok {
		return aggregationChoice{reason: "unknown aggregator"}
	}

	// Up to the request for partial aggregation it is refused or impossible; after that it
	// is chosen only where it saves something and keeps the bits.
	mergeability, ok := fn.Mergeability()
	switch {
	case plan.Window != nil && plan.Window.Groups != nil:
		return aggregationChoice{reason: "a value of each group, and the points of windows that parts cut"}
	case plan.Window != nil:
		return aggregationChoice{reason: "a value of each window, and the points of windows that parts cut"}
	case how == PerSeries:
		return aggregationChoice{reason: "asked for"}
	case !ok:
		return aggregationChoice{reason: string(plan.Aggregator) + " aggregates nothing"}
	case mergeability.AllAtOnce && (len(plan.Ranges) > 1 || !at.remote || at.before):
		return aggregationChoice{reason: string(plan.Aggregator) + " needs all values of a time at once"}
	case plan.Fix != 0:
		return aggregationChoice{reason: "OpenTSDB's errors are put right series by series"}
	case plan.Rollup != nil:
		return aggregationChoice{reason: "rollups are few values, and their series are shipped"}
	case len(plan.Ranges) == 1 && aggregate.MayAlign(plan) && at.before:
		return aggregationChoice{reason: "no buckets, and there is a pushdown server of the release before"}
	// A plan without buckets costs least where its series have points at the same times. The parts
	// check whether they do.
	case len(plan.Ranges) == 1 && aggregate.MayAlign(plan):
		return aggregationChoice{
			aligned: true,
			reason:  "no buckets: aggregated row by row if all series have points at the same times",
		}
	case plan.Rate != nil:
		return aggregationChoice{reason: "rates need both points of every series"}
	case !plan.Downsample.DividesHour():
		return aggregationChoice{reason: "no buckets that divide the hour"}
	case (scanplan.Hours{From: plan.From, To: plan.To}).Grid(plan.Downsample) > maxPartialBuckets:
		return aggregationChoice{reason: "too many buckets, and a partial aggregate has all of them"}
	case how == PartialAggregation:
		return aggregationChoice{partial: true, reason: "asked for"}
	case at.sideBySideFits(plan):
		return aggregationChoice{partial: true, whole: true, reason: "the same bits, the hours are read side by side"}
	case !at.remote:
		return aggregationChoice{reason: "nothing is shipped in process"}
	// Partial aggregates of few series are no smaller than the series, and cost more to make.
	case at.path.Few:
		return aggregationChoice{reason: "few rows are looked at"}
	// Only parts of several salt buckets share a bucket in time, and the merger adds them in
	// span order: so InOrder is enough.
	case len(plan.Ranges) == 1 || mergeability.AnyOrder || mergeability.InOrder:
		return aggregationChoice{partial: true, reason: "the same bits, less to ship"}
	case mergeability.Proven:
		return aggregationChoice{partial: true, reason: "the same bits if no addition rounds, less to ship"}
	}
	return aggregationChoice{reason: "the order of salt buckets matters to " + string(plan.Aggregator)}
}

// chooseHistogramAggregation decides for a plan of histograms, whose sums any part can
// make: adding histograms is free of order.
func chooseHistogramAggregation(plan *scanplan.Plan, how Aggregation) aggregationChoice {
	switch {
	case how == PerSeries:
		return aggregationChoice{reason: "asked for"}
	case plan.Aggregator == scanplan.None:
		return aggregationChoice{reason: "each series is a group of its own"}
	case plan.Downsample != nil && plan.Downsample.Calendar:
		return aggregationChoice{reason: "the place of calendar buckets depends on each series"}
	}
	return aggregationChoice{partial: true, reason: "histograms add up in any order"}
}

// mode returns the mode of one part. A part that cuts an hour is per-series: otherwise a bucket's
// partial aggregate over some of the hour's series would have to be added to that of another part,
// which is possible only for histograms.
func (c aggregationChoice) mode(plan *scanplan.Plan, r scanplan.KeyRange) scanplan.Mode {
	if plan.Histograms != nil && c.partial {
		return scanplan.PartialAggregation
	}
	if c.aligned {
		return scanplan.Aligned
	}
	if c.whole && c.unnamed {
		return scanplan.PartialWithoutNames
	}
	if _, whole := plan.WholeHours(r); c.partial && whole {
		return scanplan.PartialAggregation
	}
	return scanplan.PerSeries
}

// cutAroundSplitHours adds the borders of each hour that a border divides, so that only that hour
// is per-series and its neighbours are whole.
func cutAroundSplitHours(plan *scanplan.Plan, r scanplan.KeyRange, borders [][]byte) [][]byte {
	head := plan.Schema.SaltWidth + plan.Schema.MetricWidth
	for _, b := range borders {
		// A border may be any key, also one that ends inside the base time: what is
		// missing of it counts as zero.
		var base [4]byte
		copy(base[:], b[min(head, len(b)):])
		t := int64(binary.BigEndian.Uint32(base[:]))
		hour := t - t%encoding.RowSeconds
		if len(b) == head+4 && t == hour {
			continue // between two hours
		}

		for _, at := range [2]int64{hour, hour + encoding.RowSeconds} {
			key := plan.HourKey(r, at)
			if strictlyInside(r, key) {
				borders = append(borders, key)
			}
		}
	}
	return borders
}
