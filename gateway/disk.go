package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"downpour/gateway/admin/diskfill"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/store"
)

// The cell of the history of an embedded store's bytes, in the table of our own.
const (
	diskRow    = "disk"
	diskColumn = "history"
)

const (
	// warnWithin is how soon the disk must be full to be told.
	warnWithin = 30 * 24 * time.Hour
	// measureEvery is the time between two looks at the disk.
	measureEvery = time.Hour
)

// watchDisk logs at the start of an embedded store when its disk will be full, if that is soon,
// and notes now and then how much it takes.
func (j *jobs) watchDisk(start func(name string, work func(context.Context))) {
	usage := j.store.Features().DiskUsage
	if usage == nil || j.readOnly() {
		return
	}
	start("disk", func(ctx context.Context) {
		look := time.NewTicker(measureEvery)
		defer look.Stop()
		for first := true; ; first = false {
			if err := j.measureDisk(ctx, usage, first); err != nil && ctx.Err() == nil {
				// Nothing depends on it, and a full disk is told by every put.
				j.log.Debug("how fast the disk fills is not known", "err", err)
			}
			select {
			case <-look.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

// measureDisk notes how much of the disk the store takes. With warn it logs if the disk will be
// full soon.
func (j *jobs) measureDisk(ctx context.Context, usage func() (used, free int64, err error), warn bool) error {
	used, free, err := usage()
	if err != nil {
		return err
	}
	now := diskfill.Sample{At: j.cfg.Now().Unix(), Used: used}
	var h diskfill.History
	rows, err := j.store.Get(ctx, j.cfg.TableState, tables.FamilyState, [][]byte{[]byte(diskRow)})
	if err != nil {
		return err
	}
	for _, row := range rows {
		for _, c := range row.Cells {
			if string(c.Qualifier) == diskColumn {
				_ = json.Unmarshal(c.Value, &h) // what cannot be read is begun anew
			}
		}
	}

	if left, since, ok := h.Left(now, free); ok && warn && left < warnWithin {
		j.log.Warn("the disk will be full soon at the rate of the last days: DOWNPOUR_RETENTION can bound the store, and gateway retention plan shows how much that would free",
			"days", int(left/(24*time.Hour)), "free", free, "used", used, "since", time.Unix(since.At, 0).UTC().Format(time.DateTime), "grown", used-since.Used)
	}
	noted := h.With(now)
	if slices.Equal(noted, h) {
		return nil
	}
	value, err := json.Marshal(noted)
	if err != nil {
		return err
	}
	return j.store.Apply(ctx, j.cfg.TableState, []store.Mutation{{Kind: store.Put, Row: []byte(diskRow), Family: tables.FamilyState, Qualifier: []byte(diskColumn), Value: value}})
}
