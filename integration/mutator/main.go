// Command mutator puts faults into packages wherever their syntax has a place for one, and reports
// which their tests do not notice:
//
//	go run ./integration/mutator [-each 60] [-for 80m] [-jobs 2] ./encoding ./pushdown/operator/...
//	go run ./integration/mutator -at 'series.go:271:' ./gateway/write
//
// It negates conditions and their parts, replaces operators (< by <=, + by -), leaves statements
// out, and returns nil for an error. All faults of a package are compiled into one test program,
// each behind a switch, so a fault takes only as long as the tests that reach it: each test runs
// once without a fault, which shows what it reaches. The sources stay as they are. A line on
// which a fault does not compile gets none.
//
// Of the faults that a package's tests reach, -each are tried, drawn by TEST_SEED, or with -at
// all that it matches as they are printed, "series.go:271: negated: n > 0". One that survives
// them must also survive the tests of the package above, if that imports this one: a package
// that was split has its tests there. Some that survive both are no gap in the tests: they
// change only how fast something is, for instance. explained.txt lists them with the reason.
// Any other one that survives fails the command.
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
	"slices"
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
	at := flags.String("at", "", "try all faults that a regexp matches, and no others")
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
	packages := strings.Fields(string(list))
	seed, _ := strconv.ParseUint(os.Getenv("TEST_SEED"), 10, 64)
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(packages), func(i, j int) { packages[i], packages[j] = packages[j], packages[i] })

	began := time.Now()
	var all counts
	for _, pkg := range packages {
		if *lasts > 0 && time.Since(began) > *lasts {
			fmt.Fprintf(out, "%v are over\n", *lasts)
			break
		}
		n, err := try(ctx, out, pkg, only, *each, *jobs, r)
		if errors.Is(err, errNoTests) {
			continue
		}
		if err != nil {
			return err
		}
		all.tried += n.tried
		all.survived += n.survived
		all.unexplained += n.unexplained
	}
	fmt.Fprintf(out, "counted: tried=%d survived=%d\n", all.tried, all.survived) // for the record of soak
	if all.unexplained > 0 {
		return fmt.Errorf("%d faults were not noticed and are not explained", all.unexplained)
	}
	return nil
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
	return strings.TrimPrefix(pkg, "downpour/") + "/" + f.file + ": " + f.what
}

// counts are numbers of faults.
type counts struct{ tried, survived, unexplained int }

// try tries some faults of a package.
func try(ctx context.Context, out io.Writer, pkg string, only *regexp.Regexp, most, jobs int, r *rand.Rand) (
	n counts, err error,
) {
	tmp, err := os.MkdirTemp("", "mutator-")
	if err != nil {
		return n, err
	}
	defer os.RemoveAll(tmp)
	p, err := prepare(ctx, pkg, tmp, jobs)
	if err != nil {
		return n, err
	}
	above := sync.OnceValues(func() (*program, error) { return p.above(ctx, jobs) })
	chosen := slices.DeleteFunc(slices.Clone(p.reached), func(f fault) bool { return !only.MatchString(f.String()) })
	if most > 0 && len(chosen) > most {
		r.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:most]
	}

	began := time.Now()
	var mu sync.Mutex
	var workers errgroup.Group
	work := make(chan fault)
	n.tried = len(chosen)
	for range jobs {
		workers.Go(func() (failed error) {
			for f := range work {
				if failed != nil || !p.survives(ctx, f) {
					continue
				}
				a, err := above()
				if err != nil {
					failed = err
					continue
				}
				if a != nil && !a.survives(ctx, f) {
					continue
				}
				mu.Lock()
				n.survived++
				word := "explained"
				if !isExplained(pkg, f) {
					n.unexplained++
					word = "SURVIVED "
				}
				fmt.Fprintf(out, "%s %s/%s\n", word, strings.TrimPrefix(pkg, "downpour/"), f)
				mu.Unlock()
			}
			return failed
		})
	}
	for _, f := range chosen {
		work <- f
	}
	close(work)
	if err := workers.Wait(); err != nil {
		return n, err
	}
	fmt.Fprintf(out, "%-45s %4d faults, %4d reached, %3d tried, %3d survived, of them %d unexplained; "+
		"tests take %v, %.1f faults a second\n", pkg, len(p.faults), len(p.reached), n.tried, n.survived, n.unexplained,
		p.takes.Round(time.Millisecond), float64(n.tried)/time.Since(began).Seconds())
	return n, ctx.Err()
}
