// Package workload makes data sets and queries for benchmarks: seeded, so that
// a run can be repeated, and shaped like what machines report about themselves
// (the devops set of TSBS).
package workload

import (
	"fmt"
	"iter"
	"math/rand/v2"
)

// Kind is how the values of a metric go on from each other.
type Kind uint8

const (
	Gauge   Kind = iota // drifts between 0 and Max
	Counter             // only grows, by at most Max a step
)

// Metric is one thing that every host reports.
type Metric struct {
	Name string
	Kind Kind
	Max  int64
	// Decimals of the values: 0 makes integers, 2 floats such as 12.34.
	Decimals int
}

// Metrics are what hosts report, the most important first; a data set takes as
// many as it wants.
var Metrics = []Metric{
	{Name: "cpu.user", Max: 100},
	{Name: "net.bytes_received", Kind: Counter, Max: 1 << 20},
	{Name: "load.1m", Max: 6400, Decimals: 2},
	{Name: "mem.used_percent", Max: 10000, Decimals: 2},
	{Name: "cpu.system", Max: 100},
	{Name: "disk.reads", Kind: Counter, Max: 500},
	{Name: "disk.writes", Kind: Counter, Max: 900},
	{Name: "net.bytes_sent", Kind: Counter, Max: 1 << 20},
	{Name: "http.requests", Kind: Counter, Max: 300},
	{Name: "http.latency_ms", Max: 250000, Decimals: 2},
	{Name: "mem.used", Max: 64 << 30},
	{Name: "disk.used_percent", Max: 10000, Decimals: 2},
	{Name: "cpu.iowait", Max: 100},
	{Name: "processes", Max: 900},
	{Name: "context_switches", Kind: Counter, Max: 100000},
	{Name: "interrupts", Kind: Counter, Max: 50000},
}

// tagKeys of a host, in the order in which data sets take them; the last ones
// are as TSBS names them. The number of values of each stands behind it.
var tagKeys = []struct {
	key    string
	values int
}{
	{"host", 0}, {"region", Regions}, {"dc", DCs}, {"rack", 100}, {"os", 3}, {"arch", 2}, {"team", 4}, {"service", 20},
}

// Regions and data centres of a data set.
const (
	Regions = 9
	DCs     = 27
)

// Devops is a data set: Hosts hosts report MetricCount metrics every Step
// seconds. Every host has the tags host, region (of 9) and dc (of 27), and as
// many further ones as Tags says.
type Devops struct {
	FirstMetric int // of Metrics
	MetricCount int // from that one on, at least one; a host and metric are one series
	Hosts       int
	Tags        int   // 1 to 8
	Start       int64 // seconds, a multiple of 3600
	Hours       int
	Step        int // seconds, a divisor of 3600
	Seed        uint64
}

// Default is the data set of the README's figures: 2.16 M points of one metric,
// integers from 0 to 100, 1,000 series with 3 tags.
func Default() Devops {
	return Devops{
		MetricCount: 1,
		Hosts:       1000,
		Tags:        3,
		Start:       1700000000 - 1700000000%3600,
		Hours:       6,
		Step:        10,
		Seed:        1,
	}
}

// Validate names the first field that is wrong.
func (d Devops) Validate() error {
	for _, f := range []struct {
		name           string
		got, low, high int
	}{
		{"first metric", d.FirstMetric, 0, len(Metrics) - 1},
		{"metrics", d.MetricCount, 1, len(Metrics) - d.FirstMetric}, {"hosts", d.Hosts, 1, 10_000_000},
		{"tags", d.Tags, 1, len(tagKeys)},
		{"hours", d.Hours, 1, 1_000_000}, {"step", d.Step, 1, 3600},
	} {
		if f.got < f.low || f.got > f.high {
			return fmt.Errorf("%s: got %d, want %d to %d", f.name, f.got, f.low, f.high)
		}
	}

	if 3600%d.Step != 0 {
		return fmt.Errorf("step: got %d, want a divisor of 3600", d.Step)
	}
	if d.Start%3600 != 0 || d.Start <= 0 {
		return fmt.Errorf("start: got %d, want a full hour", d.Start)
	}
	return nil
}

// Series is the number of series.
func (d Devops) Series() int { return d.MetricCount * d.Hosts }

