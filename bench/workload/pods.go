package workload

import (
	"fmt"
	"iter"
	"math/rand/v2"
)

// Pods is a data set of very many series with few points in a row, as a cluster makes them
// in which containers come and go: each pod is one series, with the tags host, pod and zone
// (of 7), and reports PerHour times an hour.
type Pods struct {
	Count   int
	Start   int64 // seconds, a multiple of 3600
	Hours   int
	PerHour int // a divisor of 3600
	Seed    uint64
}

// podsPerHost is how many pods a host has.
const podsPerHost = 100

// Zones of the hosts.
const Zones = 7

// podMetric is what pods report: an integer.
var podMetric = Metric{Name: "pod.cpu", Max: 1000}

// Series is the number of series.
func (p Pods) Series() int { return p.Count }

// Points is the number of points of the data set.
func (p Pods) Points() int { return p.Count * p.Hours * p.PerHour }

// String describes the data set in one line.
func (p Pods) String() string {
	return fmt.Sprintf("%d points: %d pods, %d an hour for %d h, seed %d",
		p.Points(), p.Count, p.PerHour, p.Hours, p.Seed)
}

// hosts is how many hosts there are. Pods of one host have numbers that are far from each
// other, as names of pods are.
func (p Pods) hosts() int { return max(p.Count/podsPerHost, 1) }

// Tags returns the tags of pod i.
func (p Pods) Tags(i int) []Tag {
	host := i % p.hosts()
	return []Tag{
		{"host", HostName(host)},
		{"pod", fmt.Sprintf("pod-%07d", i)},
		{"zone", fmt.Sprintf("zone-%d", host%Zones)},
	}
}

// Text implements Data.
func (p Pods) Text(format Format, size int, mine func(series int) bool) iter.Seq[Chunk] {
	return spell(format, size, p.ticks(), p.Count, mine, func(i int) (Metric, []Tag) { return podMetric, p.Tags(i) })
}

// ticks yields the points in time order.
func (p Pods) ticks() iter.Seq[Tick] {
	return func(yield func(Tick) bool) {
		rnd := rand.New(rand.NewPCG(p.Seed, 3))
		values := make([]int64, p.Count)
		for n := range p.Hours * p.PerHour {
			for i := range values {
				values[i] = rnd.Int64N(podMetric.Max + 1)
			}
			if !yield(Tick{p.Start + int64(n*3600/p.PerHour), values}) {
				return
			}
		}
	}
}

// Whole is a query over all of the data set. text is an m parameter with %s for the metric.
func (p Pods) Whole(text string) Query {
	return Query{Start: p.Start, End: p.Start + int64(p.Hours)*3600 - 1, M: fmt.Sprintf(text, podMetric.Name)}
}

// OnePod asks for the whole time of pod i, by its name alone.
func (p Pods) OnePod(i int) Query {
	return p.Whole("sum:5m-avg:%s{pod=" + p.Tags(i)[1].V + "}")
}
