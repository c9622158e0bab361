package storm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"downpour/integration/hostile"
)

// Report is the account of a storm.
type Report struct {
	Seed     uint64
	Requests int
	Took     time.Duration
	Settled  time.Duration // until the gateway held no more than before
	// Answers are counted by kind and status; 0 is no answer, which most clients
	// do not wait for.
	Answers map[string]map[int]int
	// Compared answers were those of the oracle; of the Uncompared it had none.
	Compared, Uncompared int
	Points               int // acknowledged and found
	Starved              int // light requests without an answer because the machine was busy otherwise
	Alone, Beside        Served
	// Peaks are the most that each process watched was ever resident, in bytes.
	Peaks    []int64
	Breaches []string

	points map[seriesName][]hostile.Point
}

func newReport(seed uint64) Report {
	return Report{Seed: seed, Answers: map[string]map[int]int{}, points: map[seriesName][]hostile.Point{}}
}

// seriesName names the points of one series, put by many requests.
type seriesName struct{ metric, writer string }

func (r *run) add(f func(*Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.report)
}

// mostBreaches are kept; what comes after is the same again.
const mostBreaches = 200

func (r *run) breach(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.add(func(p *Report) {
		if len(p.Breaches) < mostBreaches {
			p.Breaches = append(p.Breaches, text)
		}
	})
	if r.Logf != nil {
		r.Logf("breach: %s", text)
	}
}

func (r *run) count(q *hostile.Request, o *outcome) {
	r.add(func(p *Report) {
		p.Requests++
		if p.Answers[q.Kind] == nil {
			p.Answers[q.Kind] = map[int]int{}
		}
		p.Answers[q.Kind][o.status]++
	})
}

func (r *run) acknowledged(points []hostile.Point) {
	if len(points) == 0 {
		return
	}
	r.add(func(p *Report) {
		s := seriesName{points[0].Metric, points[0].Writer}
		p.points[s] = append(p.points[s], points...)
	})
}

// Text is the report as people read it.
func (p *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d requests in %.1f s, as before after %.1f s more, %d breaches\n",
		p.Seed, p.Requests, p.Took.Seconds(), p.Settled.Seconds(), len(p.Breaches))
	for _, kind := range slices.Sorted(maps.Keys(p.Answers)) {
		fmt.Fprintf(&b, "  %-16s", kind)
		for _, status := range slices.Sorted(maps.Keys(p.Answers[kind])) {
			name := fmt.Sprint(status)
			if status == 0 {
				name = "none"
			}
			fmt.Fprintf(&b, " %s: %d", name, p.Answers[kind][status])
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "  answers compared %d, not comparable %d; points acknowledged and found %d\n",
		p.Compared, p.Uncompared, p.Points)
	fmt.Fprintf(&b, "  light query alone %s, beside %s\n", latencies(p.Alone.Query), latencies(p.Beside.Query))
	fmt.Fprintf(&b, "  put alone %s, beside %s; asked again because the machine was busy: %d\n",
		latencies(p.Alone.Put), latencies(p.Beside.Put), p.Starved)
	for _, peak := range p.Peaks {
		fmt.Fprintf(&b, "  peak %d MiB\n", peak>>20)
	}
	return b.String()
}

// latencies are the median, the 99th percentile and the most, in ms.
func latencies(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	d = slices.SortedFunc(slices.Values(d), cmp.Compare[time.Duration])
	ms := func(i int) float64 { return float64(d[i].Microseconds()) / 1000 }
	return fmt.Sprintf("p50 %.1f p99 %.1f max %.1f ms of %d", ms(len(d)/2), ms(len(d)*99/100), ms(len(d)-1), len(d))
}
