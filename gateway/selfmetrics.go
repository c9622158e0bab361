package gateway

import (
	"context"
	"os"

	"downpour/gateway/admin/selfmetrics"
	"downpour/gateway/write"
)

// collect starts to put this host's own metrics, like any collector's.
func (s *Server) collect(ctx context.Context) {
	interval, _ := s.cfg.selfMetrics() // Validate has told of the error
	if interval == 0 {
		return
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}

	c := &selfmetrics.Collector{Interval: interval, Host: host, Put: s.putOwn, Log: s.log}
	s.background.Go(func() { c.Run(ctx) })
}

// putOwn stores one sample of all metrics and waits until it is durable.
func (s *Server) putOwn(ctx context.Context, points []selfmetrics.Point) error {
	// All points are added before any is waited for, so that they share a commit window.
	batches := map[*write.Batch]bool{}
	for _, p := range points {
		q := write.Point{Metric: p.Metric, Time: p.Time, Value: p.Value, Narrow: true}
		for k, v := range p.Tags {
			q.Tags = append(q.Tags, write.Tag{K: k, V: v})
		}
		b, err := s.writer.Add(ctx, &q)
		if err != nil {
			return err
		}
		batches[b] = true
	}

	for b := range batches {
		if err := b.Wait(ctx); err != nil {
			return err
		}
	}

	return nil
}
