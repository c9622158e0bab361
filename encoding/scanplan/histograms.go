package scanplan

import (
	"fmt"

	"downpour/encoding"
)

// Histograms makes a plan read histograms in place of points. Each is added to those of
// its group at its time, or in its bucket if the plan downsamples: no series is
// interpolated. The wire form of a plan of points has no such field.
// Source: HistogramSpanGroup, HistogramAggregationIterator.
type Histograms struct {
	// Codec is the number before each histogram in its cell. A cell with another one
	// fails the query, and with NoCodec each does.
	Codec int
	// Percentiles and Buckets are what the answer has of each histogram: percentiles, ascending,
	// and the counts of its buckets. Parts always ship whole histograms.
	Percentiles []float32 `json:",omitempty"`
	Buckets     bool      `json:",omitempty"`
}

// NoCodec is the codec of a gateway for which histograms are not configured.
const NoCodec = -1

// validateHistograms checks codec and percentiles, and that nothing else of the plan is for
// points alone: histograms can only be summed.
func (p *Plan) validateHistograms() error {
	h := p.Histograms
	switch {
	case h == nil:
		return nil
	case h.Codec < NoCodec || h.Codec > encoding.MaxHistogramCodec:
		return fmt.Errorf("scanplan: histogram codec %d, want %d to %d", h.Codec, NoCodec, encoding.MaxHistogramCodec)
	case p.Aggregator != "sum" && p.Aggregator != None:
		return fmt.Errorf("scanplan: histograms with aggregator %q, want sum or none", p.Aggregator)
	case p.Downsample != nil && p.Downsample.Function != "sum":
		return fmt.Errorf("scanplan: histograms with downsample function %q, want sum", p.Downsample.Function)
	case p.Rate != nil || p.Fix != 0 || p.Rollup != nil:
		return fmt.Errorf("scanplan: histograms with a rate, with fixes of points or of a rollup")
	}

	for i, x := range h.Percentiles {
		// In this form the condition refuses NaN too.
		if !(x >= 0 && x <= 100) || i > 0 && h.Percentiles[i-1] > x {
			return fmt.Errorf("scanplan: percentiles %v, want them ascending from 0 to 100", h.Percentiles)
		}
	}
	return nil
}
