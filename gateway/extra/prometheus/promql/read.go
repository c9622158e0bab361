package promql

import (
	"context"
	"fmt"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"downpour/pushdown/process/memory"
)

// Matcher is a condition on a label, by the number that its type has in Prometheus' messages.
type Matcher struct {
	Type        int
	Name, Value string
}

// matcherTypes are the types by their numbers.
var matcherTypes = []labels.MatchType{
	labels.MatchEqual, labels.MatchNotEqual, labels.MatchRegexp, labels.MatchNotRegexp,
}

// Found is a series with its points.
type Found struct {
	Labels
	it iterator
}

// Select returns the series that satisfy all matchers, in the order of their labels, with their points from start to
// end. The errors are those of Query.
func (e *Engine) Select(ctx context.Context, src Source, matchers []Matcher, start, end int64) ([]Found, error) {
	of, err := compileMatchers(ctx, matchers)
	if err != nil {
		return nil, err
	}
	read, err := selectSeries(ctx, src, of, Read{Start: start, End: end})
	found := make([]Found, len(read))
	for i := range read {
		found[i] = Found{Labels{read[i].labels}, iterator{points: read[i].points, at: -1}}
	}
	return found, err
}

// compileMatchers compiles matchers of bounded cost.
func compileMatchers(ctx context.Context, matchers []Matcher) (all []*labels.Matcher, err error) {
	steps, any := 0, false
	for _, m := range matchers {
		if m.Type < 0 || m.Type >= len(matcherTypes) {
			return nil, &BadDataError{fmt.Errorf("got a matcher of the type %d, want 0 to 3", m.Type)}
		}
		if steps += stepsOfText(m.Value); m.Type > 1 && steps > maxSteps {
			return nil, tooManySteps()
		}
		if err := memory.Reserve(ctx, int64(steps)*stepBytes); err != nil {
			return nil, err
		}
		compiled, err := labels.NewMatcher(matcherTypes[m.Type], m.Name, m.Value)
		if err != nil {
			return nil, &BadDataError{err}
		}
		any = any || !compiled.Matches("")
		all = append(all, compiled)
	}
	if !any {
		return nil, &BadDataError{errMatchesAll}
	}
	return all, nil
}

// Next goes to the next point, and reports whether there is one.
func (f *Found) Next() bool { return f.it.Next() != chunkenc.ValNone }

// At returns the point.
func (f *Found) At() (ms int64, v float64) { return f.it.At() }

// Len returns how many points there are.
func (f *Found) Len() int { return f.it.points.Len() }

// chunkPoints is how many points a chunk has, as in Prometheus.
const chunkPoints = 120

// Chunk returns the next points as an XOR chunk with its first and its last time; ok is false after the last one.
func (f *Found) Chunk() (first, last int64, data []byte, ok bool) {
	chunk := chunkenc.NewXORChunk()
	app, err := chunk.Appender()
	if err != nil {
		return 0, 0, nil, false // an empty chunk has one
	}
	n := 0
	for n < chunkPoints && f.Next() {
		ms, v := f.At()
		if n == 0 { //fault:promql-chunk-first-time TestPromQL_remoteRead
			first = ms
		}
		app.Append(0, ms, v)
		last = ms
		n++
	}
	return first, last, chunk.Bytes(), n > 0
}