// Points is the number of points of the data set.
func (d Devops) Points() int { return d.Series() * d.Hours * d.PerHour() }

// PerHour is the number of points of one series and hour.
func (d Devops) PerHour() int { return 3600 / d.Step }

// End is the first second behind the data.
func (d Devops) End() int64 { return d.Start + int64(d.Hours)*3600 }

// MetricOf returns the metric of series i.
func (d Devops) MetricOf(i int) *Metric { return &Metrics[d.FirstMetric+i%d.MetricCount] }

// Metric is the first metric, the one that queries ask for.
func (d Devops) Metric() string { return d.MetricOf(0).Name }

// String describes the data set in one line.
func (d Devops) String() string {
	return fmt.Sprintf("%d points: %d metrics x %d hosts, one every %d s for %d h, %d tags, seed %d",
		d.Points(), d.MetricCount, d.Hosts, d.Step, d.Hours, d.Tags, d.Seed)
}

// Tag is one tag of a series.
type Tag struct{ K, V string }

// Host returns the tags of host i; host 17 is in dc-17 of region-8.
func (d Devops) Host(i int) []Tag {
	tags := make([]Tag, d.Tags)
	for t := range tags {
		k := tagKeys[t]
		switch k.key {
		case "host":
			tags[t] = Tag{k.key, HostName(i)}
		// Each data centre lies in one region.
		case "region":
			tags[t] = Tag{k.key, fmt.Sprintf("region-%d", i%DCs%Regions)}
		case "dc":
			tags[t] = Tag{k.key, fmt.Sprintf("dc-%02d", i%DCs)}
		default:
			tags[t] = Tag{k.key, fmt.Sprintf("%s-%d", k.key, (i*7+i/k.values)%k.values)}
		}
	}
	return tags
}

// HostName is the value of tag host of host i.
func HostName(i int) string { return fmt.Sprintf("host-%06d", i) }

// series is the state of one series: its values do not depend on the order in
// which series are asked.
type series struct {
	metric *Metric
	rnd    rand.PCG
	last   int64
}

// series returns all series before their first value, those of a host side by side.
func (d Devops) series() []series {
	all := make([]series, 0, d.Series())
	for h := range d.Hosts {
		for m := range d.MetricCount {
			s := series{metric: d.MetricOf(m)}
			s.rnd.Seed(d.Seed, uint64(h)<<8|uint64(m))
			s.last = int64(s.rnd.Uint64() % uint64(s.metric.Max+1))
			all = append(all, s)
		}
	}
	return all
}

// next is the series' next value.
func (s *series) next() int64 {
	r := int64(s.rnd.Uint64() >> 1)
	if s.metric.Kind == Counter {
		s.last += r % (s.metric.Max + 1)
		return s.last
	}
	drift := max(s.metric.Max/20, 1)
	s.last = min(max(s.last+r%(2*drift+1)-drift, 0), s.metric.Max)
	return s.last
}

// Hour is the values of one series in one hour, in time order from base on.
type Hour struct {
	Series int // host*MetricCount + metric
	Host   int
	Metric *Metric
	Base   int64
	Values []int64 // to be divided by 10^Metric.Decimals; valid until the next one
}

// Hourly yields the data set hour by hour, in each hour series by series: the
// order of rows.
func (d Devops) Hourly() iter.Seq[Hour] {
	return func(yield func(Hour) bool) {
		all := d.series()
		values := make([]int64, d.PerHour())
		for h := range d.Hours {
			for i := range all {
				for v := range values {
					values[v] = all[i].next()
				}
				if !yield(Hour{i, i / d.MetricCount, all[i].metric, d.Start + int64(h)*3600, values}) {
					return
				}
			}
		}
	}
}

// Tick is the values of all series at one time, in order of series.
type Tick struct {
	Time   int64
	Values []int64 // valid until the next one
}

// Ticks yields the same points in time order: as collectors send them.
func (d Devops) Ticks() iter.Seq[Tick] {
	return func(yield func(Tick) bool) {
		all := d.series()
		values := make([]int64, len(all))
		for t := d.Start; t < d.End(); t += int64(d.Step) {
			for i := range all {
				values[i] = all[i].next()
			}
			if !yield(Tick{t, values}) {
				return
			}
		}
	}
}
