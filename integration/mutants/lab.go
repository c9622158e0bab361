package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/integration/rapidflags"
)

// lab tries faults, some at once.
type lab struct {
	out  io.Writer
	jobs int
	root string
	// limit bounds one test: a fault that makes it hang is caught by that. Property tests make fewer tries when
	// they see their time end, so it is minutes.
	limit time.Duration

	mu      sync.Mutex
	healthy map[string]error // tests without a fault, by folder and name
}

// errNotRun is a fault that does not compile, or whose test is gone.
var errNotRun = errors.New("the test did not run")

// tryAll returns how many faults were not caught.
func (l *lab) tryAll(ctx context.Context, faults []fault) (bad int, err error) {
	l.healthy = map[string]error{}
	work := make(chan fault)
	var workers sync.WaitGroup
	for range max(1, l.jobs) {
		workers.Go(func() {
			for f := range work {
				began := time.Now()
				ran, err := l.try(ctx, f)
				l.mu.Lock()
				switch {
				case errors.Is(err, errNotRun):
					bad++
					fmt.Fprintf(l.out, "NOT RUN  %s: %v\n", f.name, err)
				case err != nil:
					bad++
					fmt.Fprintf(l.out, "SURVIVED %s: %v\n", f.name, err)
				default:
					fmt.Fprintf(l.out, "caught   %-40s by %s in %s after %s s, %.0f s with builds\n",
						f.name, f.test, f.dir, ran, time.Since(began).Seconds())
				}
				l.mu.Unlock()
			}
		})
	}
	for _, f := range faults {
		work <- f
	}
	close(work)
	workers.Wait()
	return bad, ctx.Err()
}

// try returns how many seconds the fault's test ran until it failed, and no error if it fails with the fault and not
// without.
func (l *lab) try(ctx context.Context, f fault) (ran string, err error) {
	dir, err := os.MkdirTemp("", "fault-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file, err := f.overlay(l.root, dir)
	if err != nil {
		return "", err
	}
	output, err := l.test(ctx, f, "-count=1", "-overlay="+file)
	ran, ok := failed(output, f.test)
	switch {
	case notRun(output):
		return "", fmt.Errorf("%w: %s", errNotRun, tail(output))
	case err == nil:
		return "", fmt.Errorf("%s passes with the fault in it", f.test)
	case !ok:
		return "", fmt.Errorf("the test did not fail, its run did: %w\n%s", err, tail(output))
	}
	return ran, l.control(ctx, f)
}

// control runs the test without the fault: one that fails by itself catches nothing. Its
// result stands for all faults of the test; jobs that begin together may run it twice.
func (l *lab) control(ctx context.Context, f fault) error {
	key := f.dir + " " + f.test
	l.mu.Lock()
	err, known := l.healthy[key]
	l.mu.Unlock()
	if known {
		return err
	}
	if output, runErr := l.test(ctx, f); runErr != nil {
		err = fmt.Errorf("%s fails without the fault: %w\n%s", f.test, runErr, tail(output))
	}
	l.mu.Lock()
	l.healthy[key] = err
	l.mu.Unlock()
	return err
}

// test runs the fault's test and returns what it wrote.
func (l *lab) test(ctx context.Context, f fault, args ...string) (string, error) {
	own := []string{"test", "-vet=off", "-ldflags=-w", "-failfast"}
	own = append(own, "-timeout", l.limit.String(), "-run", "^"+f.test+"$")
	args = append(own, args...)
	args = append(args, "./"+f.dir)
	args = append(args, rapidflags.Of(filepath.Join(l.root, filepath.FromSlash(f.dir)))...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = l.root
	// The fixed seed, so that a fault is always caught or never.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TEST_SEED=") })
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// notRun reports whether the output is that of a test that was not built, or is not there.
func notRun(output string) bool {
	return slices.ContainsFunc([]string{"[build failed]", "[setup failed]", "[no tests to run]", "[no test files]"},
		func(s string) bool { return strings.Contains(output, s) })
}

// failed reports whether the output is that of a test that failed, by itself, by a panic, or by taking too long, and
// after how many seconds.
func failed(output, test string) (ran string, ok bool) {
	name := regexp.QuoteMeta(test)
	if m := regexp.MustCompile(`(?m)^\s*--- FAIL: ` + name + `\b.*\((\S+)s\)$`).FindStringSubmatch(output); m != nil {
		return m[1], true
	}
	return "?", regexp.MustCompile(`(?m)^panic: |^fatal error: `).MatchString(output)
}

// tail is the end of an output.
func tail(output string) string {
	const most = 1500
	if len(output) > most {
		return "…" + output[len(output)-most:]
	}
	return output
}
