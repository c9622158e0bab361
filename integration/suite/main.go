// Command suite runs the tests in tiers:
//
//	go run ./integration/suite quick               before a commit: vet, house rules, what changed and its dependents
//	go run ./integration/suite test                what runs with every change, the same for everybody
//	go run ./integration/suite stage NAME…         some of its stages
//	go run ./integration/suite soak-changed        the short forms of the targets of soak that the changes call for
//	go run ./integration/suite soak [-long] NAME…  targets of soak, with fresh seeds
//	go run ./integration/suite slice               one target of soak in its short form, by turns: it never fails
//	go run ./integration/suite record              how old the last passed run of each target is, and what is open
//	go run ./integration/suite sizes               lines of Go: the core, each extra, the rest
//
// Changes are counted from where the branch left main, or from the commit before the last; -base REVISION
// counts from another. Soak adds a line a run to integration/soak.txt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"downpour/integration/changes"
	"downpour/integration/suite/seeds"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runSuite(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

// options are the flags of all commands.
type options struct {
	base string
	long bool
	seed uint64
	keep bool
	list bool
}

// commands are the tiers by name.
var commands = map[string]func(*runner, context.Context, options, []string) error{
	"quick":        (*runner).quick,
	"test":         (*runner).test,
	"stage":        (*runner).stage,
	"soak":         (*runner).soakNamed,
	"soak-changed": (*runner).soakChanged,
	"slice":        (*runner).slice,
	"record":       (*runner).printRecord,
	"sizes":        (*runner).printSizes,
}

func runSuite(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("got %q, want one of quick, test, stage, soak, soak-changed, slice, record, sizes", args)
	}
	var o options
	flags := flag.NewFlagSet("suite "+args[0], flag.ContinueOnError)
	flags.StringVar(&o.base, "base", "", "revision that changes are counted from")
	flags.BoolVar(&o.long, "long", false, "soak: the long forms")
	flags.Uint64Var(&o.seed, "seed", 0, "soak: the seed; 0 draws one for each target")
	flags.BoolVar(&o.keep, "record", false, "test: add a line to the record")
	flags.BoolVar(&o.list, "list", false, "soak, soak-changed, stage: only name what would run")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	return commands[args[0]](&runner{root: root, out: out}, ctx, o, flags.Args())
}

// moduleRoot goes up from the working directory to go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod here or above")
		}
		dir = filepath.Dir(dir)
	}
}

// test runs all stages, and prints what soak last came to.
func (r *runner) test(ctx context.Context, o options, _ []string) error {
	began := time.Now()
	again, err := r.seedStages()
	if err != nil {
		return err
	}
	_, edited, err := r.touched(ctx, o)
	if err != nil {
		return err
	}
	results, err := r.runAll(ctx, append(stages(o.base, edited), again...))
	fmt.Fprintln(r.out)
	cpu := time.Duration(0)
	for _, res := range results {
		fmt.Fprintln(r.out, res)
		cpu += res.cpu
	}
	fmt.Fprintf(r.out, "%.1f minutes, %.0f s of the processor\n\nsoak:\n", time.Since(began).Minutes(), cpu.Seconds())
	err = errors.Join(err, r.printRecord(ctx, o, nil))
	if o.keep {
		line := run{
			target:  "test",
			form:    short,
			day:     began,
			seed:    1,
			passed:  err == nil,
			minutes: time.Since(began).Minutes(),
		}
		if err != nil {
			line.note, _, _ = strings.Cut(err.Error(), "\n")
		}
		var commitErr error
		line.commit, commitErr = r.commit(ctx)
		err = errors.Join(err, commitErr, r.record(line))
	}
	return err
}

// stage runs some stages of test.
func (r *runner) stage(ctx context.Context, o options, names []string) error {
	_, edited, err := r.touched(ctx, o)
	if err != nil {
		return err
	}
	all := stages(o.base, edited)
	var chosen []stage
	for _, name := range names {
		i := slices.IndexFunc(all, func(s stage) bool { return s.name == name })
		if i < 0 {
			return fmt.Errorf("got stage %q, want one of those that test runs", name)
		}
		chosen = append(chosen, all[i])
	}
	_, err = r.runAll(ctx, chosen)
	return err
}

// quick looks at the packages that were edited, tests those that changes can break, and the rules of the house.
func (r *runner) quick(ctx context.Context, o options, _ []string) error {
	touched, edited, err := r.touched(ctx, o)
	if err != nil {
		return err
	}
	// Their tests read files of all others.
	readers := []string{"./integration", "./integration/mutants", "./gateway/extra/docsite"}
	chosen := append(vet(edited), stage{
		name: "test", command: inProcessTests(append(touched, readers...)...), tests: true,
	})
	if len(edited) > 0 {
		chosen = append(chosen, stage{name: "staticcheck", command: staticcheck(edited)})
	}
	_, err = r.runAll(ctx, chosen)
	return err
}

