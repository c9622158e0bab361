package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"downpour/bench/builds"
	"downpour/bench/place"
	"downpour/bench/progress"
	"downpour/integration/e2e"
)

// buildHelp says how a build is named.
const buildHelp = "git:REVISION, tree for the sources as they lie here, " +
	"build:PATH of a gateway or of a directory with gateway and pushdown"

// buildRounds is how many rounds builds are compared in unless it is said: with
// so many, two that were disturbed on one side do not widen an interval.
const buildRounds = 12

// buildFlags are the flags that only a comparison of builds has.
type buildFlags struct {
	stores     string
	turns      int
	turnFor    time.Duration
	aEnv, bEnv string
}

// bind adds the flags to a flag set.
func (f *buildFlags) bind(flags *flag.FlagSet) {
	flags.StringVar(&f.stores, "stores", "embedded",
		"builds: stores to compare on, by comma: "+strings.Join(builds.Stores, ", "))
	flags.IntVar(&f.turns, "turns", 8, "builds: how often they take turns at a question in a round, at most")
	flags.DurationVar(&f.turnFor, "turn-for", 40*time.Millisecond, "builds: how long a turn lasts, at least: "+
		"quick questions are asked several times in it, slow ones have fewer turns")
	flags.StringVar(&f.aEnv, "a-env", "", "builds: settings of A's gateways, KEY=VALUE by comma")
	flags.StringVar(&f.bEnv, "b-env", "", "builds: and of B's")
}

// Flags by what they belong to.
var (
	ofBuilds = []string{"stores", "turns", "turn-for", "a-env", "b-env"}
	ofTable  = []string{"scales", "big-rounds", "seconds", "memory-hours", "scan-env", "resume"}
	ofPair   = []string{"queries"}
	ofReplay = []string{"queries", "slack", "rate", "burst", "clients", "requests", "duration"}
)

// refused is an error when one of these flags was given.
func refused(flags *flag.FlagSet, names []string, why string) (err error) {
	flags.Visit(func(one *flag.Flag) {
		if err == nil && slices.Contains(names, one.Name) {
			err = fmt.Errorf("got -%s, which %s", one.Name, why)
		}
	})
	return err
}

// unused refuses the flags of builds where none are compared.
func (f *buildFlags) unused(flags *flag.FlagSet) error {
	return refused(flags, ofBuilds, "says how two builds are compared; want -a and -b that name them")
}

// compareBuilds is bench compare of two builds: it makes them, lets them answer in turns,
// and fails if B is worse.
func compareBuilds(ctx context.Context, s *session, f compareFlags) (err error) {
	if err := refused(s.flags, slices.Concat(ofTable, ofPair), "has no meaning for builds"); err != nil {
		return err
	}
	r := s.report()
	r.Data = f.cfg.Data.String()
	cfg := builds.Config{Stores: list(f.builds.stores), Rows: f.cfg.Rows, Data: f.cfg.Data, Open: openStore,
		Rounds: f.cfg.Rounds, Turns: f.builds.turns, TurnFor: f.builds.turnFor, Connections: f.cfg.Connections,
		Tolerance: f.worse / 100, Report: r}
	if !s.given("rounds") {
		cfg.Rounds = buildRounds
	}

	cfg.Save = func() error { _, err := s.save(r.Done()); return err }
	// Before anything is built, for that takes minutes.
	if err := cfg.Validate(); err != nil {
		return err
	}
	envA, err := settings(f.builds.aEnv)
	if err != nil {
		return fmt.Errorf("a-env: %w", err)
	}

	envB, err := settings(f.builds.bEnv)
	if err != nil {
		return fmt.Errorf("b-env: %w", err)
	}
	if slices.Contains(cfg.Stores, "hbase") {
		if err := s.setUp(ctx, "java_programs"); err != nil {
			return err
		}
	}

	remove, err := makeBuilds(ctx, s, f, &cfg)
	defer func() { err = errors.Join(err, remove()) }()
	if err != nil {
		return err
	}
	cfg.A.Env, cfg.B.Env = envA, envB
	cfg.Progress = progress.New(s.errs, "compare, rounds", cfg.Total())
	err = builds.Run(ctx, cfg)
	cfg.Progress.End()
	return errors.Join(s.finish(r, err), errorIfWorse(r))
}

// makeBuilds gets what -a and -b name; remove takes away what was built.
func makeBuilds(ctx context.Context, s *session, f compareFlags, cfg *builds.Config) (remove func() error, err error) {
	remove = func() error { return nil }
	root, err := e2e.Root()
	if err != nil {
		return remove, err
	}
	dir, err := place.TempDir("builds-")
	if err != nil {
		return remove, err
	}

	// Returned also with an error: one of the two may be built.
	remove = func() error { return os.RemoveAll(dir) }
	m := builds.Maker{Root: root, Dir: dir}
	fmt.Fprintf(s.errs, "building %s and %s\n", f.a, f.b)
	if cfg.A, err = m.Make(ctx, "A", f.a); err != nil {
		return remove, err
	}

	cfg.B, err = m.Make(ctx, "B", f.b)
	return remove, err
}
