package live

import (
	"fmt"
	"syscall"
)

// allowFiles makes room for so many open files, in this process and in those
// that it starts from now on. Only root may raise the hard limit.
func allowFiles(n int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	want := uint64(n)
	if limit.Cur >= want {
		return nil
	}

	raised := syscall.Rlimit{Cur: want, Max: max(limit.Max, want)}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err != nil {
		return fmt.Errorf("%d sockets need %d open files, of which %d are allowed (ulimit -Hn): %w",
			n, n, limit.Max, err)
	}
	return nil
}
