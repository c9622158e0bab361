package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

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
	reached []fault       // by the tests
	takes   time.Duration // with all faults off
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

// prepare compiles a package's tests into tmp, and runs them with all faults off, which must pass.
func prepare(ctx context.Context, pkg, tmp string) (*program, error) {
	l, err := list(ctx, pkg)
	if err != nil {
		return nil, err
	}
	if len(l.TestGoFiles)+len(l.XTestGoFiles) == 0 {
		return nil, errNoTests
	}
	p := &program{
		path: filepath.Join(tmp, "tests"),
		dir:  l.Dir,
		pkg:  l.ImportPath,
		tmp:  tmp,
		args: append([]string{"-test.failfast"}, rapidflags.Of(l.Dir)...),
	}
	if err := p.build(ctx, l, tmp); err != nil {
		return nil, err
	}
	return p, p.baseline(ctx, filepath.Join(tmp, "reached"))
}

// above is the test program of the package above with the same faults, nil if that has no tests or does not import
// the package.
func (p *program) above(ctx context.Context) (*program, error) {
	dir := filepath.Dir(p.dir)
	if files, err := filepath.Glob(filepath.Join(dir, "*.go")); err != nil || len(files) == 0 {
		return nil, err
	}
	l, err := list(ctx, path.Dir(p.pkg))
	if err != nil || len(l.TestGoFiles)+len(l.XTestGoFiles) == 0 || !slices.Contains(l.Imports, p.pkg) {
		return nil, err
	}
	a := &program{
		path:    filepath.Join(p.tmp, "above"),
		dir:     l.Dir,
		pkg:     p.pkg,
		overlay: p.overlay,
		tmp:     p.tmp,
		args:    append([]string{"-test.failfast"}, rapidflags.Of(l.Dir)...),
		faults:  p.faults,
	}
	if out, err := a.compile(ctx, l.ImportPath); err != nil {
		return nil, fmt.Errorf("%s with the faults of %s: %w\n%s", l.ImportPath, p.pkg, err, out)
	}
	return a, a.baseline(ctx, filepath.Join(p.tmp, "reached-above"))
}

// compile compiles the tests of a package with the faults.
func (p *program) compile(ctx context.Context, tests string) ([]byte, error) {
	return exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-w",
		"-gcflags="+p.pkg+"=-e", "-overlay="+p.overlay, "-o", p.path, tests).CombinedOutput()
}

// build compiles the tests with faults in all files. Lines that do not compile with theirs lose them.
func (p *program) build(ctx context.Context, l listed, tmp string) error {
	except := map[string]map[int]bool{} // lines by file
	for _, name := range l.GoFiles {
		except[name] = map[int]bool{}
	}
	for {
		var err error
		if p.overlay, err = p.write(l, tmp, except); err != nil {
			return err
		}
		out, err := p.compile(ctx, l.ImportPath)
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

// baseline runs the tests with all faults off, and learns which they reach.
func (p *program) baseline(ctx context.Context, reached string) error {
	began := time.Now()
	if out, err := p.run(ctx, mutant.Reached+"="+reached); err != nil {
		return fmt.Errorf("without a fault: %w\n%s", err, out)
	}
	p.takes = time.Since(began)
	text, err := os.ReadFile(reached)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	was := map[string]bool{}
	for _, id := range strings.Fields(string(text)) {
		was[id] = true
	}
	for _, f := range p.faults {
		if was[strconv.Itoa(f.id)] {
			p.reached = append(p.reached, f)
		}
	}
	return nil
}

// survives reports whether the tests pass with a fault. One with which they hang does not.
func (p *program) survives(ctx context.Context, f fault) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*p.takes+10*time.Second)
	defer cancel()
	_, err := p.run(ctx, fmt.Sprintf("%s=%d", mutant.Variable, f.id))
	return err == nil
}

// mostKiB bounds the memory of the tests: a fault may make a loop that takes all there is.
const mostKiB = 4 << 20

// run runs the tests with the fixed seed. When ctx ends, it ends them and what they have started.
func (p *program) run(ctx context.Context, variable string) ([]byte, error) {
	limited := fmt.Sprintf(`ulimit -v %d && exec "$0" "$@"`, mostKiB)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, p.path}, p.args...)...)
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
