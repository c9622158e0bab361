package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Lend copies programs of this machine into the system, with the libraries that they need and
// the system lacks, and other files, which are named by their paths. The system is of this
// machine's own release, so they fit.
func (d *Debian) Lend(ctx context.Context, names ...string) error {
	for _, name := range names {
		if strings.HasPrefix(name, "/") {
			if err := d.lendFile(name); err != nil {
				return fmt.Errorf("lend %s: %w", name, err)
			}
			continue
		}
		path, err := exec.LookPath(name)
		if err != nil {
			return fmt.Errorf("lend %s to the Debian system: %w", name, ErrNotSetUp)
		}
		files := []string{path}
		out, err := exec.CommandContext(ctx, "ldd", path).Output()
		if err != nil {
			return fmt.Errorf("lend %s: ldd: %w", name, err)
		}
		// A line is "libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x…)", or has no => for
		// the loader and what the kernel provides, which the system has.
		for line := range strings.Lines(string(out)) {
			if _, rest, ok := strings.Cut(line, " => "); ok && strings.HasPrefix(rest, "/") {
				files = append(files, strings.Fields(rest)[0])
			}
		}
		for _, file := range files {
			if err := d.lendFile(file); err != nil {
				return fmt.Errorf("lend %s: %w", name, err)
			}
		}
	}
	return nil
}

// lendFile copies a file to the same path, unless there is one.
func (d *Debian) lendFile(path string) error {
	to := filepath.Join(d.Root, path)
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}
