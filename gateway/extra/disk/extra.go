// Package disk watches how fast an embedded store fills its disk, and warns when it will be full soon.
package disk

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"downpour/gateway"
	"downpour/gateway/extra/disk/diskfill"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/store"
)

// The cell of the history of an embedded store's bytes, in the table of our own.
const (
	diskRow    = "disk"
	diskColumn = "history"
)

const (
	// warnWithin is how soon the disk must be full for a warning.
	warnWithin = 30 * 24 * time.Hour
	// measureEvery is the time between two looks at the disk.
	measureEvery = time.Hour
)

// New returns the watch.
func New() gateway.Extra { return gateway.Extra{Name: "disk", Open: open} }

func open(_ context.Context, c *gateway.Core) (parts gateway.Parts, err error) {
	usage := c.Store.Features().DiskUsage
	if usage != nil && !c.ReadOnly() {
		parts.Jobs = []gateway.Job{{Name: "disk", Run: (&watch{c, usage}).run}}
	}
	return parts, nil
}

// watch looks at a disk now and then.
type watch struct {
	*gateway.Core
	usage func() (used, free int64, err error)
}

// run logs at the start when the disk will be full, if that is soon, and notes from time to time
// how much the store takes.
func (w *watch) run(ctx context.Context) {
	look := time.NewTicker(measureEvery)
	defer look.Stop()
	for first := true; ; first = false {
		if err := w.measure(ctx, first); err != nil && ctx.Err() == nil {
			// Nothing depends on it, and every put reports a full disk.
			w.Log.Debug("how fast the disk fills is not known", "err", err)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// measure notes how much of the disk the store takes. With warn it logs if the disk will be
// full soon.
func (w *watch) measure(ctx context.Context, warn bool) error {
	used, free, err := w.usage()
	if err != nil {
		return err
	}
	now := diskfill.Sample{At: w.Config.Now().Unix(), Used: used}
	var h diskfill.History
	rows, err := w.Store.Get(ctx, w.Config.TableState, tables.FamilyState, [][]byte{[]byte(diskRow)})
	if err != nil {
		return err
	}
	for _, row := range rows {
		for _, c := range row.Cells {
			if string(c.Qualifier) == diskColumn {
				_ = json.Unmarshal(c.Value, &h) // what cannot be read begins again
			}
		}
	}

	if left, since, ok := h.Left(now, free); ok && warn && left < warnWithin {
		w.Log.Warn("the disk will be full soon at the rate of the last days: DOWNPOUR_RETENTION can bound the store, "+
			"and gateway retention plan shows how much that would free",
			"days", int(left/(24*time.Hour)), "free", free, "used", used, "since",
			time.Unix(since.At, 0).UTC().Format(time.DateTime), "grown", used-since.Used)
	}
	noted := h.With(now)
	if slices.Equal(noted, h) {
		return nil
	}
	value, err := json.Marshal(noted)
	if err != nil {
		return err
	}
	return w.Store.Apply(ctx, w.Config.TableState, []store.Mutation{{
		Kind:      store.Put,
		Row:       []byte(diskRow),
		Family:    tables.FamilyState,
		Qualifier: []byte(diskColumn),
		Value:     value,
	}})
}
