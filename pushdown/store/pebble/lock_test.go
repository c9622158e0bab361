package pebble

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/pushdown/store"
)

var lockedDir = flag.String("locked-dir", "", "of the process that TestLocked_byProcess starts: where its store is")

// The process of TestLocked_byProcess: it has a store open until its input ends.
func TestLocked_process(t *testing.T) {
	if *lockedDir == "" {
		return // only that process has something to do
	}
	s, err := Open(*lockedDir, Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("open")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A store that another process has open says which.
func TestLocked_byProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLocked_process$", "-locked-dir="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "open\n" {
		t.Errorf("the process says %q, %v", line, err)
	}

	_, err = Open(dir, Options{Logger: quiet()})
	want := fmt.Sprintf("data directory %s: %v: %d, %s",
		dir, store.ErrLocked, cmd.Process.Pid, filepath.Base(os.Args[0]))
	if !errors.Is(err, store.ErrLocked) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}

	closed := in.Close()
	_, read := io.Copy(io.Discard, lines)
	if err := errors.Join(closed, read, cmd.Wait()); err != nil {
		t.Error(err)
	}
	if got := holder(filepath.Join(dir, lockName)); got != "" {
		t.Errorf("got %q, want nobody", got)
	}
	if got := holder(filepath.Join(dir, "missing")); got != "" {
		t.Errorf("without a file: got %q, want nobody", got)
	}
}

// A process is called by its program and sub-command, without what may be a secret.
func TestCommandOf(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "tee")
		cmd.Args, cmd.Dir = args, t.TempDir() // where it makes files of the names that it gets
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, wrote := io.WriteString(in, "x")
		if _, err := io.ReadFull(out, make([]byte, 1)); err != nil || wrote != nil { // it runs once it answers
			t.Errorf("%q: %v, %v", args, wrote, err)
		}
		if got := commandOf(cmd.Process.Pid); got != want {
			t.Errorf("%q: got %q, want %q", args, got, want)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // tee does not like some of its arguments
	}
	f(", gateway fsck", "/opt/gateway", "fsck")
	f(", gateway fsck", "gateway", "fsck", "secret")
	f(", gateway", "gateway")
	f(", gateway", "gateway", "")
	for _, word := range []string{"--append", "key=secret", "user:secret", os.DevNull} {
		f(", gateway", "gateway", word)
	}
	f("", "", "fsck")
	if got := commandOf(-1); got != "" {
		t.Errorf("of no process: got %q, want nothing", got)
	}
}

// A lock that is held is not taken for a file that cannot be locked, and the other way round.
func TestLocked_errors(t *testing.T) {
	for _, c := range []struct {
		err    error
		locked bool
	}{
		{syscall.EAGAIN, true},
		{syscall.EACCES, true},
		{syscall.EIO, false},
		{&fs.PathError{Op: "open", Path: "data/LOCK", Err: syscall.EACCES}, false},
		{&fs.PathError{Op: "open", Path: "data/LOCK", Err: syscall.EAGAIN}, false},
	} {
		files := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpLock {
				return c.err
			}
			return nil
		}))
		_, err := Open("data", Options{FS: files, Logger: quiet()})
		if !errors.Is(err, c.err) || errors.Is(err, store.ErrLocked) != c.locked ||
			strings.Contains(err.Error(), "cannot lock it: ") == c.locked {
			t.Errorf("%v: got %v, want it locked: %t", c.err, err, c.locked)
		}
	}
}
