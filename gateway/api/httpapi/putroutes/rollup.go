package putroutes

import (
	"context"
	"errors"
	"net/http"

	"downpour/gateway/write"
)

// rollupPoint is one rollup or pre-aggregate of a body. Source: RollUpDataPoint.
type rollupPoint struct {
	Metric     string            `json:"metric"`
	Timestamp  timestamp         `json:"timestamp"`
	Value      string            `json:"value"`
	Tags       map[string]string `json:"tags"`
	Interval   *string           `json:"interval"`
	Aggregator *string           `json:"aggregator"`
	GroupBy    *string           `json:"groupByAggregator"`
}

// rollupEcho is a refused rollup as the parameter details shows it.
type rollupEcho struct {
	Metric     string            `json:"metric"`
	Timestamp  timestamp         `json:"timestamp"`
	Value      string            `json:"value"`
	Tags       map[string]string `json:"tags,omitzero"`
	Interval   *string           `json:"interval,omitempty"`
	Aggregator *string           `json:"aggregator,omitempty"`
	GroupBy    *string           `json:"groupByAggregator,omitempty"`
}

func (p *rollupPoint) echo() any {
	return rollupEcho(*p)
}

// text returns a member's text, "" if it was not given.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// point returns the point for the writer. It makes the checks that OpenTSDB makes before it reads
// the configuration; the writer makes the rest. Source: RollUpDataPoint.validate.
func (p *rollupPoint) point() (*write.RollupPoint, error) {
	out := &write.RollupPoint{
		Interval:   text(p.Interval),
		Aggregator: text(p.Aggregator),
		GroupBy:    text(p.GroupBy),
		Grouped:    p.GroupBy != nil,
	}
	out.Metric, out.Time = p.Metric, p.Timestamp.time()
	switch {
	case out.Metric == "":
		return nil, write.ErrNoMetric
	case out.Time <= 0:
		return nil, write.ErrTimestamp
	case p.Value == "":
		return nil, write.ErrNoValue
	case len(p.Tags) == 0:
		return nil, write.ErrNoTags
	case out.GroupBy == "" && out.Interval == "": // a pre-aggregate needs neither this nor the next
		return nil, errors.New("Missing interval")
	case out.GroupBy == "" && out.Aggregator == "":
		return nil, errors.New("Missing aggregator")
	}

	var err error
	if out.Value, err = write.ParseValue(p.Value); err != nil {
		return nil, err
	}
	out.Tags = sortedTags(p.Tags)
	return out, nil
}

// rollup handles /api/rollup. It answers with success once the values are durable.
// Source: RollupDataPointRpc.execute.
func (h *Handlers) rollup(w http.ResponseWriter, r *http.Request) error {
	points, err := readDecoded[rollupPoint](w, r)
	if err != nil {
		return h.unread(r, err)
	}

	return h.storeAndAnswer(w, r, func(ctx context.Context) *putResult {
		// The points go to the writers of their tables, none to that of raw data.
		none := h.Writer.RequestBatch(0)
		return h.storeEach(ctx, none, len(points),
			func(i int) (*write.Batch, error) { return h.addRollup(ctx, &points[i]) },
			func(i int) refused { return &points[i] })
	})
}

// addRollup adds one value to a batch. The point then has the tags that are written, which
// an error shows.
func (h *Handlers) addRollup(ctx context.Context, p *rollupPoint) (*write.Batch, error) {
	point, err := p.point()
	if err != nil {
		return nil, err
	}
	batch, err := h.Rollups.Add(ctx, point)
	for _, t := range point.Tags {
		p.Tags[t.K] = t.V
	}
	return batch, err
}
