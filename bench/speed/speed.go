// Package speed produces the table of Downpour's aims: how fast it is to be
// beside OpenTSDB 2.4.1 on the same HBase tables, beside the bare scan of the
// same rows, and beside VictoriaMetrics on storage of its own.
//
// Every row of the table is measured in groups that share servers and data;
// what a group needs is started when it is first needed and ended when the next
// does not need it. The systems compared are asked in turn, in one run, after
// their answers were found equal.
package speed

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
)

// Config says which part of the table is produced, and how.
type Config struct {
	// HBase is used if it runs already; otherwise one is started and ended.
	HBase *e2e.HBase
	// Open opens the store at an address such as hbase:127.0.0.1:2181.
	Open func(address string) (bench.Store, error)
	// Rows and Scales choose; empty is all. See Rows and Scales.
	Rows, Scales []string
	// Data is the data set at scale 1x.
	Data workload.Devops
	// Rounds that count; BigRounds at the larger scales. One host is asked for
	// several times as often.
	Rounds, BigRounds int
	// Connections of putters.
	Connections int
	// Seconds of one run of dashboards in an open loop.
	Seconds int
	// MemoryHours are those of the two data sets of the memory row, of which the
	// smaller has the step of Data and the larger ten times the points.
	MemoryHours int
	// ScanEnv are settings of gateways that are to read every row, such as one
	// that turns off the result cache.
	ScanEnv map[string]string
	// Report takes what is measured. Aims that it holds already are not
	// measured again: so a run is resumed.
	Report *report.Report
	// Print is called with every aim once it is measured, Save after every
	// group.
	Print func(report.Aim)
	Save  func() error
	// Progress counts the groups' usual seconds.
	Progress *progress.Progress
}

// Rows are the names of the table's rows, in the order in which they are
// measured.
var Rows = []string{
	"compacted", "floor", "maxima", "onehost", "dashboards", "eight", "bytes",
	"uncompacted", "maxima-cells", "onehost-cells", "dashboards-cells",
	"telnet", "http", "embedded", "hbaseput", "memory",
}

// Scales are the sizes of the data: the data set, ten times its hours, ten times
// its hosts.
var Scales = []string{"1x", "10x-points", "10x-series"}

// Validate names the first field that is wrong.
func (c *Config) Validate() error {
	if err := c.Data.Validate(); err != nil {
		return err
	}
	for _, list := range []struct {
		name      string
		got, want []string
	}{{"rows", c.Rows, Rows}, {"scales", c.Scales, Scales}} {
		for _, name := range list.got {
			if !slices.Contains(list.want, name) {
				return fmt.Errorf("%s: got %q, want some of %s", list.name, name, strings.Join(list.want, ", "))
			}
		}
	}
	for name, got := range map[string]int{"rounds": c.Rounds, "big-rounds": c.BigRounds, "connections": c.Connections, "seconds": c.Seconds, "memory-hours": c.MemoryHours} {
		if got < 1 {
			return fmt.Errorf("%s: got %d, want at least 1", name, got)
		}
	}
	return nil
}

// data is the data set at a scale.
func (c *Config) data(scale string) workload.Devops {
	d := c.Data
	switch scale {
	case "10x-points":
		d.Hours *= 10
	case "10x-series":
		d.Hosts *= 10
	}
	return d
}

func (c *Config) rounds(scale string) int {
	if scale == "1x" {
		return c.Rounds
	}
	return c.BigRounds
}

// group is rows that are measured together.
type group struct {
	rows    []string
	scale   string
	form    string // of the rows in HBase that it asks, or empty
	seconds int64  // that it usually takes
	run     func(context.Context, *stage, group) error
}

// String names a group by its rows and scale.
func (g group) String() string { return strings.Join(g.rows, "+") + " at " + g.scale }

