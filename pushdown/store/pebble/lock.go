package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
)

// lockName is the file that pebble locks.
const lockName = "LOCK"

// lockDir locks the directory. A lock that is held elsewhere is store.ErrLocked, a
// lock file that cannot be made another error.
func lockDir(files vfs.FS, dir string) (*pebble.Lock, error) {
	lock, err := lockFile(files, dir)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	return lock, nil
}

// lockFile is lockDir of any directory.
func lockFile(files vfs.FS, dir string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, files)
	if err == nil {
		return lock, nil
	}

	// The system call fails with one of two codes, without the path that errors of
	// file operations have. Pebble has only a text for a lock of this process.
	var path *fs.PathError
	held := !errors.As(err, &path) && (errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES))
	switch {
	case held && files == vfs.Default:
		return nil, fmt.Errorf("%w%s", store.ErrLocked, holder(files.PathJoin(dir, lockName)))
	case held || strings.Contains(err.Error(), "lock held by current process"):
		return nil, fmt.Errorf("%w (%w)", store.ErrLocked, err)
	}
	return nil, fmt.Errorf("cannot lock it: %w", err)
}

// holder returns which other process has a lock: ": 4711, gateway fsck". It returns "" if that cannot be found
// out. The lock must not be this process's own: closing the file would give it up.
func holder(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err = syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock)
	// A process of another container has no number here.
	if err != nil || lock.Type == syscall.F_UNLCK || lock.Pid <= 0 {
		return ""
	}
	return fmt.Sprintf(": %d%s", lock.Pid, commandOf(int(lock.Pid)))
}

// commandOf returns the program of a process and its sub-command: ", gateway fsck". What follows them stays where
// it is: it may hold a secret.
func commandOf(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	words := strings.Split(string(line), "\x00")
	if err != nil || words[0] == "" {
		return ""
	}
	text := ", " + filepath.Base(words[0])
	if len(words) > 1 && words[1] != "" && !strings.ContainsAny(words[1], "-/=:") {
		text += " " + words[1]
	}
	return text
}
