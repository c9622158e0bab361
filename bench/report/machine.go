package report

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine is where a run took place.
type Machine struct {
	OS     string `json:"os"` // with the architecture
	Kernel string `json:"kernel"`
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	MiB    int64  `json:"mib"` // of memory
	Go     string `json:"go"`
}

// String describes the machine in one line.
func (m Machine) String() string {
	return fmt.Sprintf("%d cores (%s), %d MiB of memory, %s, kernel %s, %s",
		m.Cores, m.CPU, m.MiB, m.OS, m.Kernel, m.Go)
}

// thisMachine describes the machine by what Linux reports in /proc. What cannot be read is
// "unknown", or 0.
func thisMachine() Machine {
	m := Machine{
		OS:     runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: "unknown",
		CPU:    "unknown",
		Cores:  runtime.NumCPU(),
		Go:     runtime.Version(),
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	if name, ok := field("/proc/cpuinfo", "model name"); ok {
		m.CPU = name
	}

	if memory, ok := field("/proc/meminfo", "MemTotal"); ok {
		var kib int64
		fmt.Sscan(memory, &kib)
		m.MiB = kib >> 10
	}
	return m
}

// field finds the line "name : value" of a file in /proc.
func field(path, name string) (value string, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// PeakMemory is the largest resident memory of this process so far, in bytes,
// where the system reports it.
func PeakMemory() int64 {
	peak, _ := field("/proc/self/status", "VmHWM")
	var kib int64
	fmt.Sscan(peak, &kib)
	return kib << 10
}

// commit is the revision that is measured, with a + when the tree has changes:
// as the binary says, or, because go run leaves that out, as git says.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		revision, modified := "", ""
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value[:min(len(s.Value), 12)]
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = "+"
			}
		}
		if revision != "" {
			return revision + modified
		}
	}

	revision, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changes, _ := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output()
	return strings.TrimSpace(string(revision)) + map[bool]string{true: "+"}[len(changes) > 0]
}
