package memory

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Budget returns the bytes that a process may hold, and in words the origin of the number:
// GOMEMLIMIT if that is set, else the setting, else a quarter of the memory of the machine or its
// cgroup. setting is 0 if there is none.
func Budget(setting int64) (bytes int64, from string) {
	// A negative limit changes nothing: this only reads the current one.
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return max(limit, Least), "GOMEMLIMIT"
	}
	if setting > 0 {
		return setting, "DOWNPOUR_MEMORY"
	}
	bytes, from = machine("/")
	return max(bytes/4, Least), "a quarter of " + from
}

// unknownMachine is what a machine is assumed to have if that is unknown.
const unknownMachine = 4 << 30

// machine returns the memory of the machine, or the bound of the tightest cgroup that
// the process is in. root is where proc and sys are mounted, with a slash at its end.
func machine(root string) (bytes int64, from string) {
	bytes, from = memTotal(root)

	for _, dir := range cgroups(root) {
		for _, name := range []string{"memory.max", "memory.limit_in_bytes"} { // version 2, version 1
			text, err := os.ReadFile(path.Join(dir, name))
			if err != nil {
				continue // the file is that of the other version, or the folder is not mounted
			}
			// "max" is no number, and no bound.
			n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && n > 0 && n < bytes {
				bytes, from = n, "the cgroup's memory"
			}
		}
	}
	return bytes, from
}

// memTotal returns the machine's memory. It is in the first line of /proc/meminfo:
// "MemTotal:       24571280 kB".
func memTotal(root string) (bytes int64, from string) {
	text, _ := os.ReadFile(root + "proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil && n > 0 {
				return n << 10, "the machine's memory"
			}
		}
	}
	return unknownMachine, "4 GiB, because the memory of the machine is unknown"
}

// cgroups returns the folders of the cgroups whose bounds hold for the process: its own
// and those above it. A line of /proc/self/cgroup is "0::/system.slice/downpour.service"
// in version 2 and "9:memory:/docker/4f…" in version 1.
func cgroups(root string) (dirs []string) {
	text, _ := os.ReadFile(root + "proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}

		base := root + "sys/fs/cgroup"
		switch {
		case strings.Contains(","+f[1]+",", ",memory,"):
			base += "/memory" // version 1 has a folder for each controller
		case f[1] != "":
			continue // another controller of version 1
		}
		for dir := path.Clean("/" + f[2]); ; dir = path.Dir(dir) {
			dirs = append(dirs, base+dir)
			if dir == "/" {
				break
			}
		}
	}
	return dirs
}
