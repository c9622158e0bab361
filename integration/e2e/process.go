package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Command describes a process to start.
type Command struct {
	Name string   // short name, also that of the log file NAME.log
	Path string   // program, looked up in PATH when it holds no slash
	Args []string // without the program itself
	Env  []string // the whole environment, KEY=VALUE; nil means this process's
	Dir  string   // working directory; also where the log goes

	// Interactive gives Stdin and Stdout pipes. Otherwise the process reads
	// nothing and its output goes to the log, as its errors always do.
	Interactive bool
}

// Process is a started process. It leads a process group of its own and is
// killed when the process that started it dies.
type Process struct {
	Name string
	Log  string // path of the log file

	// Stdin and Stdout are set for an interactive command only.
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start starts the command. ctx bounds only the start; the process lives until
// it ends by itself, by Stop or by Kill.
func Start(ctx context.Context, c Command) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = c.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &Process{Name: c.Name, Log: filepath.Join(c.Dir, c.Name+".log"), cmd: cmd, done: make(chan struct{})}

	// Appending keeps the lines of an earlier life of the same program.
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if c.Interactive {
		cmd.Stdout = nil // StdoutPipe refuses one that is set
		if err := p.pipes(); err != nil {
			return nil, errors.Join(fmt.Errorf("start %s: %w", c.Name, err), log.Close())
		}
	}
	started := make(chan error, 1)
	go p.run(log, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	return p, nil
}

func (p *Process) pipes() (err error) {
	if p.Stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	p.Stdout, err = p.cmd.StdoutPipe()
	return err
}

// run starts the process and waits for it on one locked thread: the kernel
// sends the parent-death signal when the *thread* that forked ends, and an
// unlocked one may.
func (p *Process) run(log *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer log.Close()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	// Not cmd.Wait: it would close an interactive command's Stdout before the
	// reader has taken the last lines.
	state, err := p.cmd.Process.Wait()
	switch {
	case err != nil:
		p.err = err
	case !state.Success():
		p.err = &exec.ExitError{ProcessState: state}
	default:
		p.err = errExited
	}
	close(p.done)
}

// errExited is Err of a process that ended with status 0.
var errExited = errors.New("exit status 0")

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended (never nil then), or nil while it runs.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// ExitCode waits for the end of the process and returns its exit status, -1 if
// a signal ended it or ctx ended first.
func (p *Process) ExitCode(ctx context.Context) int {
	select {
	case <-ctx.Done():
		return -1
	case <-p.done:
	}
	var exit *exec.ExitError
	switch {
	case errors.Is(p.err, errExited):
		return 0
	case errors.As(p.err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// Signal sends a signal to the process alone, not to its group: SIGSTOP and
// SIGCONT freeze and thaw it. A process that has ended gives os.ErrProcessDone.
func (p *Process) Signal(s syscall.Signal) error {
	if p.Err() != nil {
		return fmt.Errorf("%s to %s: %w", s, p.Name, os.ErrProcessDone)
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s to %s: %w", s, p.Name, err)
	}
	return nil
}

// Kill ends the process and its group as kill -9 does, and waits until it is
// gone. Killing an ended process does nothing.
func (p *Process) Kill() {
	if p.Err() == nil {
		// An id is not given again in the moment between the leader's end and
		// the closing of done, and a group id not while a member lives.
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	}
	<-p.done
}

// Stop asks the process to end with SIGTERM and kills it if it still runs when
// ctx ends. It returns an error if it had to be killed.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return nil
	} else if err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("stop %s: still running after SIGTERM, killed\n%s", p.Name, p.LogTail(20))
	}
}

// stopWithin is Stop with a time of its own, for the end of a whole set of
// processes.
func stopWithin(p *Process, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return p.Stop(ctx)
}

// LogTail returns the last n lines of the log under a line that names it.
func (p *Process) LogTail(n int) string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return fmt.Sprintf("(log of %s: %v)", p.Name, err)
	}
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return fmt.Sprintf("-- end of %s\n%s", p.Log, bytes.Join(lines, []byte("\n")))
}

// Memory is what the kernel says of a process's memory, in bytes.
type Memory struct {
	Resident int64 // now (VmRSS)
	Peak     int64 // the most it ever was (VmHWM)
	File     int64 // of Resident, pages of files: the program (RssFile)
}

// ResetPeak makes Memory's Peak start over at what is resident now. It is an
// error where the kernel does not let us, as it may not in a container.
// Source: proc(5), /proc/PID/clear_refs, value 5.
func (p *Process) ResetPeak() error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0); err != nil {
		return fmt.Errorf("peak of memory of %s: %w", p.Name, err)
	}
	return nil
}

// Memory reads the process's resident memory from /proc.
func (p *Process) Memory() (Memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return Memory{}, fmt.Errorf("memory of %s: %w", p.Name, err)
	}
	resident, err1 := statusKiB(string(text), "VmRSS:")
	peak, err2 := statusKiB(string(text), "VmHWM:")
	file, err3 := statusKiB(string(text), "RssFile:")
	if err := errors.Join(err1, err2, err3); err != nil {
		return Memory{}, fmt.Errorf("memory of %s: %w", p.Name, err)
	}
	return Memory{Resident: resident, Peak: peak, File: file}, nil
}

// statusKiB finds a line such as "VmRSS:	  123456 kB" and returns it in bytes.
func statusKiB(status, field string) (int64, error) {
	_, rest, found := strings.Cut(status, field)
	words := strings.Fields(rest)
	if !found || len(words) == 0 {
		return 0, fmt.Errorf("no %s in the status of the process", field)
	}
	kib, err := strconv.ParseInt(words[0], 10, 64)
	return kib << 10, err
}
