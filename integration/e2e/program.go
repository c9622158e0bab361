package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// built remembers what this process has built, so that all tests of a run use
// the same program while somebody edits its source.
var built = struct {
	sync.Mutex
	paths map[string]string
}{paths: map[string]string{}}

// Build compiles a main package of this module, given as "./gateway/cmd/gateway",
// to build/bin, once in the life of this process, and returns the path of the
// program.
func Build(ctx context.Context, pkg string) (string, error) {
	built.Lock()
	defer built.Unlock()
	if path := built.paths[pkg]; path != "" {
		return path, nil
	}
	path, err := build(ctx, pkg)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	built.paths[pkg] = path
	return path, nil
}

// build compiles a main package into build/bin of the module.
func build(ctx context.Context, pkg string) (string, error) {
	dir, err := Root()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "build", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	// Test binaries that run at the same time must not write the file together.
	unlock, err := lockFile(filepath.Join(bin, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(bin, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}

// lockFile waits until no other process holds the lock of a file, and takes it.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // closing drops the lock
}

// ProgramOptions says how one of our programs is started.
type ProgramOptions struct {
	Path string            // the program, built before; empty builds that of this module
	Env  map[string]string // DOWNPOUR_… variables; those of this process are not inherited
	Args []string
	Dir  string // working directory, kept by Close; empty makes one that Close removes
}

// Program is a running program of ours.
type Program struct {
	URL     string // http://host:port of a gateway, https with DOWNPOUR_TLS_CERT
	Addr    string // host:port it listens on
	Process *Process

	dir     string
	ownDir  bool
	command Command
	ready   func(context.Context) error
}

// program returns the path of what is to be started, and builds it if need be.
func (o ProgramOptions) program(ctx context.Context, pkg string) (string, error) {
	if o.Path != "" {
		return o.Path, nil
	}
	return Build(ctx, pkg)
}

// StartGateway builds and starts the gateway and returns when /readyz answers 200. DOWNPOUR_LISTEN
// is a free loopback port unless Env sets it; the store is the embedded one in the working
// directory unless Env sets DOWNPOUR_STORE.
func StartGateway(ctx context.Context, o ProgramOptions) (*Program, error) {
	return startProgram(ctx, "./gateway/cmd/gateway", "DOWNPOUR_LISTEN", o)
}

// StartPushdown builds and starts a pushdown server and returns when its Flight
// port accepts connections.
func StartPushdown(ctx context.Context, o ProgramOptions) (*Program, error) {
	return startProgram(ctx, "./pushdown/cmd/pushdown", "DOWNPOUR_PUSHDOWN_LISTEN", o)
}

// startProgram starts a program of ours and waits until it is ready. listen is the variable of
// the address that it listens on.
func startProgram(ctx context.Context, pkg, listen string, o ProgramOptions) (*Program, error) {
	name := filepath.Base(pkg)
	p, err := newProgram(ctx, pkg, listen, o)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	// A connection is enough of a pushdown server, whose port speaks Flight. A gateway accepts
	// connections before it is ready.
	p.ready = func(ctx context.Context) error { return dials(ctx, p.Addr) }
	if listen == "DOWNPOUR_LISTEN" {
		p.ready = func(ctx context.Context) error { return answers(ctx, p.URL+"/readyz") }
	}
	if err := p.Restart(ctx); err != nil {
		if p.Process != nil {
			p.Process.Kill()
		}
		return nil, fmt.Errorf("start %s, files kept in %s: %w", name, p.dir, err)
	}
	return p, nil
}

// newProgram prepares what startProgram starts: the program, its directory, and its address,
// which is a free port unless o.Env sets the variable listen.
func newProgram(ctx context.Context, pkg, listen string, o ProgramOptions) (*Program, error) {
	path, err := o.program(ctx, pkg)
	if err != nil {
		return nil, err
	}
	p := &Program{dir: o.Dir}
	if p.dir == "" {
		p.ownDir = true
		if p.dir, err = runDir(filepath.Base(pkg)); err != nil {
			return nil, err
		}
	}
	p.Addr = o.Env[listen]
	env := ownEnvironment(o.Env)
	if p.Addr == "" {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		p.Addr = fmt.Sprintf("127.0.0.1:%d", port)
		env = append(env, listen+"="+p.Addr)
	}
	p.URL = "http://" + p.Addr
	if o.Env["DOWNPOUR_TLS_CERT"] != "" {
		p.URL = "https://" + p.Addr
	}
	p.command = Command{Name: filepath.Base(pkg), Path: path, Args: o.Args, Env: env, Dir: p.dir}
	return p, nil
}

// ownEnvironment returns this process's environment with the given variables
// and without any other DOWNPOUR_ one: a developer's settings must not change
// what a test starts.
func ownEnvironment(set map[string]string) []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "DOWNPOUR_") {
			env = append(env, entry)
		}
	}
	for key, value := range set {
		env = append(env, key+"="+value)
	}
	return env
}

// Restart starts the program again as it was first started, on the same port
// and files, and returns when it is ready. It must have ended.
func (p *Program) Restart(ctx context.Context) error {
	process, err := Start(ctx, p.command)
	if err != nil {
		return err
	}
	p.Process = process
	return UntilProcess(ctx, process, 20*time.Millisecond, p.ready)
}

// Run builds and runs a program of ours to its end and returns its exit status
// and all it wrote.
func Run(ctx context.Context, pkg string, o ProgramOptions) (status int, output string, err error) {
	path, err := o.program(ctx, pkg)
	if err != nil {
		return -1, "", err
	}
	cmd := exec.CommandContext(ctx, path, o.Args...)
	cmd.Dir, cmd.Env = o.Dir, ownEnvironment(o.Env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	// A program that ctx has ended has a status as well, but not one of its own.
	if errors.As(err, &exit) && ctx.Err() == nil {
		return exit.ExitCode(), string(out), nil
	}
	if err != nil {
		return -1, string(out), fmt.Errorf("run %s: %w\n%s", pkg, errors.Join(err, context.Cause(ctx)), out)
	}
	return 0, string(out), nil
}

// Launch builds a program of ours and starts it as Run does, without waiting for
// its end. Its output goes to NAME.log in Dir, which must be set.
func Launch(ctx context.Context, pkg, name string, o ProgramOptions) (*Process, error) {
	path, err := o.program(ctx, pkg)
	if err != nil {
		return nil, err
	}
	return Start(ctx, Command{Name: name, Path: path, Args: o.Args, Env: ownEnvironment(o.Env), Dir: o.Dir})
}

// Dir returns the program's working directory.
func (p *Program) Dir() string { return p.dir }

// Close ends the program with SIGTERM and removes the directory it was given.
func (p *Program) Close() error {
	err := stopWithin(p.Process, time.Minute)
	if p.ownDir {
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	return err
}

// CloseKeeping is Close, but leaves the files and returns where they are.
func (p *Program) CloseKeeping() (files string, err error) {
	return p.dir, stopWithin(p.Process, time.Minute)
}
