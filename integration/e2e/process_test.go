package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain also plays processes for the tests: with the argument "start-and-wait"
// this test binary starts a child, names it, and waits, for its parent to be
// killed; with "grow-and-shrink" it uses much memory, gives it back, and waits; with "claim" it tries to take a
// port, says whether it has it, and waits.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "start-and-wait" {
		p, err := Start(context.Background(), Command{
			Name: "child",
			Path: "sleep",
			Args: []string{"600"},
			Dir:  os.Args[2],
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		<-p.Done()
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == "grow-and-shrink" {
		growAndShrink()
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "claim" {
		port, err := strconv.Atoi(os.Args[2])
		if err == nil {
			fmt.Println(claim(port))
		}
		// Until it is killed. Without a read the runtime may take a program that waits for nothing for a deadlock.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, c Command) *Process {
	t.Helper()
	c.Dir = t.TempDir()
	p, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// soon bounds what takes milliseconds when it works; the 5 minutes only end a test that hangs.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestProcess_exitAndLog(t *testing.T) {
	p := start(t, Command{Name: "talker", Path: "sh", Args: []string{"-c", "echo one; echo two >&2; exit 3"}})
	if code := p.ExitCode(soon(t)); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if tail := p.LogTail(1); !strings.HasSuffix(tail, "\ntwo") || strings.Contains(tail, "one") {
		t.Errorf("last line of the log: %q, want two", tail)
	}
	if err := p.Signal(syscall.SIGCONT); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal to an ended process: %v, want os.ErrProcessDone", err)
	}
	if err := p.Stop(soon(t)); err != nil {
		t.Errorf("stop of an ended process: %v, want no error", err)
	}
	p.Kill() // must return
}

func TestProcess_startFails(t *testing.T) {
	_, err := Start(t.Context(), Command{Name: "none", Path: "no-such-program-here", Dir: t.TempDir()})
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "none") {
		t.Errorf("error %v, want one that names the process", err)
	}
}

// Kill ends grandchildren too, for a server may have forked.
func TestProcess_killEndsTheGroup(t *testing.T) {
	p := start(t, Command{
		Name:        "family",
		Path:        "sh",
		Args:        []string{"-c", "sleep 600 & echo $!; wait"},
		Interactive: true,
	})
	grandchild := readPID(t, p)
	p.Kill()
	untilGone(t, grandchild)
}

func TestProcess_stopThatIsIgnored(t *testing.T) {
	p := start(t, Command{
		Name:        "deaf",
		Path:        "sh",
		Args:        []string{"-c", "trap '' TERM; echo ready; while :; do sleep 1; done"},
		Interactive: true,
	})
	if line, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("line %q, error %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Stop(ctx); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("error %v, want one that says it was killed", err)
	}
	if p.Err() == nil {
		t.Error("the process is still running, want it killed")
	}
}

// A process ends with the process that started it, even if that is killed.
func TestProcess_diesWithItsParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := start(t, Command{
		Name:        "parent",
		Path:        self,
		Args:        []string{"start-and-wait", t.TempDir()},
		Interactive: true,
	})
	child := readPID(t, parent)
	if err := parent.Signal(syscall.SIGKILL); err != nil { // not the group: only the parent
		t.Fatal(err)
	}
	untilGone(t, child)
}

