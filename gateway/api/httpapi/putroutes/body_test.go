package putroutes

import (
	"strings"
	"testing"

	"downpour/gateway/jackson"
	"downpour/gateway/jackson/jacksontest"
)

// readOne reads a body of one point, rollup or histogram.
func readOne[T any](fields func(*T) jacksontest.Fields) func([]byte) (jacksontest.Fields, error) {
	return func(body []byte) (jacksontest.Fields, error) {
		points, err := decodePoints[T](trim(body))
		if err != nil {
			return nil, err
		}
		return fields(&points[0]), nil
	}
}

// unlike lists bodies that are read otherwise than in OpenTSDB.
func unlike(t *testing.T, kind string) map[string]string {
	out := map[string]string{}
	for _, b := range jacksontest.Bodies(t, kind) {
		var in struct {
			TSUID     jackson.Raw `json:"tsuid"`
			Timestamp timestamp   `json:"timestamp"`
		}
		r := jackson.NewReader([]byte(b.Body))
		first, err := r.Next()
		if err == nil {
			err = r.Decode(first, &in)
		}
		_, noTime := jackson.Token(in.Timestamp).AsLong()
		switch {
		case first.Kind == jackson.Null && first.Text != "":
			out[b.Body] = "OpenTSDB refuses it before Jackson reads it"
		case err != nil:
		case r.End() != nil:
			out[b.Body] = "of two objects OpenTSDB stores the first, with success"
		case noTime != nil:
			out[b.Body] = "what is no time costs its point alone"
		case strings.HasPrefix(b.Body, `{"buckets":`) && strings.Contains(b.Body, "null"),
			strings.HasSuffix(b.Body, `:""}}`) && kind == "histogram":
			out[b.Body] = "no count is 0, for OpenTSDB a null"
		case b.Refused && in.TSUID != nil:
			out[b.Body] = "a field that is not used"
		}
	}
	return out
}

// Every field of a put, a rollup and a histogram is read as OpenTSDB reads it.
func TestBodies(t *testing.T) {
	jacksontest.Check(t, "put", readOne(func(p *dataPoint) jacksontest.Fields {
		return jacksontest.Fields{"metric": p.Metric, "timestamp": p.Timestamp.time(), "value": p.Value, "tags": p.Tags}
	}), unlike(t, "put"))
	jacksontest.Check(t, "rollup", readOne(func(p *rollupPoint) jacksontest.Fields {
		return jacksontest.Fields{"metric": p.Metric, "timestamp": p.Timestamp.time(), "value": p.Value, "tags": p.Tags,
			"interval": p.Interval, "aggregator": p.Aggregator, "groupByAggregator": p.GroupBy}
	}), unlike(t, "rollup"))
	jacksontest.Check(t, "histogram", readOne(func(p *histogramPoint) jacksontest.Fields {
		out := jacksontest.Fields{"metric": p.Metric, "timestamp": p.Timestamp.time(), "value": p.Value, "tags": p.Tags,
			"id": p.ID, "underflow": p.Underflow, "overflow": p.Overflow}
		if p.Buckets.given {
			counts := map[string]int64{}
			for i, bounds := range p.Buckets.bounds {
				counts[bounds] = p.Buckets.counts[i]
			}
			out["buckets"] = counts
		}
		return out
	}), unlike(t, "histogram"))
}