// groups are all of them, in an order in which tables and servers are used
// again before they are given up.
func groups() (all []group) {
	for i, scale := range Scales {
		slow := []int64{1, 4, 4}[i]
		all = append(all,
			group{[]string{"compacted", "floor", "maxima"}, scale, compacted, 20 * slow, scans},
			group{[]string{"onehost"}, scale, compacted, 5, oneHost},
			group{[]string{"dashboards"}, scale, compacted, 15, dashboards})
		if i == 0 {
			all = append(all,
				group{[]string{"eight"}, scale, compacted, 120, eight},
				group{[]string{"bytes"}, scale, compacted, 30, bytesStored})
		}
		all = append(all,
			group{[]string{"uncompacted", "maxima-cells"}, scale, cells, 70 * slow, scans},
			group{[]string{"onehost-cells"}, scale, cells, 10, oneHost},
			group{[]string{"dashboards-cells"}, scale, cells, 60, dashboards})
		if i == 0 {
			all = append(all, group{[]string{"telnet"}, scale, "", 40, telnet}, group{[]string{"http"}, scale, "", 40, overHTTP})
		}
		all = append(all, group{[]string{"embedded"}, scale, "", 10 + 15*slow, embedded})
		if i == 0 {
			all = append(all, group{[]string{"hbaseput"}, scale, "", 90, hbasePut}, group{[]string{"memory"}, scale, "", 60, memory})
		}
	}
	return all
}

// chosen are those groups of all that the config asks for and the report lacks,
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

// measured tells whether the report holds a row already.
func (c *Config) measured(row, scale string) bool {
	return slices.ContainsFunc(c.Report.Aims, func(a report.Aim) bool {
		return a.Row == row && a.Scale == scale && a.Missing == ""
	})
}

// Total is about how long a run takes, in seconds.
func (c *Config) Total() (seconds int64) {
	for _, g := range c.chosen(groups()) {
		seconds += g.seconds
	}
	return seconds
}

// Run measures and returns an error when something could not be measured or
// differed; aims not met are no error. What an interrupted run has not done is
// in the report's Left.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	return run(ctx, cfg, groups())
}

func run(ctx context.Context, cfg Config, all []group) error {
	chosen := cfg.chosen(all)
	s := &stage{cfg: &cfg}
	defer s.close()
	var failed []error
	for i, g := range chosen {
		cfg.Report.Left = names(chosen[i:])
		err := ctx.Err()
		if err == nil {
			err = s.do(ctx, g)
		}
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

func names(groups []group) (out []string) {
	for _, g := range groups {
		out = append(out, g.String())
	}
	return out
}

// do runs one group; of an earlier try that failed nothing is kept.
func (s *stage) do(ctx context.Context, g group) error {
	aims := &s.cfg.Report.Aims
	*aims = slices.DeleteFunc(*aims, func(a report.Aim) bool { return a.Scale == g.scale && slices.Contains(g.rows, a.Row) })
	if g.form != s.set.form || g.scale != s.set.scale {
		s.dropSet()
	}
	if g.scale != s.pair.scale || g.form != "" || g.has("hbaseput") || g.has("memory") {
		s.dropPair()
	}
	start := time.Now()
	err := g.run(ctx, s, g)
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
			s.aim(report.Aim{Row: row, Scale: g.scale, What: row, Missing: first})
		}
	}
}

// aim takes a measured aim into the report.
func (s *stage) aim(a report.Aim) {
	s.cfg.Report.Aims = append(s.cfg.Report.Aims, a)
	s.cfg.Print(a)
}

// faster is the aim that ours is so many times as fast as theirs.
func faster(row string, g group, what string, want float64, ours, theirs report.Figure, against string) report.Aim {
	return report.Aim{Row: row, Scale: g.scale, What: what, Against: against, AtLeast: true, Want: want, Figure: ours.Name,
		Got: theirs.Over(ours), Ours: report.MS(ours.Median()), Theirs: report.MS(theirs.Median())}
}

// within is the aim that ours takes at most so many times as long as theirs.
func within(row string, g group, what string, want float64, ours, theirs report.Figure, against string) report.Aim {
	a := faster(row, g, what, want, ours, theirs, against)
	a.AtLeast, a.Got = false, ours.Over(theirs)
	return a
}

// has tells whether a row of the group is wanted.
func (g group) has(row string) bool { return slices.Contains(g.rows, row) }
