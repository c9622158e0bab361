package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding/batch"
)

// AnswersConfig says which answers are measured.
type AnswersConfig struct {
	Server *peer.Server
	// Metric has a series for each value of the tag host, with integers from
	// Start to Last, in seconds. Nothing is put in the meantime.
	Metric      string
	Start, Last int64
	// Floor, if the tables can be read next to the server, is the bare scan of
	// the same rows.
	Floor *bench.Floor
	// Store names the figures. Rounds are measured in turn.
	Store  string
	Rounds int
}

// answer is one query in one form.
type answer struct {
	what   string
	query  workload.Query
	accept string
	tally  tally
	bytes  int64
}

// tally is what an answer holds: equal for two forms of the same.
type tally struct {
	points int64
	sum    float64
}

// Answers measures the answer with all points of the range, a line a host, as
// Arrow and as JSON, first to last byte; next to them a query that reads the same
// rows for one point, the bare scan where there is one, and the plain copy of as
// many bytes by HTTP on this machine. A larger Arrow answer, of five times as
// many points that a fill policy makes, is measured against its copy alone. Before
// anything is timed, both forms are found to hold the same.
func Answers(ctx context.Context, c AnswersConfig) ([]report.Figure, error) {
	lines := c.query("sum:"+c.Metric+"{host=*}", c.Last+ahead)
	filled := c.query("sum:2s-sum-zero:"+c.Metric+"{host=*}", c.Last) // no further, or there would be more of them
	answers := []*answer{
		{what: "as Arrow", query: lines, accept: batch.StreamMediaType},
		{what: "as JSON", query: lines},
		{what: "as Arrow, filled", query: filled, accept: batch.StreamMediaType},
	}

	for _, a := range answers {
		if err := a.askOnce(ctx, c.Server); err != nil {
			return nil, err
		}
	}

	if answers[0].tally != answers[1].tally {
		return nil, fmt.Errorf("%w: %s has %+v as Arrow, %+v as JSON",
			peer.ErrDiffer, lines, answers[0].tally, answers[1].tally)
	}
	w, err := newWire()
	if err != nil {
		return nil, err
	}
	defer w.close()

	return bench.Interleave(ctx, c.steps(w, answers), 1, c.Rounds, nil)
}

// ahead is how many seconds after the newest point a query ends, and so in the future: the
// answer to one that ends in the past is rendered before it is sent, for the ETag.
const ahead = 86400

func (c AnswersConfig) query(m string, end int64) workload.Query {
	return workload.Query{Path: fmt.Sprintf("/api/query?arrays=true&start=%d&end=%d&m=%s",
		c.Start, end, url.QueryEscape(m))}
}

// steps are what is measured in turn. An answer's time is a multiple of that of
// the copy of its bytes.
func (c AnswersConfig) steps(w *wire, answers []*answer) (steps []bench.Step) {
	points := answers[0].tally.points
	if c.Floor != nil {
		steps = append(steps, bench.Step{
			Name: "bare scan, " + c.Store,
			Work: points,
			Unit: "points",
			Run: bench.Timed(func(ctx context.Context, _ int) error {
				_, err := c.Floor.Scan(ctx, c.Start, c.Last)
				return err
			}),
		})
	}

	one := c.query("sum:0all-count:"+c.Metric, c.Last+ahead)
	steps = append(steps, bench.Step{
		Name: "scan for one point, " + c.Store,
		Work: points,
		Unit: "points",
		Run: bench.Timed(func(ctx context.Context, _ int) error {
			return c.Server.Drain(ctx, one)
		}),
	})
	for _, a := range answers {
		name := fmt.Sprintf("%s points %s, %s", report.Thousands(float64(a.tally.points)), a.what, c.Store)
		wireName := fmt.Sprintf("wire: %s MB, the bytes of %s", report.Thousands(float64(a.bytes)/1e6), name)
		steps = append(steps,
			bench.Step{Name: name, Of: wireName, Work: a.tally.points, Unit: "points",
				Run: bench.Timed(func(ctx context.Context, _ int) error {
					n, err := c.Server.Copy(ctx, a.query, a.accept, io.Discard)
					// Batches are cut by the clock, too.
					if err == nil && math.Abs(float64(n-a.bytes)) > 0.05*float64(a.bytes) {
						err = fmt.Errorf("%w: %d bytes, %d before", peer.ErrDiffer, n, a.bytes)
					}
					return err
				})},
			bench.Step{
				Name: wireName,
				Work: a.tally.points,
				Unit: "points",
				Run: bench.Timed(func(ctx context.Context, _ int) error {
					return w.copy(ctx, a.bytes)
				}),
			})
	}

	return steps
}

// askOnce asks once and counts what the answer holds.
func (a *answer) askOnce(ctx context.Context, server *peer.Server) error {
	// The answer is decoded while it comes; it is never held whole.
	r, w := io.Pipe()
	counted := make(chan error, 1)
	go func() {
		err := a.count(r)
		r.CloseWithError(err)
		counted <- err
	}()

	n, err := server.Copy(ctx, a.query, a.accept, w)
	w.CloseWithError(err)
	if bad := <-counted; bad != nil && err == nil {
		err = fmt.Errorf("%s %s: %w", a.query, a.what, bad)
	}
	a.bytes = n
	if err == nil && a.tally.points == 0 {
		err = fmt.Errorf("%s has no points", a.query)
	}
	return err
}

// count reads an answer of either form and counts its points.
func (a *answer) count(r io.Reader) error {
	if a.accept == "" {
		return a.tally.json(r)
	}
	return batch.ReadResults(r, func(_ []int64, values []float64) error {
		for _, v := range values {
			a.tally.add(v)
		}
		return nil
	})
}

// add counts a value; sums of integers are the same in any order.
func (t *tally) add(v float64) {
	t.points++
	t.sum += v
}

// json counts the points of an answer with arrays, a group at a time.
func (t *tally) json(r io.Reader) error {
	d := json.NewDecoder(r)
	if _, err := d.Token(); err != nil { // the list's bracket
		return err
	}
	for d.More() {
		var group struct{ DPS [][2]float64 }
		if err := d.Decode(&group); err != nil {
			return err
		}
		for _, p := range group.DPS {
			t.add(p[1])
		}
	}

	_, err := d.Token()
	// What stands behind the list is read too: the answer's writer fails on a pipe closed early.
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	return err
}
