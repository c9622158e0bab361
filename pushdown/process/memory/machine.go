package memory

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Budget is the bytes that a process may hold, and where the figure comes from:
// GOMEMLIMIT if it is set, else what the operator asks for, else a quarter of what
// the machine or its cgroup has. asked is 0 where nobody asks.
func Budget(asked int64) (bytes int64, from string) {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return max(limit, Least), "GOMEMLIMIT"
	}
	if asked > 0 {
		return asked, "DOWNPOUR_MEMORY"
	}
	bytes, from = machine("/")
	return max(bytes/4, Least), "a quarter of " + from
}

// usual is what a machine is taken to have that does not tell.
const usual = 4 << 30

// machine is the memory of the machine, or the bound of the tightest cgroup that
// the process is in. root is where proc and sys are mounted, with a slash.
func machine(root string) (bytes int64, from string) {
	bytes, from = memTotal(root)
	for _, dir := range cgroups(root) {
		for _, name := range []string{"memory.max", "memory.limit_in_bytes"} { // version 2, version 1
			text, err := os.ReadFile(path.Join(dir, name))
			if err != nil {
				continue
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

// memTotal is the first line of /proc/meminfo: "MemTotal:       24571280 kB".
func memTotal(root string) (bytes int64, from string) {
	text, _ := os.ReadFile(root + "proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil && n > 0 {
				return n << 10, "the machine's memory"
			}
		}
	}
	return usual, "4 GiB, because the machine does not tell its memory"
}

// cgroups are the folders whose bounds hold for the process: its own group's and
// those above it. A line of /proc/self/cgroup is "0::/system.slice/downpour.service"
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
			base += "/memory"
		case f[1] != "":
			continue
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
