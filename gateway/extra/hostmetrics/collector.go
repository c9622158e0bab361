// Package hostmetrics collects this host's own metrics, under the names that
// tcollector gives them, so that a fresh installation has something to look at.
//
//	proc.stat.cpu          type=user|nice|system|…   counter, 1/100 s over all CPUs
//	proc.loadavg.1min      also 5min, 15min
//	proc.meminfo.memfree   also memtotal, memavailable, buffers, cached, …  bytes
//	df.bytes.total         also used, free           mount=, fstype=        bytes
//	proc.net.bytes         iface=, direction=in|out  counter
//	proc.disk.bytes        dev=, direction=read|write  counter; tcollector counts sectors
//
// Every point has the tag host. What the gateway counts of itself comes to them under the
// names of /metrics, with dots: downpour.put.points.total.
package hostmetrics

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"downpour/encoding"
)

// Point is one measurement.
type Point struct {
	Metric string
	Time   int64 // seconds since 1970
	Value  encoding.Value
	Tags   map[string]string
}

// Collector takes samples and puts them. Put must not keep the slice.
type Collector struct {
	Interval time.Duration // between samples; must be positive
	// First is the time between samples at the start, 0 for Interval. It doubles until it is
	// Interval, see wait.
	First time.Duration
	Host  string // of tag host
	Put   func(ctx context.Context, points []Point) error

	Now  func() time.Time // time.Now
	Read Reader           // Host metrics through gopsutil
	Log  *slog.Logger     // slog.Default
}

// Reader takes one sample: what could be read, and an error that names what
// could not. It sets neither time nor the tag host.
type Reader func(ctx context.Context) ([]Point, error)

// Run takes a sample in the next second and then every Interval, or more often at the start, until
// ctx ends. What goes wrong is logged when it begins and when it is over, not each time.
func (c *Collector) Run(ctx context.Context) {
	c.setDefaults()
	reading := trouble{log: c.Log, what: "reading this host's metrics"}
	putting := trouble{log: c.Log, what: "storing this host's metrics"}
	// This second may have a sample of a gateway that has just ended; two would be duplicates.
	next := time.Now().Truncate(time.Second).Add(time.Second)
	for n := 0; until(ctx, next); n++ {
		points, err := c.Read(ctx)
		c.complete(points)
		// What fails because the gateway ends is no trouble.
		if ctx.Err() == nil {
			reading.note(err)
		}
		err = c.Put(ctx, points)
		if ctx.Err() == nil {
			putting.note(err)
		}

		// A sample that took longer than that is not made up for.
		if next = next.Add(c.wait(n)); next.Before(time.Now()) {
			next = time.Now().Add(c.wait(n))
		}
	}
}

// until waits for a moment, and reports whether ctx has not ended.
func until(ctx context.Context, moment time.Time) bool {
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(moment)):
	}
	return ctx.Err() == nil
}

// firstSamples is how many samples come at the interval First.
const firstSamples = 30

// wait returns the time from sample n, from 0, to the next: First for 30 samples, twice as long
// for twice as many, and so on up to Interval. Charts break a line where points are 2.5 times as
// far apart as they usually are, so the interval grows slowly.
func (c *Collector) wait(n int) time.Duration {
	count := firstSamples
	for step := c.First; step > 0 && step < c.Interval; step *= 2 {
		if n < count {
			return step
		}
		n -= count
		count *= 2
	}
	return c.Interval
}

func (c *Collector) setDefaults() {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Read == nil {
		c.Read = ReadHost
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// complete stamps the points and brings all names into OpenTSDB's character set.
func (c *Collector) complete(points []Point) {
	now := c.Now().Unix()
	for i := range points {
		p := &points[i]
		p.Time = now
		p.Metric = Sanitize(p.Metric)
		tags := make(map[string]string, len(p.Tags)+1)
		for k, v := range p.Tags {
			tags[Sanitize(k)] = Sanitize(v)
		}
		tags["host"] = Sanitize(c.Host) // last, so that no sample sets another
		p.Tags = tags
	}
}

// trouble logs an error when it is new or different, and that it has passed.
type trouble struct {
	log  *slog.Logger
	what string
	last string
}

// note logs an error when it is another than the last one, and that all is well again
// when it has gone.
func (t *trouble) note(err error) {
	text := ""
	if err != nil {
		text = fmt.Sprint(err)
	}
	if text == t.last {
		return
	}
	t.last = text
	if err != nil {
		t.log.Warn(t.what+" failed; it goes on", "error", text)
	} else {
		t.log.Info(t.what + " works again")
	}
}
