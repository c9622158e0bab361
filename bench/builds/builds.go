// Package builds compares two builds of Downpour, A and B: whether a change to
// the program has made anything slower or larger.
//
// Each round starts both on storage of their own, puts the same data into both,
// and asks both the same in turn, A B B A. What a round yields of a row is one
// pair of amounts, such as the time of a query, and the ratio of many rounds has
// an interval (package paired). Rounds start anew because two processes of one
// program differ, too: by where their memory lies, and by how their stores have
// come to be cut into files. One pair of processes would be measured exactly,
// and that difference taken for one of the builds.
package builds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/integration/e2e"
)

// Build is a build of Downpour that exists as programs.
type Build struct {
	Name     string // A or B
	Version  string // what reports call it
	Gateway  string // path of the program
	Pushdown string // and of the pushdown server, empty where there is none
	// Env are settings of this build's gateways, beside those that both have.
	Env map[string]string
}

// Config says what is compared, and how.
type Config struct {
	A, B Build
	// Stores and Rows choose; empty is all. See Stores and Rows.
	Stores, Rows []string
	// Data is put into each build, and asked for.
	Data workload.Devops
	// HBase is used if it runs already; otherwise one is started and ended.
	HBase *e2e.HBase
	// Open opens the store at an address such as hbase:127.0.0.1:2181.
	Open func(address string) (bench.Store, error)
	// Rounds, each with processes and storage of its own; fewer than
	// paired.Fewest give no interval.
	Rounds int
	// Turns is how often the builds take turns at a question in a round, at
	// most, and TurnFor how long a turn lasts, at least: a question that is
	// quickly answered is asked several times in each, and one that takes
	// longer than a turn has fewer of them.
	Turns   int
	TurnFor time.Duration
	// Connections of putters.
	Connections int
	// Tolerance is the part by which B may be worse: 0.05 is 5 %.
	Tolerance float64
	// Report takes the changes. Save is called after every round.
	Report *report.Report
	Save   func() error
	// Progress counts rounds, once for each store.
	Progress *progress.Progress
}

// Stores that builds are compared on.
var Stores = []string{"embedded", "hbase"}

// Rows are the names of what is compared, in the order in which it is measured.
var Rows = func() []string {
	rows := []string{putTelnet, putHTTP, memoryPut}
	for _, q := range slices.Concat(questions, again) {
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

// Validate names the first field that is wrong.
func (c *Config) Validate() error {
	if err := c.Data.Validate(); err != nil {
		return err
	}
	for _, list := range []struct {
		name      string
		got, want []string
	}{{"rows", c.Rows, Rows}, {"stores", c.Stores, Stores}} {
		for _, name := range list.got {
			if !slices.Contains(list.want, name) {
				return fmt.Errorf("%s: got %q, want some of %s", list.name, name, strings.Join(list.want, ", "))
			}
		}
	}
	for name, got := range map[string]int{"rounds": c.Rounds, "turns": c.Turns, "connections": c.Connections} {
		if got < 1 {
			return fmt.Errorf("%s: got %d, want at least 1", name, got)
		}
	}
	if !(c.Tolerance >= 0 && c.Tolerance < 1) {
		return fmt.Errorf("worse: got %v, want a part from 0 to below 1", c.Tolerance)
	}
	return nil
}

// Total is how much Progress counts to.
func (c *Config) Total() int64 { return int64(c.Rounds * len(c.scenes())) }

// wants tells whether a row is to be measured.
func (c *Config) wants(row string) bool { return len(c.Rows) == 0 || slices.Contains(c.Rows, row) }

// scene is a store, and a way in which points are written there.
type scene struct {
	name  string
	hbase bool
	env   map[string]string // of both builds' gateways
	// pushdown says that its tables are also asked through pushdown servers.
	pushdown bool
}

// scenes are those that the config asks for.
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

// Run compares the builds and puts the changes into the report. What could not
// be measured, or was answered differently, is an error; a row that is worse is
// none. Of an interrupted run, the report has what the rounds until then show.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}

	r := &run{cfg: &c}
	defer r.close()
	for _, b := range []Build{c.A, c.B} {
		c.Report.AddPeer(report.Peer{Name: b.Name, Version: b.Version})
	}
	c.Report.Cache = "off where every row is to be read, warm otherwise; times of queries vary"
	return r.rounds(ctx, r.play)
}

// run is a comparison under way.
type run struct {
	cfg    *Config
	hbase  *e2e.HBase
	store  bench.Store // of the HBase, for tables
	tables int         // how many sets of tables were made; none is used again
	ledger ledger
}

// close ends the HBase, if it is ours.
func (r *run) close() {
	if r.store != nil {
		r.store.Close()
	}
	if r.hbase != nil && r.hbase != r.cfg.HBase {
		r.hbase.Close()
	}
	peer.CloseIdle()
}

// rounds plays every scene in every round. A scene that has failed is not played
// again.
func (r *run) rounds(ctx context.Context, play func(ctx context.Context, s scene, round int) error) error {
	var failed []error
	scenes := r.cfg.scenes()
	for round := range r.cfg.Rounds {
		for _, s := range slices.Clone(scenes) {
			err := ctx.Err()
			if err == nil {
				err = play(ctx, s, round)
			}
			if ctx.Err() != nil {
				r.cfg.Report.Left = []string{fmt.Sprintf("rounds %d to %d", round+1, r.cfg.Rounds)}
				r.cfg.Report.Changes = r.ledger.changes(r.cfg.Tolerance)
				return errors.Join(append(failed, r.cfg.Save(), ctx.Err())...)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%s, round %d: %w", s.name, round+1, err))
				scenes = slices.DeleteFunc(scenes, func(other scene) bool { return other.name == s.name })
			}
			r.cfg.Progress.Add(1)
		}

		r.cfg.Report.Changes = r.ledger.changes(r.cfg.Tolerance)
		if err := r.cfg.Save(); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	return errors.Join(append(failed, r.ledger.differing()...)...)
}
