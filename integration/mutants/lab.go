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
	"strings"
	"sync"
	"time"
)

// lab tries mutants, some at once.
type lab struct {
	out  io.Writer
	jobs int
	root string

	mu      sync.Mutex
	healthy map[string]error // tests without a fault, by folder and name
}

// limit bounds one test: a fault that makes it hang is caught by that. Property
// tests make fewer tries when they see their time end, hence the length.
const limit = 10 * time.Minute

// tryAll returns how many mutants were not caught.
func (l *lab) tryAll(ctx context.Context, mutants []mutant) (bad int, err error) {
	if l.root, err = moduleRoot(); err != nil {
		return 0, err
	}
	l.healthy = map[string]error{}
	work := make(chan mutant)
	var workers sync.WaitGroup
	for range max(1, l.jobs) {
		workers.Go(func() {
			for m := range work {
				began := time.Now()
				err := l.try(ctx, m)
				l.mu.Lock()
				if err != nil {
					bad++
					fmt.Fprintf(l.out, "SURVIVED %s: %v\n", m.name, err)
				} else {
					fmt.Fprintf(l.out, "caught   %-28s by %s in %s, %.1f s\n", m.name, m.testName(), m.pkg(), time.Since(began).Seconds())
				}
				l.mu.Unlock()
			}
		})
	}
	for _, m := range mutants {
		work <- m
	}
	close(work)
	workers.Wait()
	return bad, ctx.Err()
}

// try returns nil if the mutant's test fails with the fault and not without.
func (l *lab) try(ctx context.Context, m mutant) error {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := overlay(l.root, dir, m)
	if err != nil {
		return err
	}
	output, err := l.test(ctx, m, "-count=1", "-overlay="+file)
	if err == nil { // a property test may have been out of luck
		output, err = l.test(ctx, m, "-count=5", "-failfast", "-overlay="+file)
	}
	switch {
	case err == nil:
		return fmt.Errorf("%s passes with the fault in it", m.test)
	case !failed(output, m.testName()):
		return fmt.Errorf("the test did not fail, its run did: %w\n%s", err, tail(output))
	}
	return l.control(ctx, m)
}

// control runs the test without the fault: one that fails by itself catches nothing. Its
// result stands for all mutants of the test; jobs that begin together may run it twice.
func (l *lab) control(ctx context.Context, m mutant) error {
	key := m.pkg() + " " + m.testName()
	l.mu.Lock()
	err, known := l.healthy[key]
	l.mu.Unlock()
	if known {
		return err
	}
	if output, runErr := l.test(ctx, m); runErr != nil {
		err = fmt.Errorf("%s fails without the fault: %w\n%s", m.test, runErr, tail(output))
	} else if strings.Contains(output, "no tests to run") {
		err = fmt.Errorf("there is no test %s", key)
	}
	l.mu.Lock()
	l.healthy[key] = err
	l.mu.Unlock()
	return err
}

// test runs the mutant's test and returns what it wrote.
func (l *lab) test(ctx context.Context, m mutant, args ...string) (string, error) {
	args = append([]string{"test", "-timeout", limit.String(), "-run", "^" + m.testName() + "$"}, args...)
	args = append(args, "./"+m.pkg())
	if usesRapid(filepath.Join(l.root, filepath.FromSlash(m.pkg()))) {
		// That the test fails is enough: no small example, no file of it among the sources.
		args = append(args, "-rapid.shrinktime=1s", "-rapid.nofailfile")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = l.root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// usesRapid tells whether a package's tests have the flags of property tests.
func usesRapid(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), `"pgregory.net/rapid"`) {
			return true
		}
	}
	return false
}

// failed tells whether the output is that of a test that ran and failed, by
// itself, by a panic, or by taking too long; not of one that was not built.
func failed(output, test string) bool {
	if strings.Contains(output, "[build failed]") || strings.Contains(output, "[setup failed]") {
		return false
	}
	name := regexp.QuoteMeta(test)
	return regexp.MustCompile(`(?m)^\s*--- FAIL: ` + name + `\b|^panic: |^fatal error: `).MatchString(output)
}

// tail is the end of an output.
func tail(output string) string {
	const most = 1500
	if len(output) > most {
		return "…" + output[len(output)-most:]
	}
	return output
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
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = up
	}
}
