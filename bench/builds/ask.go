package builds

import (
	"context"
	"fmt"
	"time"

	"downpour/bench/peer"
	"downpour/bench/report"
)

// askUncached asks the questions that read every row.
func (o *round) askUncached(ctx context.Context) error {
	return o.askAll(ctx, o.scene.name, "memory of the gateway while it is asked, peak")
}

// askPushdown asks the same questions, answered by pushdown servers.
func (o *round) askPushdown(ctx context.Context) error {
	return o.askAll(ctx, "HBase, pushdown", "memory of gateway and pushdown server, peaks")
}

// askAll asks all questions and records the peaks of memory. store and memory are what the
// report calls the store and the row of memory.
func (o *round) askAll(ctx context.Context, store, memory string) error {
	if err := o.awaitIdle(ctx); err != nil {
		return err
	}

	for _, s := range o.sides {
		for _, p := range s.processes() {
			if err := p.ResetPeak(); err != nil {
				// The process has just been started, so its peak is about the same.
				o.cfg.Report.Note("peaks of memory of queries count from the start of the process: %v", err)
			}
		}
	}

	for _, q := range questions {
		if err := o.ask(ctx, store, q); err != nil {
			return err
		}
	}

	return o.peaks(memoryQueries, store, memory)
}

// askAgain asks queries that gateways may answer from the result cache, and measures
// live queries.
func (o *round) askAgain(ctx context.Context) error {
	if err := o.awaitIdle(ctx); err != nil {
		return err
	}
	for _, q := range cacheableQuestions {
		if err := o.ask(ctx, o.scene.name, q); err != nil {
			return err
		}
	}

	// On HBase a point is shown only after 1 to 2 s, when rows are next scanned, which hides
	// all else.
	if o.scene.hbase || !o.cfg.wants(frames) && !o.cfg.wants(framesCost) {
		return nil
	}
	return o.measureFrames(ctx)
}

// ask measures a question. In the first round it compares the answers of both builds.
func (o *round) ask(ctx context.Context, store string, q question) error {
	if !o.cfg.wants(q.row) {
		return nil
	}
	e := o.rows.entry(q.row, store, q.what, report.Seconds)
	if e.err != nil {
		return nil // the answers differed in the first round
	}

	// The row keeps its error, and the other rows are still measured: only an interrupt ends
	// the round.
	if e.err = o.agree(ctx, q); e.err != nil {
		return ctx.Err()
	}

	longest, err := o.warm(ctx, q)
	if err != nil {
		return fmt.Errorf("%s: %w", q.row, err)
	}
	turns, count := o.cfg.divide(longest)
	// Each turn goes on with the variants behind those of the turn before.
	samples, err := o.alternate(turns, func(s *side, turn int) (sample, error) {
		return s.ask(ctx, q, o.cfg.Data, (o.index*o.cfg.Turns+turn)*count, count)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", q.row, err)
	}

	e.add(samples)
	return nil
}

// warm asks both builds a question without measuring it. It returns how long the slower
// one takes.
func (o *round) warm(ctx context.Context, q question) (longest time.Duration, err error) {
	for _, s := range o.sides {
		if _, err := s.ask(ctx, q, o.cfg.Data, 0, max(q.warm, 1)); err != nil {
			return 0, err
		}
		one, err := s.ask(ctx, q, o.cfg.Data, 0, 1)
		if err != nil {
			return 0, err
		}
		longest = max(longest, time.Duration(one.amount*float64(time.Second)))
	}
	return longest, nil
}

// maxAsks bounds how often a question is asked in one turn.
const maxAsks = 200

// divide returns in how many turns a question that takes so long is asked, and how often
// in each. It is the same for both builds, so that both do the same work.
func (c *Config) divide(takes time.Duration) (turns, count int) {
	takes = max(takes, time.Microsecond)
	times := func(whole time.Duration) int { return int((whole + takes - 1) / takes) }

	// A slow question is asked once a turn: as often as fits into the time of all turns, at
	// least twice. The number is even, so that each build is first as often as second; only if
	// Turns is 1 it is 1.
	turns = times(time.Duration(c.Turns) * c.TurnFor)
	turns = min(max(turns+turns%2, 2), max(c.Turns-c.Turns%2, 1))
	return turns, min(max(times(c.TurnFor), 1), maxAsks)
}

// agree compares the answers of both builds in the first round.
func (o *round) agree(ctx context.Context, q question) error {
	// A question as Arrow is also a row as JSON, which is compared.
	if o.index > 0 || q.opaque || q.accept != "" {
		return nil
	}
	for _, one := range q.of(o.cfg.Data, 0) {
		if err := peer.AgreeInValues(ctx, o.sides[0].server, o.sides[1].server, one); err != nil {
			return err
		}
	}
	return nil
}
