// Package scenario produces the table of Downpour's aims: how fast it wants to be compared with OpenTSDB 2.4.1 on the
// same HBase tables, with the bare scan of the same rows, and with VictoriaMetrics on storage of its own.
//
// A scenario is data (rows.go): a data set (datasets.go), who is asked (sides.go), and steps such as the questions that
// they are asked (asks.go) or the puts that they are sent (puts.go), each with its rows of the table and what is aimed
// at. One runner makes the data set, starts each side when it is first asked, finds the answers equal before anything
// is timed, measures in turn, and compares with the aims. What is measured in another way is a step that is a function.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"downpour/bench"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
)

// Config says which part of the table is produced, and how.
type Config struct {
	// HBase is used if it is set; otherwise Run starts one and ends it.
	HBase *e2e.HBase
	// Open opens the store at an address such as hbase:127.0.0.1:2181.
	Open func(address string) (store.Store, error)
	// Rows and Scales are what is measured, some of the variables Rows and Scales;
	// empty is all.
	Rows, Scales []string
	// Data is the data set at scale 1x.
	Data workload.Devops
	// Rounds is the number of rounds at scale 1x, BigRounds at the larger ones. The
	// query of one host has several times as many.
	Rounds, BigRounds int
	// Connections is how many connections put at the same time.
	Connections int
	// Seconds is how long one run of dashboards in an open loop lasts.
	Seconds int
	// Pods is the number of series of the rows newseries, firstlook and sparse, HBasePods
	// that of newseries-hbase.
	Pods, HBasePods int
	// Viewers is how many look at the dashboard of the row viewers, and ViewersPoints how many
	// points a second are put in the meantime.
	Viewers, ViewersPoints int
	// LivingDays are the days of data of the row living, up to this hour.
	LivingDays int
	// MemoryHours are the hours of the two data sets of the memory row. The smaller one
	// has the step of Data, the larger one ten times the points.
	MemoryHours int
	// ScanEnv are settings of the gateways that must read every row, such as one that
	// turns off the result cache.
	ScanEnv map[string]string
	// Report takes what is measured. Aims that it holds already are not measured again,
	// so the report of an interrupted run resumes it.
	Report *report.Report
	// Print is called with every aim once it is measured, Save after every
	// group.
	Print func(report.Aim)
	Save  func() error
	// Progress counts seconds, of each group those that it usually takes.
	Progress *progress.Progress
}

// Rows are the names of the rows of the table, in the order of measuring.
var Rows = func() (all []string) {
	for _, sc := range scenarios {
		all = append(all, sc.rows...)
	}
	return all
}()

// Scales are the sizes of the data: the data set, ten times its hours, and ten times
// its hosts.
var Scales = []string{"1x", "10x-points", "10x-series"}

// Validate returns an error for the first field that is wrong.
func (c *Config) Validate() error {
	return errors.Join(c.Data.Validate(), bench.Known("rows", c.Rows, Rows), bench.Known("scales", c.Scales, Scales),
		bench.Positive(map[string]int{
			"rounds": c.Rounds, "big-rounds": c.BigRounds, "connections": c.Connections, "seconds": c.Seconds,
			"memory-hours": c.MemoryHours, "pods": c.Pods, "hbase-pods": c.HBasePods, "viewers": c.Viewers,
			"viewers-points": c.ViewersPoints, "living-days": c.LivingDays,
		}))
}

// dataAt returns the data set at a scale.
func (c *Config) dataAt(scale string) workload.Devops {
	d := c.Data
	switch scale {
	case "10x-points":
		d.Hours *= 10
	case "10x-series":
		d.Hosts *= 10
	}
	return d
}

// roundsAt returns the number of rounds at a scale.
func (c *Config) roundsAt(scale string) int {
	if scale == "1x" {
		return c.Rounds
	}
	return c.BigRounds
}

// scenario is a set of rows that are measured together.
type scenario struct {
	rows    []string
	seconds int64    // how long it usually takes at scale 1x
	big     int64    // and at the larger ones; 0: it is measured at 1x alone
	on      *dataset // that its sides are asked about; nil is none
	steps   []step
}

// step is a part of a scenario.
type step interface {
	run(ctx context.Context, s *stage) error
}

// do is a step that is a function.
type do func(ctx context.Context, s *stage) error

func (f do) run(ctx context.Context, s *stage) error { return f(ctx, s) }

// wanted are steps that run if a row of theirs is wanted.
type wanted struct {
	row   string
	steps []step
}

