package report

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram counts response times from 1 µs to an hour, to three digits. It is
// for one goroutine; Merge brings several together.
type Histogram struct{ h *hdrhistogram.Histogram }

// NewHistogram returns an empty one.
func NewHistogram() *Histogram {
	return &Histogram{hdrhistogram.New(1, time.Hour.Microseconds(), 3)}
}

// Record counts one time; more than an hour counts as an hour.
func (h *Histogram) Record(d time.Duration) {
	us := min(max(d.Microseconds(), 1), h.h.HighestTrackableValue())
	_ = h.h.RecordValue(us) // within the bounds, so it cannot fail
}

// Merge adds another's counts.
func (h *Histogram) Merge(other *Histogram) { h.h.Merge(other.h) }

// Percentiles of every latency in a report.
var percentiles = []float64{0, 25, 50, 75, 90, 95, 99, 99.9, 100}

// Latency is how long requests took. Response counts from the moment at which a
// request should have been sent, so that a stalled server is charged for all who
// wait; Service counts from when it was. In a closed loop they are the same.
type Latency struct {
	Name     string         `json:"name"`
	Loop     string         `json:"loop"` // "closed, 2 clients" or "open, 20.0 a second"
	Requests int64          `json:"requests"`
	Errors   int64          `json:"errors"`
	Response []PercentileMS `json:"response"`
	Service  []PercentileMS `json:"service"`
	// Answers is what came, where that was counted.
	Answers *Answers `json:"answers,omitempty"`
}

// PercentileMS is one point of a distribution.
type PercentileMS struct {
	Percent float64 `json:"percent"`
	MS      float64 `json:"ms"`
}

// NewLatency takes two histograms into a report.
func NewLatency(name, loop string, response, service *Histogram, errors int64) Latency {
	return Latency{Name: name, Loop: loop, Requests: response.h.TotalCount(), Errors: errors,
		Response: response.percentiles(), Service: service.percentiles()}
}

// percentiles returns the times of the percentages that reports have.
func (h *Histogram) percentiles() []PercentileMS {
	out := make([]PercentileMS, len(percentiles))
	for i, p := range percentiles {
		out[i] = PercentileMS{p, float64(h.h.ValueAtPercentile(p)) / 1000}
	}
	return out
}

// At returns a percentile of the response times; 0 for one that reports do not hold.
func (l Latency) At(percent float64) time.Duration {
	for _, p := range l.Response {
		if p.Percent == percent {
			return time.Duration(p.MS * float64(time.Millisecond))
		}
	}
	return 0
}

// MS writes a duration in milliseconds with three digits.
func MS(d time.Duration) string { return msText(d.Seconds() * 1000) }

// msText writes milliseconds with three digits.
func msText(ms float64) string {
	switch {
	case ms >= 100:
		return thousands(int64(ms+0.5)) + " ms"
	case ms >= 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms >= 1:
		return fmt.Sprintf("%.2f ms", ms)
	}
	return fmt.Sprintf("%.3f ms", ms)
}

// Thousands writes a rate or a count with commas.
func Thousands(x float64) string { return thousands(int64(x + 0.5)) }
