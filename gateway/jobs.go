package gateway

import (
	"context"

	"downpour/gateway/admin/retention"
	"downpour/gateway/admin/sealing"
	compactions "downpour/pushdown/compaction/background"
	"downpour/pushdown/rollup"
	"downpour/pushdown/rollupjob/background"
)

// jobs are what a gateway does to its tables in the background. Those that it is not to do are nil.
type jobs struct {
	*common
	turns     retention.Turns // gives the deletion of rows that are past to one worker at a time
	retention *retention.Worker
	rollups   *background.Worker
	compactor *compactions.Worker
	sealer    *sealing.Worker
}

// newJobs returns the jobs of the settings. They yield to queries.
func newJobs(c *common, n *names, q *queries, rollups *rollup.Config) (j *jobs, err error) {
	j = &jobs{common: c, turns: c.newTurns()}
	j.retention = c.newRetention(n, j.turns)
	if j.rollups, err = c.newRollupWorker(rollups, n, q.listed.Count); err != nil {
		return nil, err
	}
	j.sealer = c.newSealer(q.listed.Count)
	j.compactor, err = c.newCompactor(q.listed.Count)
	return j, err
}

// start has each job done until its context ends.
func (j *jobs) start(start func(name string, work func(context.Context))) {
	if j.retention != nil {
		start("retention", j.retention.Run)
	}
	if j.rollups != nil {
		start("rollups", j.rollups.Run)
	}
	if j.compactor != nil {
		start("compaction", j.compactor.Run)
		j.log.Info("rows are compacted in the background", "DOWNPOUR_COMPACT", j.cfg.Compact, "DOWNPOUR_COMPACT_MARGIN", j.cfg.CompactMargin)
	}
	if j.sealer != nil {
		start("sealing", j.sealer.Run)
		j.log.Info("old rows are sealed in the background; older releases refuse the data directory from then on",
			"DOWNPOUR_SEAL", j.cfg.Seal)
	}
	j.watchDisk(start)
}
