package gateway

import (
	"fmt"
	"strings"
	"time"

	"downpour/gateway/admin/activity"
	"downpour/gateway/admin/putlog"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/rollup"
)

// writes is how points come into the store.
type writes struct {
	*common
	series   *write.SeriesCache
	points   *write.Writer
	rollups  *write.Rollups
	refusals *putlog.Log   // the log of refused points
	lately   activity.Puts // what was put, for operators
}

// newWrites returns what writes points, and rollups, nil for none, that others have made.
func newWrites(c *common, n *names, rollups *rollup.Config) (*writes, error) {
	w := &writes{common: c, refusals: putlog.New(c.log)}
	w.refusals.OnRefusal = w.refused
	schema := c.cfg.Schema()
	// Staged: where the store can order its writes, a new series does not wait until its
	// UIDs are on the disk.
	w.series = write.NewSeries(write.SeriesConfig{
		Schema: schema,
		Names:  uid.Staged{Dictionary: n.Dictionary},
		Auto:   c.cfg.Auto(),
		Bytes:  c.memory.LargeCache(write.SeriesBytes),
	})

	codec, err := c.cfg.histogramCodec()
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_HISTOGRAMS: %w", err)
	}
	// On HBase several shards write at the same time: its servers have logs of their own.
	// pebble has one log, which all writes share, so that several shards would only wait for
	// one another. Large requests are written next to the one shard.
	shards, requestBatchFrom := 4, 0
	if c.cfg.Embedded() {
		shards, requestBatchFrom = 1, write.UsualRequestBatchFrom
	}
	points := write.Config{
		Schema:           schema,
		Table:            c.cfg.TableData,
		Form:             c.cfg.form(),
		Shards:           shards,
		RequestBatchFrom: requestBatchFrom,
		Allowed:          []rune(c.cfg.AllowSpecialChars),
		Observer:         n.observer(),
		Histograms:       codec,
	}
	w.points = write.New(points, c.store, w.series)
	w.rollups = write.NewRollups(write.RollupsConfig{
		Config:          points,
		Rollups:         rollups,
		TagKey:          c.cfg.RollupTagKey,
		RawValue:        c.cfg.RollupRawValue,
		TagRaw:          c.cfg.RollupTagRaw,
		RollupsComputed: c.cfg.RollupsComputed(),
		BlockDerived:    c.cfg.RollupBlockDerived,
	}, c.store, w.series)
	return w, nil
}

// refused takes in points that were refused.
func (w *writes) refused(r putlog.Refusal) {
	w.lately.Refused(time.Now(), r.Via, r.Reason, r.Points, r.Err)
	// Without spaces: telnet's stats and /api/stats make tags of labels.
	w.count.refused.WithLabelValues(strings.ReplaceAll(r.Via, " ", "_"),
		strings.ReplaceAll(r.Reason, " ", "_")).Add(float64(r.Points))
}

// abandon stops all waiting for the store. It returns how many points the store has
// not taken.
func (w *writes) abandon() int { return w.points.Abandon() + w.rollups.Abandon() }

// countPuts counts points of a source.
func (w *writes) countPuts(source activity.Source, stored, refused int) {
	sourceCounter{w, source}.Puts(stored, refused)
}

// sourceCounter counts the points of one source.
type sourceCounter struct {
	*writes
	source activity.Source
}

// Puts counts points.
func (c sourceCounter) Puts(ok, failed int) {
	c.count.Puts(ok, failed)
	c.count.sources.WithLabelValues(c.source.String()).Add(float64(ok))
	c.lately.Add(time.Now(), c.source, ok, failed)
}

// Lines counts telnet lines. A line whose write fails after it was counted as stored
// is counted as refused, too: then ok is negative.
func (c sourceCounter) Lines(ok, bad int) {
	c.count.Puts(max(ok, 0), bad)
	c.count.sources.WithLabelValues(c.source.String()).Add(float64(max(ok, 0)))
	c.lately.Add(time.Now(), c.source, ok, bad)
}
