package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/integration/mutator/mutant"
	"downpour/integration/rapidflags"
)

// program is the test program of a package with all its faults in it.
type program struct {
	path    string
	dir     string // where the package is, in which tests run
	tmp     string // for files of the tests, which faults may leave behind
	args    []string
	pkg     string // that the faults are in
	overlay string // of its files
	faults  []fault
	reached []fault          // by any test
	by      map[int][]*trial // the tests that reach a fault, by its number, short ones first
	takes   time.Duration    // all tests, with all faults off

	mu      sync.Mutex
	noticed map[string]*trial // by file: the test that noticed its last fault
}

// trial is a test without a fault.
type trial struct {
	name  string
	takes time.Duration
}

// listed is what go list says of a package.
type listed struct {
	Dir, ImportPath                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports                            []string
}

// list asks the go command about a package.
func list(ctx context.Context, pkg string) (l listed, err error) {
	out, err := exec.CommandContext(ctx, "go", "list",
		"-json=Dir,ImportPath,GoFiles,TestGoFiles,XTestGoFiles,Imports", pkg).Output()
	if err != nil {
		return l, fmt.Errorf("go list %s: %w", pkg, err)
	}
	return l, json.Unmarshal(out, &l)
}

// errNoTests is returned of a package that has none.
var errNoTests = errors.New("no tests")

// prepare returns the test program of a package with its faults, compiled into tmp and tried with all of them off,
// which must pass; and the programs of other packages whose tests are for this one, too: of the one above, if that
// imports it, and of those that packages.txt names. Without tests of its own the first of those stands for it.
func prepare(ctx context.Context, pkg, tmp string, jobs int) (
	p *program, others []func() (*program, error), err error,
) {
	l, err := list(ctx, pkg)
	if err != nil {
		return nil, nil, err
	}
	var suites []listed
	if len(l.TestGoFiles)+len(l.XTestGoFiles) > 0 {
		suites = append(suites, l)
	}
	more, err := alsoTested(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	if suites = append(suites, more...); len(suites) == 0 {
		return nil, nil, errNoTests
	}
	p = newProgram(l, suites[0], tmp, 0)
	if err := p.build(ctx, l, suites[0], tmp); err != nil {
		return nil, nil, err
	}
	for i, s := range suites[1:] {
		others = append(others, sync.OnceValues(func() (*program, error) {
			o := newProgram(l, s, tmp, 1+i)
			o.overlay, o.faults = p.overlay, p.faults
			if out, err := o.compile(ctx, s.ImportPath); err != nil {
				return nil, fmt.Errorf("%s with the faults of %s: %w\n%s", s.ImportPath, l.ImportPath, err, out)
			}
			return o, o.baseline(ctx, jobs)
		}))
	}
	return p, others, p.baseline(ctx, jobs)
}

// newProgram is the program of a suite of tests with the faults of a package, not yet compiled.
func newProgram(l, suite listed, tmp string, number int) *program {
	return &program{
		path: filepath.Join(tmp, fmt.Sprint("tests", number)),
		dir:  suite.Dir,
		pkg:  l.ImportPath,
		tmp:  tmp,
		args: append([]string{"-test.failfast"}, rapidflags.Of(suite.Dir)...),
	}
}

// alsoTested returns the other packages whose tests are for this one, too, those that are named first.
func alsoTested(ctx context.Context, l listed) (suites []listed, err error) {
	for _, name := range alsoBy(l.ImportPath) {
		s, err := list(ctx, name)
		if err != nil {
			return nil, err
		}
		suites = append(suites, s)
	}
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(l.Dir), "*.go")); len(files) > 0 {
		above, err := list(ctx, path.Dir(l.ImportPath))
		if err != nil {
			return nil, err
		}
		if slices.Contains(above.Imports, l.ImportPath) && len(above.TestGoFiles)+len(above.XTestGoFiles) > 0 {
			suites = append(suites, above)
		}
	}
	return suites, nil
}

// compile compiles the tests of a package with the faults.
func (p *program) compile(ctx context.Context, tests string) ([]byte, error) {
	return exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-w",
		"-gcflags="+p.pkg+"=-e", "-overlay="+p.overlay, "-o", p.path, tests).CombinedOutput()
}

// build compiles the tests with faults in all files. Lines that do not compile with theirs lose them.
func (p *program) build(ctx context.Context, l, suite listed, tmp string) error {
	except := map[string]map[int]bool{} // lines by file
	for _, name := range l.GoFiles {
		except[name] = map[int]bool{}
	}
	for {
		var err error
		if p.overlay, err = p.write(l, tmp, except); err != nil {
			return err
		}
		out, err := p.compile(ctx, suite.ImportPath)
		if err == nil {
			return nil
		}
		if !without(except, string(out)) {
			return fmt.Errorf("%s with its faults: %w\n%s", l.ImportPath, err, out)
		}
	}
}

