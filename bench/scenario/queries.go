package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"downpour/bench/report"
	"downpour/bench/workload"
)

// expression is an expression of the sum and the maximum of all series by region.
const expression = `{"time":{"start":%%d,"end":%%d,"aggregator":"sum",` +
	`"downsampler":{"interval":"5m","aggregator":"avg"}},
 "filters":[{"id":"f","tags":[{"type":"wildcard","tagk":"region","filter":"*","groupBy":true}]}],
 "metrics":[{"id":"a","metric":%[1]q,"filter":"f"},{"id":"b","metric":%[1]q,"filter":"f","aggregator":"max"}],
 "expressions":[{"id":"e","expr":"100 * a / (b * 112)","join":{"operator":"intersection"}}]}`

// twoMetrics asks for the expression.
func twoMetrics(t *set) workload.Query {
	q := t.whole("")
	q.M, q.Expression = "exp of two metrics", fmt.Sprintf(expression, t.data.Metric())
	return q
}

// allPoints is the number of points of the data set.
func allPoints(t *set) int { return t.data.Points() }

// twice is the number of points of a question that reads all of them twice.
func twice(t *set) int { return 2 * t.data.Points() }

// fourLines is a query whose answer is drawn as a picture.
const fourLines = "sum:5m-avg:%s{region=region-0|region-1|region-2|region-3}"

// picture asks for the picture.
func picture(t *set) workload.Query {
	q := t.whole(fourLines)
	path := fmt.Sprintf("/q?start=%d&end=%d&m=%s&png&wxh=1024x768", q.Start, q.End, url.QueryEscape(q.M))
	return workload.Query{Path: path}
}

// someHost asks for one host.
func someHost(t *set) workload.Query { return t.data.OneHost(17 % t.data.Hosts) }

// wholeSum asks for the sum over all of the data set, the same in each round.
func wholeSum(s *stage, _ int) []workload.Query { return []workload.Query{s.set.whole(sum)} }

// noteDurable says what the ends of puts are worth.
func noteDurable(_ context.Context, s *stage) error {
	s.cfg.Report.Note(
		"put into VictoriaMetrics ends with the close of the connection, which says that the points are read; " +
			"it promises nothing about a disk. Downpour's close says that they are durable.",
	)
	return nil
}

// The data sets of puts.

// wholeData is the data set at the scale.
func wholeData(s *stage) workload.Data { return s.cfg.dataAt(s.group.scale) }

// firstHour is its first hour, and hourBefore some points of the same series before that.
func firstHour(s *stage) workload.Data {
	d := s.cfg.dataAt(s.group.scale)
	d.Hours = 1
	return d
}

func hourBefore(s *stage) workload.Data {
	d := s.cfg.dataAt(s.group.scale)
	d.Start, d.Hours, d.Step = d.Start-hour, 1, max(d.Step, 60)
	return d
}

// Of each pod there are two points in each of three rows.
const (
	podHours   = 3
	podPerHour = 2
)

// podMemory is the DOWNPOUR_MEMORY of the gateway: about what VictoriaMetrics takes for the
// same queries.
const podMemory = "1GiB"

// podsOf are so many pods.
func (c *Config) podsOf(count int) workload.Pods {
	return workload.Pods{Count: count, Start: c.Data.Start, Hours: podHours, PerHour: podPerHour, Seed: c.Data.Seed}
}

func pods(s *stage) workload.Data      { return s.cfg.podsOf(s.cfg.Pods) }
func hbasePods(s *stage) workload.Data { return s.cfg.podsOf(s.cfg.HBasePods) }

// otherNames make a JVM compile its code; no name of theirs is one of the pods'.
func otherNames(*stage) workload.Data {
	d := workload.Default()
	d.Hosts, d.Hours, d.Step = 100, 1, 60
	return d
}

// wholeOf asks for all of a data set.
func wholeOf(data func(*stage) workload.Data, m string) func(*stage) workload.Query {
	return func(s *stage) workload.Query { return data(s).(interface{ Whole(string) workload.Query }).Whole(m) }
}

// compared are the sides whose memory the row sparse compares.
var compared = []string{victoria, frugal}

// forgetPeaks lets the peaks of memory count from now on: the puts have had one of their own.
func forgetPeaks(ctx context.Context, s *stage) error {
	servers, err := s.sides(ctx, compared)
	for _, server := range servers {
		err = errors.Join(err, server.Process.ResetPeak())
	}
	return err
}

// comparePeaks compares the peaks of memory.
func comparePeaks(ctx context.Context, s *stage) error {
	servers, err := s.sides(ctx, compared)
	if err != nil {
		return err
	}
	var peaks [2]float64
	for i, server := range servers {
		m, err := server.Process.Memory()
		if err != nil {
			return err
		}
		peaks[i] = float64(m.Peak)
	}
	what := "memory meanwhile, with DOWNPOUR_MEMORY=" + podMemory
	s.cfg.add(s.amounts("sparse", what, "VictoriaMetrics", 1, peaks[1], peaks[0], inMiB))
	return nil
}

// inMiB writes an amount of memory.
func inMiB(bytes float64) string { return fmt.Sprintf("%.0f MiB", bytes/(1<<20)) }

// rowsOfPods is how many rows the pods have.
func (t *set) rowsOfPods() string {
	if t.pods == nil {
		return ""
	}
	return report.Thousands(float64(t.pods.Series() * podHours))
}
