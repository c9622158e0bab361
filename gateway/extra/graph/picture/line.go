package picture

import (
	"math"

	"downpour/encoding"
	"downpour/gateway/extra/graph"
)

// samples are the points of a line: times in ms, ascending, and values, none NaN.
type samples interface {
	Len() int
	// At returns a point; ok is false for one that is to be passed over.
	At(i int) (ms, value float64, ok bool)
}

// stored are samples as they were read.
type stored struct{ *encoding.Points }

// At returns a point. gnuplot gets whole seconds; here the milliseconds stay.
func (s stored) At(i int) (ms, value float64, ok bool) {
	t, v := s.Points.At(i)
	value = v.Double()
	return float64(t), value, finite(value)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// made are samples that were computed.
type made []sample

type sample struct{ ms, value float64 }

// Len is the number of samples.
func (m made) Len() int { return len(m) }

// At returns a sample. Sums and curves can leave the range of doubles.
func (m made) At(i int) (ms, value float64, ok bool) { return m[i].ms, m[i].value, finite(m[i].value) }

// sampleBytes is what a sample takes.
const sampleBytes = 16

// line is a series as it is drawn.
type line struct {
	name    string
	onRight bool
	look    look
	samples samples
	inside  int     // samples between the picture's times
	low     float64 // of those inside; low > high without any
	high    float64
}

// checkEvery is after how many points the guard is asked.
const checkEvery = 1 << 16

// lines makes the lines of the series: smoothed if requested, and measured.
func (p *Picture) lines(guard Guard) ([]line, error) {
	out := make([]line, len(p.Series))
	for i := range p.Series {
		s := &p.Series[i]
		l := line{name: s.Name, onRight: s.OnRight, look: lookOf(i), samples: stored{&s.Points}}
		if p.Options.Smooth != "" {
			var err error
			if l.samples, err = p.smoothed(l.samples, guard); err != nil {
				return nil, err
			}
		}
		if err := l.measure(p, guard); err != nil {
			return nil, err
		}
		out[i] = l
	}
	return out, nil
}

// measure finds the values that the line has inside the picture. A logarithmic axis shows
// only those above 0.
func (l *line) measure(p *Picture, guard Guard) error {
	log := p.axis(l.onRight).Log
	l.low, l.high = math.Inf(1), math.Inf(-1)
	for i := range l.samples.Len() {
		if i%checkEvery == 0 {
			if err := guard.Check(); err != nil {
				return err
			}
		}

		ms, v, ok := l.samples.At(i)
		if !ok || !p.contains(ms) {
			continue
		}
		l.inside++
		if !log || v > 0 {
			l.low, l.high = min(l.low, v), max(l.high, v)
		}
	}
	return nil
}

// contains reports whether a time is between the picture's.
func (p *Picture) contains(ms float64) bool {
	return ms >= float64(p.Start) && ms <= float64(p.End)
}

// axis returns the options of an axis.
func (p *Picture) axis(right bool) *graph.Axis {
	if right {
		return &p.Options.Right
	}
	return &p.Options.Left
}
