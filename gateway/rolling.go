package gateway

import (
	"context"
	"time"

	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/pushdown/lease"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rollupjob"
)

// rollupEvery is how long after a round over all metrics the next one begins.
const rollupEvery = 10 * time.Minute

// rollupMargin is how long ago an hour has ended before it is rolled up by itself.
const rollupMargin = 10 * time.Minute

// startRollups starts to make rollups, if this gateway does that by itself.
func (s *Server) startRollups(ctx context.Context) {
	rollups, err := s.cfg.RollupConfig()
	if err != nil || s.cfg.RollupRate == 0 || s.cfg.madeIntervals(rollups) == nil || s.cfg.Mode == "ro" {
		return
	}
	job := &rollupjob.Job{Store: s.store, Tables: s.cfg.rollupJobTables(), Schema: s.cfg.Schema(), Config: rollups, FixDuplicates: s.cfg.FixDuplicates,
		Margin: rollupMargin, Now: s.cfg.Now, Pace: paced(s.cfg.RollupRate), Skip: true,
		Leases: &lease.Keeper{Store: s.store, Table: s.cfg.TableState, Holder: lease.Holder()}}
	s.background.Go(func() {
		for ctx.Err() == nil {
			s.rollUpAll(ctx, job)
			_ = wait(ctx, rollupEvery)
		}
	})
}

// paced returns a function that waits as long as so many points take at a rate, in points a
// second.
func paced(rate int) func(ctx context.Context, points int64) error {
	return func(ctx context.Context, points int64) error {
		return wait(ctx, time.Duration(float64(points)/float64(rate)*float64(time.Second)))
	}
}

// wait waits. The error is that of ctx.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rollUpAll rolls up all metrics, each with what is read back of it: only those of which
// somebody else makes the rollups at this moment are left out.
func (s *Server) rollUpAll(ctx context.Context, job *rollupjob.Job) {
	account := s.memory.Open(memory.Live)
	defer account.Close()
	if err := account.Reserve(ctx, rollupjob.Bytes); err != nil {
		s.log.Warn("rollups are not made: no memory", "err", err)
		return
	}
	if err := lease.CreateTable(ctx, s.store, s.cfg.TableState); err != nil {
		s.log.Warn("rollups are not made", "err", err)
		return
	}

	// Listed first: a scan of names must not stay open for as long as the work takes.
	var metrics []uid.Entry
	for e, err := range s.names.Each(ctx, encoding.UIDMetric, "") {
		if err != nil {
			s.log.Warn("rollups are not made: the metrics cannot be listed", "err", err)
			return
		}
		metrics = append(metrics, e)
	}

	now := s.cfg.Now()
	from, to := now.AddDate(0, 0, -s.cfg.RollupDays).Unix(), now.Unix()
	for _, step := range []func(context.Context, encoding.UID, int64, int64) (rollupjob.Counts, error){job.Roll, job.Prove} {
		var counts rollupjob.Counts
		for _, m := range metrics {
			done, err := step(ctx, m.UID, from, to)
			counts.Add(&done)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				s.log.Warn("rollups of a metric are not made", "metric", m.Name, "err", err)
			}
		}
		if counts.Made+counts.Failed+counts.Unproven > 0 {
			s.log.Info("rollups", "done", counts.String())
		}
	}
}
