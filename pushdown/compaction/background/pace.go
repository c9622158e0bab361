package background

import (
	"context"
	"time"

	"downpour/pushdown/compaction"
	"downpour/pushdown/process/pacer"
	"downpour/pushdown/store"
)

// The cost of a page of rows, and of each row that is only read; a row that is compacted costs 1. A
// page without rows is the look-up of a metric.
const (
	pageCost = 1
	lookCost = 0.1
)

// costOf is what a page has cost.
func costOf(c compaction.Counts) float64 {
	return pageCost + float64(c.Compacted) + lookCost*float64(c.Rows-c.Compacted)
}

// pageRows is the number of rows of a page at a rate: a page lasts a quarter of a second or less,
// so that little work comes at once.
func pageRows(rate float64) int { return int(max(1, min(64, rate/4))) }

// timed is a store that reports to a pacer how long its calls take.
type timed struct {
	store.Versioned
	pace *pacer.Pacer
}

// Versions implements store.Versioned.
func (t timed) Versions(ctx context.Context, table, family string, keys store.KeyRange,
	maxRows int) ([]store.VersionRow, []byte, error) {
	began := time.Now()
	rows, next, err := t.Versioned.Versions(ctx, table, family, keys, maxRows)
	versions := 0
	for _, row := range rows {
		versions += len(row.Versions)
	}
	t.pace.Read(time.Since(began), 1+float64(versions)/64)
	return rows, next, err
}

// ChangeIf implements store.Versioned.
func (t timed) ChangeIf(ctx context.Context, table, family string, changes []store.ConditionalChange) ([]bool, error) {
	began := time.Now()
	held, err := t.Versioned.ChangeIf(ctx, table, family, changes)
	t.pace.Changed(time.Since(began), float64(1+len(changes)))
	return held, err
}
