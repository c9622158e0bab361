package bench

import (
	"context"

	"downpour/bench/workload"
)

// points measures one data set of many hours, with queries over more and more of them.
func (s *scaling) points(ctx context.Context) error {
	d := s.cfg.Data
	d.Hours <<= s.cfg.Steps
	p, err := s.load(ctx, d, 1)
	if err != nil {
		return err
	}
	defer p.close()

	for hours := s.cfg.Data.Hours >> s.cfg.Steps; hours <= d.Hours; hours *= 2 {
		q := d
		q.Hours = hours
		points := int64(q.Points() / q.MetricCount)
		if err := s.measureAt(ctx, "points", float64(points), p, q.Whole("sum:5m-avg:%s"), points); err != nil {
			return err
		}
		// The aim is about the middle of the axis.
		if hours == s.cfg.Data.Hours {
			s.ownProcess(float64(points))
		}
	}

	return nil
}

// series measures data sets with more and more hosts, and the largest one with queries of
// more and more groups.
func (s *scaling) series(ctx context.Context) error {
	most := s.cfg.Data.Hosts << s.cfg.Steps
	for hosts := s.cfg.Data.Hosts >> s.cfg.Steps; hosts <= most; hosts *= 2 {
		d := s.cfg.Data
		d.Hosts, d.Tags = hosts, max(d.Tags, 4) // the fourth is rack, which groups asks for
		p, err := s.load(ctx, d, 1)
		if err != nil {
			return err
		}

		err = s.measureAt(ctx, "series", float64(hosts), p, d.Whole("sum:5m-avg:%s"), int64(d.Points()/d.MetricCount))
		if err == nil && hosts*2 > most {
			err = s.groups(ctx, p)
		}
		p.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// groups measures queries of more and more groups.
func (s *scaling) groups(ctx context.Context, p *scalePlace) error {
	// Region, dc and rack have a fixed number of values each, see workload.Devops.Host.
	for _, g := range []struct {
		m      string
		groups int
	}{
		{"sum:5m-avg:%s", 1}, {"sum:5m-avg:%s{region=*}", workload.Regions}, {"sum:5m-avg:%s{dc=*}", workload.DCs},
		{"sum:5m-avg:%s{rack=*}", 100}, {"sum:5m-avg:%s{host=*}", p.data.Hosts},
	} {
		if err := s.measureAt(ctx, "groups", float64(min(g.groups, p.data.Hosts)), p, p.data.Whole(g.m), int64(p.data.Points()/p.data.MetricCount)); err != nil {
			return err
		}
	}
	return nil
}

// parts measures the same data in more and more salt buckets.
func (s *scaling) parts(ctx context.Context) error {
	for _, buckets := range s.cfg.Buckets {
		p, err := s.load(ctx, s.cfg.Data, buckets)
		if err != nil {
			return err
		}
		err = s.measureAt(ctx, "parts", float64(buckets), p, s.cfg.Data.Whole("sum:5m-avg:%s{region=*}"), int64(s.cfg.Data.Points()/s.cfg.Data.MetricCount))
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
	// Each salt bucket is a part, and the last number of buckets is the largest.
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
	return s.measure(ctx, "parts in flight at a server", spots, p, s.cfg.Data.Whole("sum:5m-avg:%s{region=*}"), int64(s.cfg.Data.Points()/s.cfg.Data.MetricCount))
}
