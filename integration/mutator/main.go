// Command mutator puts faults into packages wherever their syntax has a place for one, and reports
// which their tests do not notice:
//
//	go run ./integration/mutator [-each 60] [-for 80m] [-open 15] [-jobs 2] ./encoding ./pushdown/operator/...
//	go run ./integration/mutator -at 'series.go:271:' ./gateway/write
//
// It sets conditions and their parts to true and to false, replaces operators (< by <=, + by -),
// leaves statements out, and returns nil for an error. All faults of a package are compiled into one test program,
// each behind a switch, so a fault takes only as long as the tests that reach it: each test runs
// once without a fault, which shows what it reaches. The sources stay as they are. A line on
// which a fault does not compile gets none.
//
// Of the faults that a package's tests reach, -each are tried, drawn by TEST_SEED, or with -at
// all that it matches as they are printed, "series.go:271: always: n > 0". One that survives
// them must also survive the tests of the package above, if that imports this one: a package
// that was split has its tests there. Some that survive both are no gap in the tests: they
// change only how fast something is, for instance. explained.txt lists them with the reason.
//
// packages.txt lists the packages, and single files, that were gone through whole: of those all faults
// were tried, and with -whole they are again. Any one that survives there without a reason fails the
// command. Of the others it is known that a part survives: those are reported as open, and fail the
// command if they are more than ten, and more than -open of a hundred that were tried. About 8 survived of
// packages that keep the promises, and 19 of all others, whose tests are often in packages far above them.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutator", flag.ContinueOnError)
	each := flags.Int("each", 60, "how many faults of each package are tried; 0 tries all")
	lasts := flags.Duration("for", 0, "begin no other package after this time; 0 for no limit")
	allOfWhole := flags.Bool("whole", false, "try all faults of what was gone through whole")
	at := flags.String("at", "", "try all faults that a regexp matches, and no others")
	mostOpen := flags.Int("open", 15, "how many of a hundred other faults may survive unexplained; ten always may")
	jobs := flags.Int("jobs", runtime.GOMAXPROCS(0), "how many faults are tried at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	only, err := regexp.Compile(*at)
	if err != nil {
		return err
	}
	if *at != "" {
		*each = 0
	}
	list, err := exec.CommandContext(ctx, "go", append([]string{"list"}, flags.Args()...)...).Output()
	if err != nil {
		return fmt.Errorf("go list %v: %w", flags.Args(), err)
	}
	chosen := strings.Fields(string(list))
	seed, _ := strconv.ParseUint(os.Getenv("TEST_SEED"), 10, 64)
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })

	began := time.Now()
	var whole, others counts
	for _, pkg := range chosen {
		if *lasts > 0 && time.Since(began) > *lasts {
			fmt.Fprintf(out, "%v are over\n", *lasts)
			break
		}
		w, o, err := try(ctx, out, pkg, sample{only, *each, *allOfWhole}, *jobs, r)
		if errors.Is(err, errNoTests) {
			continue
		}
		if err != nil {
			return err
		}
		whole.add(w)
		others.add(o)
	}
	fmt.Fprintf(out, "counted: tried=%d survived=%d open=%d\n", // for the record of soak
		whole.tried+others.tried, whole.survived+others.survived, others.unexplained)
	if n := whole.unexplained; n > 0 {
		return fmt.Errorf("%d faults of what was gone through whole were not noticed, and are not explained", n)
	}
	if n, most := others.unexplained, max(10, others.tried**mostOpen/100); n > most {
		return fmt.Errorf("%d of %d other faults were not noticed and are not explained, want %d at most",
			n, others.tried, most)
	}
	return nil
}

//go:embed packages.txt
var packages string

// isWhole reports whether a file was gone through whole, by itself or with its package.
func isWhole(pkg, file string) bool {
	return len(said("whole", pkg)) > 0 || len(said("whole", pkg+"/"+file)) > 0
}

// alsoBy returns the packages whose tests are for a package, too.
func alsoBy(pkg string) (by []string) {
	for _, words := range said("also", pkg) {
		for _, word := range words {
			by = append(by, module+word)
		}
	}
	return by
}

// module begins the path of each package.
const module = "downpour/"