// touched returns the packages that changes can break, and those whose sources were edited.
func (r *runner) touched(ctx context.Context, o options) (broken, own []string, err error) {
	files, err := r.changed(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	all, err := r.packages(ctx)
	if err != nil {
		return nil, nil, err
	}
	return affected(all, files), edited(all, files), nil
}

// soakNamed runs targets by name, or all of them.
func (r *runner) soakNamed(ctx context.Context, o options, names []string) error {
	if len(names) == 0 {
		names = targetNames()
	}
	chosen, err := named(names)
	if err != nil {
		return err
	}
	return r.soakAll(ctx, o, chosen)
}

// soakChanged runs the targets that changes call for.
func (r *runner) soakChanged(ctx context.Context, o options, _ []string) error {
	files, err := r.changed(ctx, o)
	if err != nil {
		return err
	}
	return r.soakAll(ctx, o, calledFor(files))
}

// soakAll runs targets one after the other, to the end of the list even if one fails, and adds each run to
// the record.
func (r *runner) soakAll(ctx context.Context, o options, chosen []target) error {
	form := short
	if o.long {
		form = long
	}
	var failed error
	for _, t := range chosen {
		if o.list {
			fmt.Fprintln(r.out, t.name)
			continue
		}
		line, err := r.soak(ctx, t, t.nearest(form), o.fresh(), time.Now())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("soak %s: %w", t.name, err))
		}
		if line.target == "" {
			continue // it could not begin
		}
		fmt.Fprintln(r.out, line)
		if err := r.record(line); err != nil {
			return err
		}
	}
	return failed
}

// fresh is the requested seed, or a drawn one.
func (o options) fresh() uint64 {
	if o.seed != 0 {
		return o.seed
	}
	return rand.Uint64N(1<<48) + 1
}

// turns are targets; slice runs one of them.
var turns = []string{"chaos", "life", "slow-hbase", "proofs", "static"}

// sliceTime is what a slice may take. One that is cut off has no outcome.
const sliceTime = 25 * time.Minute

// slice runs the short form of the target whose turn it is, by the number of commits, and prints the line for
// the record. It is no test of the change: whatever comes out, it returns nil.
func (r *runner) slice(ctx context.Context, o options, _ []string) error {
	count, err := changes.Git(ctx, r.root, "rev-list", "--count", "HEAD")
	if err != nil {
		return err
	}
	var n int
	if _, err := fmt.Sscan(count, &n); err != nil {
		return err
	}
	chosen, err := named([]string{turns[n%len(turns)]})
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, sliceTime)
	defer cancel()
	line, err := r.soak(limited, chosen[0], short, o.fresh(), time.Now())
	switch {
	case limited.Err() != nil:
		fmt.Fprintf(r.out, "slice of soak: %s was cut off after %v\n", chosen[0].name, sliceTime)
	case line.target == "":
		fmt.Fprintf(r.out, "slice of soak: %s could not begin: %v\n", chosen[0].name, err)
	default:
		fmt.Fprintf(r.out, "slice of soak, for %s: %s\n", recordFile, line)
	}
	return nil
}

// seedStages are stages that repeat the fixed seeds of tests that need no real server.
func (r *runner) seedStages() (out []stage, err error) {
	all, err := r.readSeeds()
	for i, s := range all {
		if s.Fixed && s.Package != "integration" && s.Package != "bench" {
			out = append(out, stage{
				name: fmt.Sprint("seed-", i+1),
				command: []string{
					"env", fmt.Sprint("TEST_SEED=", s.Seed), "go", "test", "-json", "-vet=off", "-count=1",
					"-run", "^" + s.Test + "$", "./" + s.Package,
				},
				budget: time.Minute,
				needs:  []string{"unit"},
				tests:  true,
			})
		}
	}
	return out, err
}

// seedsFile is what package seeds reads.
const seedsFile = "integration/seeds.txt"

func (r *runner) readSeeds() ([]seeds.Seed, error) {
	f, err := os.Open(filepath.Join(r.root, seedsFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := seeds.Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", seedsFile, err)
	}
	return all, nil
}

// printRecord prints the ages of soak, and the seeds that still fail.
func (r *runner) printRecord(_ context.Context, _ options, _ []string) error {
	f, err := os.Open(filepath.Join(r.root, recordFile))
	if err != nil {
		return err
	}
	defer f.Close()
	runs, err := parseRecord(f)
	if err != nil {
		return fmt.Errorf("%s: %w", recordFile, err)
	}
	ages(r.out, runs, time.Now())
	all, err := r.readSeeds()
	for _, s := range all {
		if !s.Fixed {
			fmt.Fprintf(r.out, "open: TEST_SEED=%d %s of %s: %s\n", s.Seed, s.Test, s.Package, s.Failure)
		}
	}
	return err
}
