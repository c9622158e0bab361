package uid

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"downpour/encoding"
)

// Counters are what the UID table counts, and the generation of names before that was read.
type Counters struct {
	// Given is the last number of each kind that was given. UIDs that are drawn at random, as OpenTSDB can do it
	// for metrics, are not counted.
	Given [3]int64
	// Changes counts changes of names that processes have announced, see Tell.
	Changes    int64
	Generation uint64
}

var kinds = [...]encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagK, encoding.UIDTagV}

// Counters reads the counters.
func (d *Dictionary) Counters(ctx context.Context) (c Counters, err error) {
	c.Generation = d.Generation()
	rows, err := d.cfg.Store.Get(ctx, d.cfg.Table, encoding.FamilyID, [][]byte{encoding.CounterRow})
	if err != nil {
		return c, fmt.Errorf("uid: cannot read the counters: %w", err)
	}
	for _, r := range rows {
		for _, kind := range kinds {
			if b := column(r, kind); len(b) == 8 {
				c.Given[kind] = int64(binary.BigEndian.Uint64(b))
			}
		}
		for _, cell := range r.Cells {
			if string(cell.Qualifier) == encoding.ChangesQualifier {
				if c.Changes, err = encoding.ParseCounter(cell.Value); err != nil {
					return c, err
				}
			}
		}
	}
	return c, nil
}

// Used returns how many UIDs of each kind have been assigned, by anybody, and how many there can
// be. UIDs that are drawn at random are not counted.
func (d *Dictionary) Used(ctx context.Context) (used, most map[encoding.UIDKind]int64, err error) {
	c, err := d.Counters(ctx)
	if err != nil {
		return nil, nil, err
	}
	used, most = map[encoding.UIDKind]int64{}, map[encoding.UIDKind]int64{}
	for _, kind := range kinds {
		used[kind], most[kind] = c.Given[kind], mostUIDs(d.cfg.Schema.UIDWidth(kind))
	}
	return used, most, nil
}

// Numbered returns the names whose UIDs have these numbers, by number, as the table has them. A number is left out
// that has no name, or whose name has another UID, as after a lost race.
func (d *Dictionary) Numbered(ctx context.Context, kind encoding.UIDKind,
	numbers []uint64) (map[uint64]string, error) {
	named := map[uint64]string{}
	for part := range slices.Chunk(numbers, namesPerRead) {
		keys := make([][]byte, len(part))
		for i, n := range part {
			var err error
			if keys[i], err = encoding.AppendUID(nil, n, d.cfg.Schema.UIDWidth(kind)); err != nil {
				return nil, err
			}
		}
		names, err := d.readNames(ctx, kind, keys)
		if err != nil {
			return nil, err
		}
		rows := rowsOf(slices.Collect(maps.Values(names)))
		if len(rows) == 0 {
			continue
		}
		uids, err := d.readForward(ctx, kind, rows) // past the cache, which another process may have changed
		if err != nil {
			return nil, err
		}
		for i, n := range part {
			if name, ok := names[string(keys[i])]; ok && bytes.Equal(uids[name], keys[i]) {
				named[n] = name
			}
		}
	}
	return named, nil
}

// mostUIDs is how many UIDs of a width there are; 0 is none.
func mostUIDs(width int) int64 {
	if width >= 8 {
		return math.MaxInt64
	}
	return int64(1)<<(8*width) - 1
}
