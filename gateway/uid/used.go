package uid

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"downpour/encoding"
)

// Used returns how many UIDs of each kind have been assigned, by anybody, and how many there can
// be. UIDs that are drawn at random, as OpenTSDB can do it for metrics, are not counted.
func (d *Dictionary) Used(ctx context.Context) (used, most map[encoding.UIDKind]int64, err error) {
	rows, err := d.cfg.Store.Get(ctx, d.cfg.Table, encoding.FamilyID, [][]byte{encoding.CounterRow})
	if err != nil {
		return nil, nil, fmt.Errorf("uid: cannot read the counters: %w", err)
	}

	used, most = map[encoding.UIDKind]int64{}, map[encoding.UIDKind]int64{}
	for _, kind := range []encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagK, encoding.UIDTagV} {
		most[kind] = mostUIDs(d.cfg.Schema.UIDWidth(kind))
		used[kind] = 0
		for _, r := range rows {
			if b := column(r, kind); len(b) == 8 {
				used[kind] = int64(binary.BigEndian.Uint64(b))
			}
		}
	}
	return used, most, nil
}

// mostUIDs is how many UIDs of a width there are; 0 is none.
func mostUIDs(width int) int64 {
	if width >= 8 {
		return math.MaxInt64
	}
	return int64(1)<<(8*width) - 1
}
