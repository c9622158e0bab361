// Package bench measures Downpour against the systems that people would use
// instead, and against the bare scan of the same rows, the floor that no query
// can go below. Answers are compared before anything is timed.
//
// A workload is a Config and a Run that returns a report; bench/cmd/bench binds
// flags to them:
//
//	Generate  a data set as text
//	Load      a data set into a system, by telnet, HTTP or straight as rows
//	Scan      large queries in this process against the bare scan
//	Replay    recorded or generated queries, closed or open loop
//	Pair      the same queries to two systems in turn
//	Scale     how cost grows with points, series, groups and parts
//
// The table of aims is package scenario; live queries and the Arrow answer are
// package live; two builds of Downpour against each other are package builds. All
// keep their data in places, package place, and ask Questions in turn.
package bench

import (
	"context"
	"fmt"
	"time"

	"downpour/bench/progress"
	"downpour/bench/report"
)

// Step is one thing to measure in turn with others.
type Step struct {
	Name string
	Of   string // name of the step that its time is a multiple of
	Work int64  // what one run does, in Unit
	Unit string
	// Run does it once. It returns how long that took, or 0 for all the time
	// between its call and its end.
	Run func(ctx context.Context, round int) (time.Duration, error)
}

// Timed makes a Run of a function that is measured from call to end.
func Timed(f func(ctx context.Context, round int) error) func(context.Context, int) (time.Duration, error) {
	return func(ctx context.Context, round int) (time.Duration, error) { return 0, f(ctx, round) }
}

// Interleave runs the steps one after another, rounds times, after warm rounds
// (numbered below 0) that do not count: so all meet the same state of the
// machine. Each round begins with another step, so none always runs behind the
// same neighbour.
func Interleave(ctx context.Context, steps []Step, warm, rounds int, p *progress.Progress) ([]report.Figure, error) {
	figures := make([]report.Figure, len(steps))
	for i, s := range steps {
		figures[i] = report.Figure{Name: s.Name, Of: s.Of, Work: s.Work, Unit: s.Unit}
	}

	for round := -warm; round < rounds; round++ {
		for n := range steps {
			i := (n + max(round, 0)) % len(steps)
			took, err := runStep(ctx, steps[i], round)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", steps[i].Name, err)
			}
			if round >= 0 {
				figures[i].Runs = append(figures[i].Runs, took)
			}
			p.Add(1)
		}
	}
	return figures, nil
}

// runStep runs a step once and returns how long it took.
func runStep(ctx context.Context, s Step, round int) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	start := time.Now()
	took, err := s.Run(ctx, round)
	if took == 0 { // the step does not measure itself
		took = time.Since(start)
	}
	return took, err
}
