package bench

import (
	"context"

	"downpour/bench/workload"
)

// loaded is a data set in so many salt buckets, each of which is a part, and the queries over it.
type loaded struct {
	data    workload.Devops
	buckets int
	asked   []asked
}

// asked is a query, and its place on an axis.
type asked struct {
	axis   string
	x      float64
	query  workload.Query
	points int64 // that it reads
}

// at is the query m over all of a data set, at a place of an axis.
func at(axis string, x int, d workload.Devops, m string) asked {
	return asked{axis, float64(x), d.Whole(m), int64(d.Points() / d.MetricCount)}
}

// axes returns what is measured on each axis, from its low end to its high one.
func (c ScaleConfig) axes() [][]loaded {
	const sum, byRegion = "sum:5m-avg:%s", "sum:5m-avg:%s{region=*}"

	// One data set of many hours, with queries over more and more of them.
	points := loaded{data: c.Data, buckets: 1}
	points.data.Hours <<= c.Steps
	for hours := c.Data.Hours >> c.Steps; hours <= points.data.Hours; hours *= 2 {
		d := points.data
		d.Hours = hours
		points.asked = append(points.asked, at("points", d.Points()/d.MetricCount, d, sum))
	}

	// More and more hosts, and over the largest data set queries of more and more groups. Region, dc and rack have a
	// fixed number of values each, see workload.Devops.Host.
	var series []loaded
	d := c.Data
	d.Tags = max(d.Tags, 4) // the fourth is rack
	for d.Hosts >>= c.Steps; d.Hosts <= c.Data.Hosts<<c.Steps; d.Hosts *= 2 {
		series = append(series, loaded{d, 1, []asked{at("series", d.Hosts, d, sum)}})
	}
	most := &series[len(series)-1]
	groups := func(n int, m string) {
		most.asked = append(most.asked, at("groups", min(n, most.data.Hosts), most.data, m))
	}
	groups(1, sum)
	groups(workload.Regions, byRegion)
	groups(workload.DCs, "sum:5m-avg:%s{dc=*}")
	groups(100, "sum:5m-avg:%s{rack=*}")
	groups(most.data.Hosts, "sum:5m-avg:%s{host=*}")

	var parts []loaded
	for _, buckets := range c.Buckets {
		parts = append(parts, loaded{c.Data, buckets, []asked{at("parts", buckets, c.Data, byRegion)}})
	}
	return [][]loaded{{points}, series, parts}
}

// along measures an axis, with every engine.
func (s *scaling) along(ctx context.Context, axis []loaded) error {
	for _, one := range axis {
		p, err := s.load(ctx, one.data, one.buckets)
		if err != nil {
			return err
		}
		for _, q := range one.asked {
			var spots []spot
			for _, e := range p.engines {
				spots = append(spots, spot{q.x, e})
			}
			if err == nil {
				err = s.measure(ctx, spots, p, q)
			}
		}
		p.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// inFlight measures the same parts, with more and more of them at the pushdown server at
// the same time.
func (s *scaling) inFlight(ctx context.Context) error {
	// The last number of buckets is the largest.
	p, err := s.load(ctx, s.cfg.Data, s.cfg.Buckets[len(s.cfg.Buckets)-1])
	if err != nil {
		return err
	}
	defer p.close()

	var spots []spot
	for _, n := range s.cfg.InFlight {
		pushed := p.pushed(n)
		for _, mode := range []string{"strict", "partial"} {
			spots = append(spots, spot{float64(n), candidate{pushedName, mode, pushed}})
		}
	}
	return s.measure(ctx, spots, p, at("parts in flight at a server", 0, s.cfg.Data, "sum:5m-avg:%s{region=*}"))
}