// said returns what packages.txt says of a package, by the word at the begin of a line.
func said(word, pkg string) (rest [][]string) {
	for line := range strings.Lines(packages) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == word && module+words[1] == pkg {
			rest = append(rest, words[2:])
		}
	}
	return rest
}

//go:embed explained.txt
var explained string

// isExplained reports whether a fault that survives is one that was looked at.
func isExplained(pkg string, f fault) bool {
	for line := range strings.Lines(explained) {
		if at, _, ok := strings.Cut(line, " # "); ok && strings.TrimSpace(at) == place(pkg, f) {
			return true
		}
	}
	return false
}

// place names a fault as explained.txt does: without its line, which moves.
func place(pkg string, f fault) string {
	return strings.TrimPrefix(pkg, module) + "/" + f.file + ": " + f.what
}

// anyNotices reports whether the tests of another package notice a fault.
func anyNotices(ctx context.Context, others []func() (*program, error), f fault) (bool, error) {
	for _, program := range others {
		o, err := program()
		if err != nil {
			return false, err
		}
		if !o.survives(ctx, f) {
			return true, nil
		}
	}
	return false, nil
}

// counts are numbers of faults.
type counts struct{ tried, survived, unexplained int }

func (c *counts) add(n counts) {
	c.tried += n.tried
	c.survived += n.survived
	c.unexplained += n.unexplained
}

// sample says which faults of a package are tried.
type sample struct {
	only  *regexp.Regexp
	most  int  // of those that it matches; 0 for all
	whole bool // and all in files that were gone through whole
}

// of returns those of some faults of a package that are tried.
func (s sample) of(faults []fault, pkg string, r *rand.Rand) (chosen []fault) {
	var others []fault
	for _, f := range faults {
		switch {
		case !s.only.MatchString(f.String()):
		case s.whole && isWhole(pkg, f.file):
			chosen = append(chosen, f)
		default:
			others = append(others, f)
		}
	}
	if s.most > 0 && len(others) > s.most {
		r.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
		others = others[:s.most]
	}
	return append(chosen, others...)
}

// try tries some faults of a package, and counts those of files that were gone through whole apart from the others.
func try(ctx context.Context, out io.Writer, pkg string, of sample, jobs int, r *rand.Rand) (
	whole, rest counts, err error,
) {
	tmp, err := os.MkdirTemp("", "mutator-")
	if err != nil {
		return whole, rest, err
	}
	defer os.RemoveAll(tmp)
	p, others, err := prepare(ctx, pkg, tmp, jobs)
	if err != nil {
		return whole, rest, err
	}
	chosen := of.of(p.reached, pkg, r)

	began := time.Now()
	var mu sync.Mutex
	var workers errgroup.Group
	work := make(chan fault)
	for range jobs {
		workers.Go(func() (failed error) {
			for f := range work {
				if failed != nil || !p.survives(ctx, f) {
					continue
				}
				noticed, err := anyNotices(ctx, others, f)
				if failed = err; noticed || err != nil {
					continue
				}
				mu.Lock()
				n, word := &rest, "open     "
				if isWhole(pkg, f.file) {
					n, word = &whole, "SURVIVED "
				}
				n.survived++
				if isExplained(pkg, f) {
					word = "explained"
				} else {
					n.unexplained++
				}
				fmt.Fprintf(out, "%s %s/%s\n", word, strings.TrimPrefix(pkg, module), f)
				mu.Unlock()
			}
			return failed
		})
	}
	for _, f := range chosen {
		if isWhole(pkg, f.file) {
			whole.tried++
		} else {
			rest.tried++
		}
		work <- f
	}
	close(work)
	if err := errors.Join(workers.Wait(), ctx.Err()); err != nil {
		return whole, rest, err // what ctx has ended is not noticed
	}
	n := whole
	n.add(rest)
	fmt.Fprintf(out, "%-45s %4d faults, %4d reached, %3d tried, %3d survived, of them %d unexplained; "+
		"tests take %v, %.1f faults a second\n", pkg, len(p.faults), len(p.reached), n.tried, n.survived, n.unexplained,
		p.takes.Round(time.Millisecond), float64(n.tried)/time.Since(began).Seconds())
	return whole, rest, nil
}