// write writes the changed files, and returns the path of the list of them for the go command's -overlay.
func (p *program) write(l listed, tmp string, except map[string]map[int]bool) (string, error) {
	p.faults = nil
	replace := map[string]string{}
	for i, name := range l.GoFiles {
		text, err := os.ReadFile(filepath.Join(l.Dir, name))
		if err != nil {
			return "", err
		}
		s, err := parse(name, text, 1+len(p.faults), except[name])
		if err != nil {
			return "", err
		}
		if len(s.faults) == 0 {
			continue
		}
		p.faults = append(p.faults, s.faults...)
		to := filepath.Join(tmp, fmt.Sprintf("%d-%s", i, name))
		if err := os.WriteFile(to, s.changed(), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(l.Dir, name)] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(tmp, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// compileError has no column where that is large.
var compileError = regexp.MustCompile(`(?m)([^/\s:]+\.go):(\d+):(?:\d+:)? `)

// without adds the lines that a compiler complains of. It returns false if there is no new one.
func without(except map[string]map[int]bool, output string) (found bool) {
	for _, m := range compileError.FindAllStringSubmatch(output, -1) {
		name := m[1]
		if i := strings.IndexByte(name, '-'); except[name] == nil && i >= 0 {
			name = name[i+1:] // that of the changed file
		}
		line, _ := strconv.Atoi(m[2])
		if lines := except[name]; lines != nil && !lines[line] {
			lines[line], found = true, true
		}
	}
	return found
}

// aTest matches the line in which a test program names one of its tests.
var aTest = regexp.MustCompile(`(?m)^(Test|Fuzz|Example)\w*$`)

// baseline runs each test alone with all faults off, and learns which faults it reaches.
func (p *program) baseline(ctx context.Context, jobs int) error {
	names, err := p.run(ctx, mutant.Variable+"=0", "-test.list=.")
	if err != nil {
		return fmt.Errorf("list of tests: %w\n%s", err, names)
	}
	p.by, p.noticed = map[int][]*trial{}, map[string]*trial{}
	var mu sync.Mutex
	var workers errgroup.Group
	workers.SetLimit(jobs)
	for _, name := range aTest.FindAllString(string(names), -1) {
		workers.Go(func() error {
			t := &trial{name: name}
			ids, err := p.reach(ctx, t)
			mu.Lock()
			defer mu.Unlock()
			for _, id := range ids {
				p.by[id] = append(p.by[id], t)
			}
			p.takes += t.takes
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	for _, f := range p.faults {
		if len(p.by[f.id]) > 0 {
			p.reached = append(p.reached, f)
			slices.SortFunc(p.by[f.id], func(a, b *trial) int { return cmp.Compare(a.takes, b.takes) })
		}
	}
	return nil
}

// reach runs a test, and returns the numbers of the faults that it reaches.
func (p *program) reach(ctx context.Context, t *trial) (ids []int, err error) {
	file := p.path + "-reached-" + t.name
	began := time.Now()
	if out, err := p.run(ctx, mutant.Reached+"="+file, only([]*trial{t})); err != nil {
		return nil, fmt.Errorf("%s without a fault: %w\n%s", t.name, err, out)
	}
	t.takes = time.Since(began)
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	seen := map[int]bool{}
	for _, word := range strings.Fields(string(text)) {
		id, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		seen[id] = true // once for each process
	}
	return slices.Collect(maps.Keys(seen)), nil
}

// only is the flag with which a test program runs some tests.
func only(tests []*trial) string {
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	return "-test.run=^(" + strings.Join(names, "|") + ")$"
}

// survives reports whether the tests that reach a fault pass with it. One with which they hang does not.
func (p *program) survives(ctx context.Context, f fault) bool {
	p.mu.Lock()
	last := p.noticed[f.file]
	p.mu.Unlock()
	for _, tests := range groups(p.by[f.id], last) {
		if failed, ok := p.pass(ctx, f, tests); !ok {
			p.mu.Lock()
			p.noticed[f.file] = failed
			p.mu.Unlock()
			return false
		}
	}
	return true
}

// groups divides tests into groups, the short ones first. A process runs each group, and none after one has failed.
// The test that noticed the fault before this one is alone in the first. A group takes as long as all before it, so
// that there are few.
func groups(tests []*trial, last *trial) (out [][]*trial) {
	const least = 50 * time.Millisecond // a process takes some
	if last != nil && slices.Contains(tests, last) {
		out = append(out, []*trial{last})
	}
	var group []*trial
	var before, takes time.Duration
	for _, t := range tests {
		if t == last {
			continue
		}
		if len(group) > 0 && takes+t.takes > max(before, least) {
			out, group, before, takes = append(out, group), nil, before+takes, 0
		}
		group, takes = append(group, t), takes+t.takes
	}
	if len(group) > 0 {
		out = append(out, group)
	}
	return out
}

// aFailure matches the line in which a test program says which test failed.
var aFailure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// pass reports whether tests pass with a fault, and which does not, if that is known.
func (p *program) pass(ctx context.Context, f fault, tests []*trial) (failed *trial, ok bool) {
	limit := 5 * time.Second
	for _, t := range tests {
		limit += 10 * t.takes
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := p.run(ctx, fmt.Sprintf("%s=%d", mutant.Variable, f.id), only(tests))
	if err == nil {
		return nil, true
	}
	if m := aFailure.FindSubmatch(out); m != nil {
		if i := slices.IndexFunc(tests, func(t *trial) bool { return t.name == string(m[1]) }); i >= 0 {
			return tests[i], false
		}
	}
	return nil, false
}

// mostKiB bounds the memory of the tests: a fault may make a loop that takes all there is.
const mostKiB = 4 << 20

// run runs the test program with the fixed seed. When ctx ends, it ends them and what they have started.
func (p *program) run(ctx context.Context, variable string, flags ...string) ([]byte, error) {
	limited := fmt.Sprintf(`ulimit -v %d && exec "$0" "$@"`, mostKiB)
	cmd := exec.CommandContext(ctx, "sh", slices.Concat([]string{"-c", limited, p.path}, p.args, flags)...)
	cmd.Dir = p.dir
	cmd.Env = append(withoutSeed(os.Environ()), "TMPDIR="+p.tmp, variable)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

func withoutSeed(env []string) (out []string) {
	for _, v := range env {
		if !strings.HasPrefix(v, "TEST_SEED=") {
			out = append(out, v)
		}
	}
	return out
}
