package scanplan

import (
	"fmt"
	"strings"
)

// String is the plan as explain prints it, one fact on each line.
func (p *Plan) String() string {
	var b strings.Builder

	fmt.Fprintf(&b, "scan %s metric %s rows [%d, %d) query [%d ms, %d ms]\n", p.Table, p.Metric, p.From, p.To, p.Start,
		p.End)
	if p.Rollup != nil {
		fmt.Fprintf(&b, "rollup %s\n", p.Rollup)
	}
	for _, r := range p.Ranges {
		fmt.Fprintf(&b, "range [%s, %s)\n", r.Start, r.Stop)
	}
	for _, t := range p.Tags {
		fmt.Fprintf(&b, "tag %s %s", t.TagK, t.Op)
		for _, v := range t.Values {
			fmt.Fprintf(&b, " %s", v)
		}
		b.WriteByte('\n')
	}
	p.writeRest(&b)

	return b.String()
}

// writeRest writes the fields after key ranges and tags.
func (p *Plan) writeRest(b *strings.Builder) {
	if p.Exact {
		b.WriteString("tags exact\n")
	}
	for _, t := range p.TSUIDs {
		fmt.Fprintf(b, "tsuid %s\n", t)
	}
	if p.Downsample != nil {
		fmt.Fprintf(b, "downsample %s\n", p.Downsample)
	}
	if r := p.Rate; r != nil {
		fmt.Fprintf(b, "rate counter=%t max=%d reset=%d drop=%t\n", r.Counter, r.CounterMax, r.ResetValue, r.DropResets)
	}
	if p.Window != nil {
		fmt.Fprintf(b, "window %s\n", p.Window)
	}
	if h := p.Histograms; h != nil {
		fmt.Fprintf(b, "histograms codec=%d percentiles=%v buckets=%t\n", h.Codec, h.Percentiles, h.Buckets)
	}
	if p.Fix != 0 {
		fmt.Fprintf(b, "fix %s\n", p.Fix)
	}

	fmt.Fprintf(b, "aggregate %s", p.Aggregator)
	for _, k := range p.GroupBy {
		fmt.Fprintf(b, " by %s", k)
	}
	b.WriteByte('\n')
}

// String is the downsampling as a client writes it, followed by the zone if the
// buckets are on the calendar.
func (d *Downsample) String() string {
	interval := fmt.Sprintf("%d%s", d.Count, d.Unit)
	switch {
	case d.All:
		interval = "0all"
	// A fixed interval need not be written as a number and a unit.
	case d.Unit == "":
		interval = fmt.Sprintf("%dms", d.Interval)
	}

	if !d.Calendar {
		return fmt.Sprintf("%s-%s-%s", interval, d.Function, d.Fill)
	}
	return fmt.Sprintf("%sc-%s-%s %s", interval, d.Function, d.Fill, d.Zone)
}