func readPID(t *testing.T, p *Process) int {
	t.Helper()
	line, err := bufio.NewReader(p.Stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, p.LogTail(5))
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// untilGone waits until no process has the id, or only a dead one that nobody
// has reaped yet.
func untilGone(t *testing.T, pid int) {
	t.Helper()
	err := Until(soon(t), 5*time.Millisecond, func(context.Context) error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return nil
		}
		return fmt.Errorf("process %d still there: %s", pid, stat)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestProcess_memory(t *testing.T) {
	p := start(t, Command{Name: "sleeper", Path: "sleep", Args: []string{"600"}})
	m, err := p.Memory()
	if err != nil || m.Resident <= 0 || m.Peak < m.Resident {
		t.Errorf("memory %+v, error %v", m, err)
	}
}

// grown is how many bytes the process takes that grows and shrinks.
const grown = 64 << 20

func growAndShrink() {
	memory, err := syscall.Mmap(-1, 0, grown, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	if err := syscall.Munmap(memory); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("shrunk")
	bufio.NewReader(os.Stdin).ReadString('\n')
}

// ResetPeak forgets a peak of the past. Where the kernel does not allow that, the peak stays.
func TestProcess_ResetPeak(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, Command{Name: "grower", Path: self, Args: []string{"grow-and-shrink"}, Interactive: true})
	defer p.Stdin.Close()
	if line, err := bufio.NewReader(p.Stdout).ReadString('\n'); line != "shrunk\n" {
		t.Fatalf("%q, %v\n%s", line, err, p.LogTail(5))
	}
	before, err := p.Memory()
	if err != nil || before.Peak < grown || before.Resident > before.Peak-grown/2 {
		t.Fatalf("memory %+v, error %v; want a peak far above what is resident", before, err)
	}

	want := before.Resident + grown/2
	if err := p.ResetPeak(); err != nil {
		t.Logf("not allowed here: %v", err)
		want = before.Peak
	}
	if after, err := p.Memory(); err != nil || after.Peak > want || after.Peak < after.Resident {
		t.Errorf("memory %+v, error %v, want a peak up to %d", after, err, want)
	}
}

// A process that works uses time, one that sleeps does not, and one that has
// ended has no clock.
func TestProcess_CPU(t *testing.T) {
	busy := start(t, Command{Name: "busy", Path: "sh", Args: []string{"-c", "while :; do :; done"}})
	idle := start(t, Command{Name: "idle", Path: "sleep", Args: []string{"600"}})
	const much = 100 * time.Millisecond
	err := Until(soon(t), 5*time.Millisecond, func(context.Context) error {
		used, err := busy.CPU()
		if err == nil && used < much {
			err = fmt.Errorf("used %s", used)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if used, err := idle.CPU(); err != nil || used <= 0 || used >= much {
		t.Errorf("a process that sleeps has used %s, error %v", used, err)
	}
	idle.Kill()
	if used, err := idle.CPU(); err == nil || !strings.Contains(err.Error(), "processor time of idle") {
		t.Errorf("a process that has ended has used %s, error %v", used, err)
	}
}

func TestUntil(t *testing.T) {
	calls := 0
	err := Until(t.Context(), time.Microsecond, func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("error %v after %d calls, want none after 3", err, calls)
	}

	ctx, cancel := context.WithCancel(t.Context())
	err = Until(ctx, time.Microsecond, func(context.Context) error { cancel(); return errors.New("not yet") })
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("error %v, want the end of the context and the last reason", err)
	}
}

func TestUntilProcess_exited(t *testing.T) {
	p := start(t, Command{Name: "server", Path: "sh", Args: []string{"-c", "echo no such file; exit 2"}})
	err := UntilProcess(soon(t), p, time.Millisecond, func(context.Context) error {
		return errors.New("not listening")
	})
	if err == nil || !strings.Contains(err.Error(), "server exited: exit status 2") ||
		!strings.Contains(err.Error(), "no such file") {
		t.Errorf("error %v, want the exit status and the log", err)
	}
}

func TestFreePort_neverTwice(t *testing.T) {
	seen := map[int]bool{}
	for range 100 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %d given twice", port)
		}
		seen[port] = true
	}
}

// A port that one process was given is given to no other, although nothing listens there, until the first has ended.
func TestFreePort_otherProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	claimed := func(port int) (*Process, string) {
		p := start(t, Command{
			Name:        "other",
			Path:        self,
			Args:        []string{"claim", strconv.Itoa(port)},
			Interactive: true,
		})
		line, err := bufio.NewReader(p.Stdout).ReadString('\n')
		if err != nil {
			t.Fatalf("%v\n%s", err, p.LogTail(5))
		}
		return p, strings.TrimSpace(line)
	}
	mine, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if _, got := claimed(mine); got != "false <nil>" {
		t.Errorf("port %d, which this process has, for another: %s, want false", mine, got)
	}

	theirs := 1_000_000 + os.Getpid() // no port, so that no other run of this test claims it
	other, got := claimed(theirs)
	if ok, err := claim(theirs); got != "true <nil>" || ok || err != nil {
		t.Errorf("port %d for another process: %s, and then for this one: %t, %v; want true and then false; "+
			"the other has ended: %v\n%s", theirs, got, ok, err, other.Err(), other.LogTail(5))
	}
	other.Kill()
	if ok, err := claim(theirs); !ok || err != nil {
		t.Errorf("port %d after the end of the process that had it: %t, %v, want true", theirs, ok, err)
	}
}

func TestOwnEnvironment(t *testing.T) {
	t.Setenv("DOWNPOUR_STORE", "pebble:mine")
	t.Setenv("E2E_KEPT", "yes")
	env := strings.Join(ownEnvironment(map[string]string{"DOWNPOUR_LISTEN": "x"}), "\n")
	if strings.Contains(env, "pebble:mine") || !strings.Contains(env, "E2E_KEPT=yes") ||
		!strings.Contains(env, "DOWNPOUR_LISTEN=x") {
		t.Errorf("want DOWNPOUR_LISTEN and E2E_KEPT but not DOWNPOUR_STORE in the environment:\n%s", env)
	}
}

func TestParseCell(t *testing.T) {
	c, err := parseCell("00ff\tt\t0000\t01")
	if err != nil || string(c.Row) != "\x00\xff" || c.Family != "t" || string(c.Qualifier) != "\x00\x00" ||
		string(c.Value) != "\x01" {
		t.Errorf("cell %+v, error %v", c, err)
	}
	for _, line := range []string{"", "00\tt\t00", "0\tt\t00\t00", "00\tt\t00\tzz"} {
		if _, err := parseCell(line); err == nil {
			t.Errorf("cell %q: no error", line)
		}
	}
}
