// Command mutants plants faults into the sources, one at a time, and runs the
// test that must notice each:
//
//	go run ./integration/mutants                  all that break a promise of the product
//	go run ./integration/mutants -changed [BASE]  those whose source file or test file has changed
//	go run ./integration/mutants -only REGEXP     those whose name it matches
//	go run ./integration/mutants -check           none: that every fault has its place
//	go run ./integration/mutants -list            none: their names, files and tests
//	go run ./integration/mutants -by DIR:TEST     by another test than their own, such as integration/sim:TestSim
//
// A promise fault is a change of one line that would make an answer wrong or short, lose an
// acknowledged point or let in who must stay out. The line ends with a marker, which moves with
// it, and the comment of the test that must fail declares the change:
//
//	if limit > 0 && held > limit { //fault:memory-bound-ignored TestRun_errors
//
//	//fault:memory-bound-ignored held > limit => held < 0
//	func TestRun_errors(t *testing.T) {
//
// A story declares it in a comment, "# //fault:NAME OLD => NEW", and the marker names TestStories/STORY.
//
// What stands before the arrow occurs in the line once; nothing stands for the whole line. What
// stands behind it is put there; nothing deletes. A marker or declaration without the other half,
// or one whose change does not apply, is an error of every form of the command, and of a test of
// this package.
//
// The sources themselves stay as they are: the go command is given a changed copy of one file
// (-overlay). Tests draw from the fixed seed of downpour/encoding/seedtest, so that a fault is
// always caught or never. A fault that its test does not notice and a test that fails by itself
// are failures of the command.
//
// BASE is a branch or commit: a file counts as changed if it differs from where HEAD left BASE,
// committed or not. Without BASE it is origin/main or main, and on that branch itself the commit
// before the last.
//
// Faults that nobody chose are those of package mutator.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"time"

	"downpour/integration/changes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the flags of the command.
type options struct {
	changed, check, list bool
	only                 *regexp.Regexp
	base, by             string
	sample, jobs         int
	seed                 uint64
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.BoolVar(&o.changed, "changed", false,
		"try only those whose source file or test file has changed since the commit in the argument, or since main")
	flags.BoolVar(&o.check, "check", false, "check that every fault has its place and end")
	flags.BoolVar(&o.list, "list", false, "list the faults and end")
	only := flags.String("only", "", "try only those whose name this regular expression matches")
	flags.StringVar(&o.by, "by", "", "try them with another test, as folder:test")
	flags.IntVar(&o.sample, "sample", 0, "try only so many, drawn at random; 0 tries all")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of the sample; 0 draws one")
	flags.IntVar(&o.jobs, "jobs", max(1, runtime.GOMAXPROCS(0)), "how many to try at once")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	if _, _, ok := strings.Cut(o.by, ":"); o.by != "" && !ok {
		return o, fmt.Errorf("-by: got %q, want folder:test, such as integration/sim:TestSim", o.by)
	}
	o.base = flags.Arg(0)
	if flags.NArg() > 1 || o.base != "" && !o.changed {
		return o, fmt.Errorf("got the arguments %q, want at most one, behind -changed", flags.Args())
	}
	return o, nil
}

// run tries the faults that the flags choose, and returns an error if one was not caught.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	chosen, err := choose(ctx, root, o, out)
	if err != nil {
		return err
	}
	if o.list {
		for _, f := range chosen {
			fmt.Fprintf(out, "%-40s %s, caught by %s in %s\n", f.name, f.file, f.test, f.dir)
		}
	}
	if o.list || o.check {
		fmt.Fprintf(out, "%d faults\n", len(chosen))
		return nil
	}
	for i := range chosen {
		if dir, test, ok := strings.Cut(o.by, ":"); ok {
			chosen[i].dir, chosen[i].test = dir, test
		}
	}
	began := time.Now()
	limit := 10 * time.Minute
	if o.by != "" {
		limit = time.Hour // the worlds of TestSim take ten minutes on a busy machine, which must not count as caught
	}
	bad, err := (&lab{out: out, jobs: o.jobs, root: root, limit: limit}).tryAll(ctx, chosen)
	if err != nil {
		return err
	}
	caught := len(chosen) - bad
	fmt.Fprintf(out, "%d of %d faults caught, in %v\n", caught, len(chosen), time.Since(began).Round(time.Second))
	fmt.Fprintf(out, "counted: caught=%d survived=%d\n", caught, bad) // for the record of soak
	if bad > 0 {
		return fmt.Errorf("%d faults were not caught", bad)
	}
	return nil
}

// choose returns the faults that the flags name.
func choose(ctx context.Context, root string, o options, out io.Writer) (chosen []fault, err error) {
	faults, err := readPromises(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	if o.changed {
		base, err := changes.Since(ctx, root, o.base)
		if err != nil {
			return nil, err
		}
		files, err := changes.Files(ctx, root, base)
		if err != nil {
			return nil, err
		}
		faults = touched(faults, files)
		fmt.Fprintf(out, "%d faults touched since %.12s\n", len(faults), base)
	}
	for _, f := range faults {
		if o.only.MatchString(f.name) {
			chosen = append(chosen, f)
		}
	}
	return sampled(chosen, o, out), nil
}

// sampled draws as many as the flags want.
func sampled(faults []fault, o options, out io.Writer) []fault {
	if o.sample <= 0 || o.sample >= len(faults) {
		return faults
	}
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	fmt.Fprintf(out, "seed %d\n", o.seed)
	rng := rand.New(rand.NewPCG(o.seed, 0))
	rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	return faults[:o.sample]
}
