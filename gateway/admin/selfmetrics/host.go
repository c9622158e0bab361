package selfmetrics

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

// ReadHost samples this host. What the platform does not tell is left out and
// named in the error.
func ReadHost(ctx context.Context) ([]Point, error) {
	var points []Point
	var failed []error
	for _, part := range []struct {
		name string
		read Reader
	}{{"load", readLoad}, {"cpu", readCPU}, {"memory", readMemory}, {"file systems", readDisks}, {"network", readNet}} {
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
		return Point{Metric: "proc.loadavg." + span, Value: encoding.FloatValue(v)}
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
		points = append(points, integer("proc.stat.cpu", int(math.Round(of.seconds*100)), "type", of.kind))
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
	}{{"memtotal", m.Total}, {"memfree", m.Free}, {"memavailable", m.Available}, {"buffers", m.Buffers}, {"cached", m.Cached},
		{"active", m.Active}, {"inactive", m.Inactive}, {"dirty", m.Dirty}, {"slab", m.Slab},
		{"swaptotal", m.SwapTotal}, {"swapfree", m.SwapFree}, {"swapcached", m.SwapCached}} {
		points = append(points, integer("proc.meminfo."+of.name, of.bytes))
	}
	return points, nil
}

// readDisks takes each device once, under its shortest mount point: a container
// sees its host's disk under every file that is mounted in. The root is always
// there, also where no device backs it.
func readDisks(ctx context.Context) ([]Point, error) {
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
	// The root that readDisks adds has none.
	if fstype == "" {
		fstype = u.Fstype
	}
	tags := []string{"mount", p.Mountpoint, "fstype", fstype}
	return []Point{
		integer("df.bytes.total", u.Total, tags...),
		integer("df.bytes.used", u.Used, tags...),
		integer("df.bytes.free", u.Free, tags...),
	}
}

// readNet leaves out the interfaces of single containers: they come and go under
// ever new names, and each name would be a UID for ever.
func readNet(ctx context.Context) ([]Point, error) {
	all, err := net.IOCountersWithContext(ctx, true)
	var points []Point
	for _, i := range all {
		if strings.HasPrefix(i.Name, "veth") {
			continue
		}
		points = append(points,
			integer("proc.net.bytes", i.BytesRecv, "iface", i.Name, "direction", "in"),
			integer("proc.net.bytes", i.BytesSent, "iface", i.Name, "direction", "out"))
	}
	return points, err
}
