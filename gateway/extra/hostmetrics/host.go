package hostmetrics

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/net"

	"downpour/encoding"
)

// ReadHost samples this host. What the platform does not report is left out and
// named in the error.
func ReadHost(ctx context.Context) ([]Point, error) {
	var points []Point
	var failed []error
	for _, part := range []struct {
		name string
		read Reader
	}{
		{"load", readLoad}, {"cpu", readCPU}, {"memory", readMemory},
		{"file systems", readFiles}, {"network", readNet}, {"disks", readDisks},
	} {
		p, err := part.read(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("selfmetrics: %s: %w", part.name, err))
		}
		points = append(points, p...)
	}
	return points, errors.Join(failed...)
}

func integer[T int | uint64](metric string, v T, tags ...string) Point {
	return Point{Metric: metric, Value: encoding.IntValue(int64(v)), Tags: pairs(tags)}
}

func pairs(kv []string) map[string]string {
	m := make(map[string]string, len(kv)/2)
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return m
}

// readLoad gives the load averages as Linux computes them.
func readLoad(ctx context.Context) ([]Point, error) {
	l, err := load.AvgWithContext(ctx)
	if err != nil {
		return nil, err
	}
	of := func(span string, v float64) Point {
		return Point{Metric: loadPrefix + span, Value: encoding.FloatValue(v)}
	}
	return []Point{of("1min", l.Load1), of("5min", l.Load5), of("15min", l.Load15)}, nil
}

// readCPU gives counters in 1/100 s, the jiffies of Linux, wherever it runs.
func readCPU(ctx context.Context) ([]Point, error) {
	all, err := cpu.TimesWithContext(ctx, false)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	t := all[0]
	var points []Point
	for _, of := range []struct {
		kind    string
		seconds float64
	}{{"user", t.User}, {"nice", t.Nice}, {"system", t.System}, {"idle", t.Idle}, {"iowait", t.Iowait}, {"irq", t.Irq},
		{"softirq", t.Softirq}, {"steal", t.Steal}, {"guest", t.Guest}, {"guest_nice", t.GuestNice}} {
		points = append(points, integer(cpuMetric, int(math.Round(of.seconds*100)), "type", of.kind))
	}
	return points, nil
}

// readMemory gives bytes, by the names that tcollector has.
func readMemory(ctx context.Context) ([]Point, error) {
	m, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return nil, err
	}
	var points []Point
	for _, of := range []struct {
		name  string
		bytes uint64
	}{
		{"memtotal", m.Total}, {"memfree", m.Free}, {"memavailable", m.Available},
		{"buffers", m.Buffers}, {"cached", m.Cached}, {"active", m.Active}, {"inactive", m.Inactive},
		{"dirty", m.Dirty}, {"slab", m.Slab},
		{"swaptotal", m.SwapTotal}, {"swapfree", m.SwapFree}, {"swapcached", m.SwapCached},
	} {
		points = append(points, integer(memoryPrefix+of.name, of.bytes))
	}
	return points, nil
}

// readFiles takes each device once, under its shortest mount point: a container
// sees its host's disk under every file that is mounted in. The root is always
// there, also where no device backs it.
func readFiles(ctx context.Context) ([]Point, error) {
	parts, err := disk.PartitionsWithContext(ctx, false)
	parts = append(parts, disk.PartitionStat{Device: "root of the file system", Mountpoint: "/"})
	sort.SliceStable(parts, func(i, j int) bool { return len(parts[i].Mountpoint) < len(parts[j].Mountpoint) })
	seen := map[string]bool{}
	var points []Point
	for _, p := range parts {
		if seen[p.Device] || seen[p.Mountpoint] {
			continue
		}
		seen[p.Device], seen[p.Mountpoint] = true, true
		u, useErr := disk.UsageWithContext(ctx, p.Mountpoint)
		// One that cannot be asked leaves the others.
		if useErr != nil {
			err = errors.Join(err, useErr)
			continue
		}
		points = append(points, usage(p, u)...)
	}
	return points, err
}

// usage returns the bytes of a file system, nothing of one without any.
func usage(p disk.PartitionStat, u *disk.UsageStat) []Point {
	// It has no disk behind it.
	if u.Total == 0 {
		return nil
	}
	fstype := p.Fstype
	// The root that readFiles adds has none.
	if fstype == "" {
		fstype = u.Fstype
	}
	tags := []string{"mount", p.Mountpoint, "fstype", fstype}
	return []Point{
		integer(filesPrefix+"total", u.Total, tags...),
		integer(filesPrefix+"used", u.Used, tags...),
		integer(filesPrefix+"free", u.Free, tags...),
	}
}

// readNet leaves out the interfaces of single containers: they come and go under
// ever new names, and each name would be a UID for ever. An interface without traffic is left
// out until it has some.
func readNet(ctx context.Context) ([]Point, error) {
	all, err := net.IOCountersWithContext(ctx, true)
	var points []Point
	for _, i := range all {
		if strings.HasPrefix(i.Name, "veth") || i.BytesRecv == 0 && i.BytesSent == 0 {
			continue
		}
		points = append(points,
			integer(netMetric, i.BytesRecv, "iface", i.Name, "direction", "in"),
			integer(netMetric, i.BytesSent, "iface", i.Name, "direction", "out"))
	}
	return points, err
}

// readDisks gives the bytes that each whole device has read and written.
func readDisks(ctx context.Context) ([]Point, error) {
	all, err := disk.IOCountersWithContext(ctx)
	var points []Point
	for name, d := range all {
		_, known := all[wholeOf(name)]
		if known || virtual(name) || d.ReadBytes == 0 && d.WriteBytes == 0 {
			continue
		}
		points = append(points,
			integer(diskMetric, d.ReadBytes, "dev", name, "direction", "read"),
			integer(diskMetric, d.WriteBytes, "dev", name, "direction", "write"))
	}
	return points, err
}

// wholeOf returns the device that a name would be a partition of: sda of sda1, nvme0n1 of
// nvme0n1p2.
func wholeOf(name string) string {
	whole := strings.TrimRight(name, "0123456789")
	if whole == name {
		return ""
	}
	if p, ok := strings.CutSuffix(whole, "p"); ok && p != "" && p[len(p)-1] >= '0' && p[len(p)-1] <= '9' {
		return p
	}
	return whole
}

// virtual reports whether a device stands for bytes that are counted elsewhere, or are on no
// disk: a loop, a RAM disk, a volume over other devices.
func virtual(name string) bool {
	for _, prefix := range []string{"loop", "ram", "zram", "dm-", "md"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
