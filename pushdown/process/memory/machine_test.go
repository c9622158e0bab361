package memory

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

func TestMachine(t *testing.T) {
	f := func(want int64, from string, files map[string]string) {
		t.Helper()
		root := t.TempDir() + "/"
		for name, text := range files {
			if err := os.MkdirAll(filepath.Dir(root+name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(root+name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, why := machine(root); got != want || why != from {
			t.Errorf("got %d, %s, want %d, %s", got, why, want, from)
		}
	}
	const meminfo = "MemTotal:       24571280 kB\nMemFree:        23000000 kB\n"
	const total = 24571280 << 10
	f(unknownMachine, "4 GiB, because the memory of the machine is unknown", nil)
	f(total, "the machine's memory", map[string]string{"proc/meminfo": meminfo})
	f(total, "the machine's memory", map[string]string{"proc/meminfo": meminfo,
		"proc/self/cgroup": "0::/a.slice/b.service\n", "sys/fs/cgroup/a.slice/b.service/memory.max": "max\n"})
	f(1<<30, "the cgroup's memory", map[string]string{"proc/meminfo": meminfo,
		"proc/self/cgroup": "0::/a.slice/b.service\n", "sys/fs/cgroup/a.slice/b.service/memory.max": "2147483648\n",
		"sys/fs/cgroup/a.slice/memory.max": "1073741824\n"})
	f(1<<30, "the cgroup's memory", map[string]string{"proc/meminfo": meminfo,
		"proc/self/cgroup": "9:cpu,memory:/docker/4f\n1:name=systemd:/x\n",
		"sys/fs/cgroup/memory/docker/4f/memory.limit_in_bytes": "1073741824\n"})
	f(total, "the machine's memory", map[string]string{"proc/meminfo": meminfo, // no bound in cgroup version 1
		"proc/self/cgroup": "9:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"})
}

func TestBudget(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	if got, from := Budget(1 << 30); got != 1<<30 || from != "DOWNPOUR_MEMORY" {
		t.Errorf("got %d, %s, want 1 GiB, DOWNPOUR_MEMORY", got, from)
	}
	if got, _ := Budget(0); got < Least {
		t.Errorf("got %d, want a quarter of the machine", got)
	}
	debug.SetMemoryLimit(3 << 30)
	if got, from := Budget(1 << 30); got != 3<<30 || from != "GOMEMLIMIT" {
		t.Errorf("got %d, %s, want GOMEMLIMIT's", got, from)
	}
}
