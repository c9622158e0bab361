// Package builds compares two builds of Downpour, A and B, to find out whether a
// change to the program has made anything slower or larger.
//
// Each round starts both builds on storage of their own, puts the same data into both,
// and asks both the same queries in turn, A B B A. A round yields one pair of amounts
// for each row, such as the times of a query. The ratio over many rounds has an
// interval (package paired). Each round has new processes, because two processes of the
// same program differ, too: in where their memory lies, and in the files into which
// their stores have divided the data. With one pair of processes that difference would
// be taken for one of the builds. That is why it has a runner of its own: the scenarios of
// package scenario are asked in all rounds over the same servers.
package builds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"downpour/bench"
	"downpour/bench/place"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
)

// Build is a build of Downpour that exists as programs.
type Build struct {
	Name     string // A or B
	Version  string // what reports call it
	Gateway  string // path of the program
	Pushdown string // path of the pushdown server, empty for none
	// Env are settings of the gateways of this build, in addition to those that both have.
	Env map[string]string
}

// Config says what is compared, and how.
type Config struct {
	A, B Build
	// Stores and Rows are what is compared, some of the variables Stores and Rows;
	// empty is all.
	Stores, Rows []string
	// Data is the data set that each build stores and answers from.
	Data workload.Devops
	// HBase is used if it is set; otherwise Run starts one and ends it.
	HBase *e2e.HBase
	// Open opens the store at an address such as hbase:127.0.0.1:2181.
	Open func(address string) (store.Store, error)
	// Rounds is the number of rounds, each with processes and storage of its own. Fewer
	// than paired.Fewest give no interval.
	Rounds int
	// Turns bounds how often the builds take turns at a question in a round, and
	// TurnFor is how long a turn lasts at least. A question with a quick answer is asked
	// several times in a turn; one that takes longer than a turn has fewer turns.
	Turns   int
	TurnFor time.Duration
	// Connections is how many connections put at the same time.
	Connections int
	// Tolerance is by how much B may be worse: 0.05 is 5 %.
	Tolerance float64
	// Report takes the changes. Save is called after every round.
	Report *report.Report
	Save   func() error
	// Progress counts rounds, once for each store.
	Progress *progress.Progress
}

// Stores are the names of the stores that builds are compared on.
var Stores = []string{"embedded", "hbase"}

// Rows are the names of what is compared, in the order of measuring.
var Rows = func() []string {
	rows := []string{putTelnet, putHTTP, memoryPut}
	for _, q := range slices.Concat(questions, cacheableQuestions) {
		rows = append(rows, q.row)
	}
	return append(rows, frames, framesCost, memoryQueries)
}()

// Rows that are no questions.
const (
	putTelnet     = "put-telnet"
	putHTTP       = "put-http"
	frames        = "frames"
	framesCost    = "frames-cost"
	memoryPut     = "memory-put"
	memoryQueries = "memory-queries"
)

// Validate returns an error for the first field that is wrong.
func (c *Config) Validate() error {
	err := errors.Join(c.Data.Validate(), bench.Known("rows", c.Rows, Rows), bench.Known("stores", c.Stores, Stores),
		bench.Positive(map[string]int{"rounds": c.Rounds, "turns": c.Turns, "connections": c.Connections}))
	if err != nil {
		return err
	}

	// NaN fails both comparisons, and so is refused as well.
	if !(c.Tolerance >= 0 && c.Tolerance < 1) {
		return fmt.Errorf("worse: got %v, want a part from 0 to below 1", c.Tolerance)
	}
	return nil
}

// Total returns what Progress counts to.
func (c *Config) Total() int64 { return int64(c.Rounds * len(c.scenes())) }

// wants reports whether a row is to be measured.
func (c *Config) wants(row string) bool { return len(c.Rows) == 0 || slices.Contains(c.Rows, row) }

// scene is a store with a way of writing points.
type scene struct {
	name  string
	hbase bool
	env   map[string]string // of both builds' gateways
	// pushdown is set if its tables are also queried through pushdown servers.
	pushdown bool
}

// scenes returns the scenes that the config asks for.
func (c *Config) scenes() (all []scene) {
	wanted := func(store string) bool { return len(c.Stores) == 0 || slices.Contains(c.Stores, store) }
	if wanted("embedded") {
		all = append(all, scene{name: "embedded"})
	}
	if wanted("hbase") {
		all = append(all,
			scene{name: "HBase, single", hbase: true},
			scene{name: "HBase, multi", hbase: true, env: map[string]string{"DOWNPOUR_PUT_CELLS": "multi"},
				pushdown: c.A.Pushdown != "" && c.B.Pushdown != ""})
	}
	return all
}

// Run compares the builds and puts the changes into the report. It returns an error if
// something could not be measured or if answers differed; a row that is worse is no
// error. After an interrupt the report has the result of the rounds until then.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}

	r := &run{
		cfg:   &c,
		maker: &place.Maker{Name: "builds", HBase: c.HBase, Open: c.Open, Report: c.Report, Progress: c.Progress},
	}
	defer r.maker.Close()
	for _, b := range []Build{c.A, c.B} {
		c.Report.AddPeer(report.Peer{Name: b.Name, Version: b.Version})
	}

	c.Report.Cache = "off where every row is to be read, warm otherwise; times of queries vary"
	return r.rounds(ctx, r.play)
}

// run is a comparison that runs.
type run struct {
	cfg   *Config
	maker *place.Maker
	rows  rowSet
}

// rounds plays every scene in every round. It plays a scene that has failed no more.
func (r *run) rounds(ctx context.Context, play func(ctx context.Context, s scene, round int) error) error {
	var failed []error
	scenes := r.cfg.scenes()
	for round := range r.cfg.Rounds {
		// Of a clone, because a scene that fails is taken out in the meantime.
		for _, s := range slices.Clone(scenes) {
			err := ctx.Err()
			if err == nil {
				err = play(ctx, s, round)
			}
			// An interrupt may surface as any error, so it is looked for first.
			if ctx.Err() != nil {
				r.cfg.Report.Left = []string{fmt.Sprintf("rounds %d to %d", round+1, r.cfg.Rounds)}
				r.cfg.Report.Changes = r.rows.changes(r.cfg.Tolerance)
				return errors.Join(append(failed, r.cfg.Save(), ctx.Err())...)
			}

			if err != nil {
				failed = append(failed, fmt.Errorf("%s, round %d: %w", s.name, round+1, err))
				scenes = slices.DeleteFunc(scenes, func(other scene) bool { return other.name == s.name })
			}
			r.cfg.Progress.Add(1)
		}

		r.cfg.Report.Changes = r.rows.changes(r.cfg.Tolerance)
		if err := r.cfg.Save(); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}

	return errors.Join(append(failed, r.rows.differing()...)...)
}