func (w wanted) run(ctx context.Context, s *stage) error {
	if !s.group.has(w.row) {
		return nil
	}
	return runAll(ctx, s, w.steps)
}

// runAll runs steps until one fails.
func runAll(ctx context.Context, s *stage, steps []step) error {
	for _, one := range steps {
		if err := one.run(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// group is a scenario at a scale, with the rows of it that are measured.
type group struct {
	scenario
	scale string
}

// String names a group by its rows and scale.
func (g group) String() string { return strings.Join(g.rows, "+") + " at " + g.scale }

// has reports whether a row of the group is wanted.
func (g group) has(row string) bool { return slices.Contains(g.rows, row) }

// groups returns all scenarios at all scales, one scale after another.
func groups() (all []group) {
	for i, scale := range Scales {
		for _, sc := range scenarios {
			if i > 0 {
				sc.seconds = sc.big
			}
			if sc.seconds > 0 {
				all = append(all, group{sc, scale})
			}
		}
	}
	return all
}

// chosen returns the groups that the config asks for and the report does not hold yet,
// each with the rows that are wanted.
func (c *Config) chosen(groups []group) (all []group) {
	for _, g := range groups {
		if len(c.Scales) > 0 && !slices.Contains(c.Scales, g.scale) {
			continue
		}
		g.rows = slices.DeleteFunc(slices.Clone(g.rows), func(row string) bool {
			return len(c.Rows) > 0 && !slices.Contains(c.Rows, row) || c.measured(row, g.scale)
		})
		if len(g.rows) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// measured reports whether the report holds a row already.
func (c *Config) measured(row, scale string) bool {
	return slices.ContainsFunc(c.Report.Aims, func(a report.Aim) bool {
		return a.Row == row && a.Scale == scale && a.Missing == ""
	})
}

// Total estimates how long a run takes, in seconds.
func (c *Config) Total() (seconds int64) {
	for _, g := range c.chosen(groups()) {
		seconds += g.seconds
	}
	return seconds
}

// Run measures. It returns an error if something could not be measured or if answers
// differed; an aim that is not met is no error. Report.Left names what an interrupted
// run has not done.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	return run(ctx, cfg, groups())
}

// run measures the groups that are chosen of all. A group that fails does not end it:
// its rows are marked as missing.
func run(ctx context.Context, cfg Config, all []group) error {
	chosen := cfg.chosen(all)
	s := newStage(&cfg)
	defer s.close()

	var failed []error
	for i, g := range chosen {
		cfg.Report.Left = names(chosen[i:])

		err := ctx.Err()
		if err == nil {
			err = s.do(ctx, g)
		}

		// An interrupt may surface as any error, so it is looked for first.
		if ctx.Err() != nil {
			return errors.Join(append(failed, cfg.Save(), ctx.Err())...)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", g, err))
			s.missing(g, err)
		}

		cfg.Report.Left = names(chosen[i+1:])
		cfg.Progress.Add(g.seconds)
		if err := cfg.Save(); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}

	return errors.Join(failed...)
}

// names returns the groups as Report.Left lists them.
func names(groups []group) (out []string) {
	for _, g := range groups {
		out = append(out, g.String())
	}
	return out
}

// do runs one group. It removes the aims that an earlier attempt has left in the report.
func (s *stage) do(ctx context.Context, g group) error {
	aims := &s.cfg.Report.Aims
	*aims = slices.DeleteFunc(*aims, func(a report.Aim) bool { return a.Scale == g.scale && g.has(a.Row) })

	// A data set stays until the first group that is about another one.
	if s.set != nil && (s.set.dataset != g.on || s.set.scale != g.scale) {
		s.dropSet()
	}

	s.group, s.kept = g, newKept()
	start := time.Now()
	err := runAll(ctx, s, g.steps)
	if err == nil {
		err = s.explain(ctx, g)
	}
	if err == nil {
		s.cfg.Report.Note("%s took %.0f s, servers and data included", g, time.Since(start).Seconds())
	}

	return err
}

// missing marks the rows of a group that could not be measured.
func (s *stage) missing(g group, err error) {
	first, _, _ := strings.Cut(err.Error(), "\n")
	for _, row := range g.rows {
		if !s.cfg.measured(row, g.scale) {
			s.cfg.add(report.Aim{Row: row, Scale: g.scale, What: row, Missing: first})
		}
	}
}

// add adds a measured aim to the report and prints it.
func (c *Config) add(a report.Aim) {
	c.Report.Aims = append(c.Report.Aims, a)
	c.Print(a)
}
