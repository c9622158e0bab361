package uidcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/metadata/wholetable"
	"downpour/pushdown/store"
)

// rowsOf are rows of points by a UID that they have.
type rowsOf map[key][]byte

// leftovers returns the strays that may be deleted if no row has them.
func leftovers(strays map[key]*stray) map[key]bool {
	wanted := map[key]bool{}
	for _, s := range strays {
		if s.own == nil && usable(s.name) && len(s.uids) == 1 {
			continue // its name gets it back
		}
		for _, u := range s.uids {
			wanted[key{s.kind, u}] = true
		}
	}
	return wanted
}

// findUsed returns a row of points for each UID that rows have. For metrics it looks at one
// place in each salt bucket; for tags it reads keys until every UID is found, and if one is in no
// row, those of the whole tables.
func (c *check) findUsed(ctx context.Context, wanted map[key]bool) (rowsOf, error) {
	used, missing := rowsOf{}, 0 // missing tags
	for k := range wanted {
		if k.kind != encoding.UIDMetric {
			missing++
		}
	}

	for _, table := range c.Points {
		err := c.findMetrics(ctx, table, wanted, used)
		if err == nil && missing > 0 {
			c.Progress(fmt.Sprintf("the keys of %s are read, to see whether rows have %d UIDs that are no name's",
				table, missing))
			missing, err = c.findTags(ctx, table, wanted, used, missing)
		}
		// Nobody has to make the tables of rollups before there are some.
		if err != nil && !errors.Is(err, store.ErrNoTable) {
			return nil, fmt.Errorf("looking for rows of UIDs in %s: %w", table, err)
		}
	}
	return used, nil
}

// findMetrics finds a row of each wanted metric in a table.
func (c *check) findMetrics(ctx context.Context, table string, wanted map[key]bool, used rowsOf) error {
	for k := range wanted {
		if k.kind != encoding.UIDMetric {
			continue
		}
		for bucket := 0; bucket < c.Schema.Buckets() && used[k] == nil; bucket++ {
			start := c.Schema.AppendRangeKey(nil, bucket, encoding.UID(k.text), 0)
			s := store.Scan{
				Table:    table,
				Family:   encoding.FamilyData,
				Start:    start,
				Stop:     encoding.PrefixEnd(start[:c.Schema.BaseTimeAt()]),
				KeysOnly: true,
				MaxRows:  1,
			}
			for row, err := range store.Rows(ctx, c.Store, s) {
				if err != nil {
					return err
				}
				used[k] = bytes.Clone(row.Key)
			}
		}
	}
	return nil
}

// findTags finds a row of each wanted tag key and tag value in a table. missing is how many
// tags had no row before the call; it returns how many have none after it.
func (c *check) findTags(
	ctx context.Context, table string, wanted map[key]bool, used rowsOf, missing int,
) (int, error) {
	var pairs []encoding.TagPair
	progress := func(rows int) { c.Progress(fmt.Sprintf("%s: %d keys read", table, rows)) }
	for row, err := range wholetable.Counted(ctx, c.Store, store.Scan{
		Table:    table,
		Family:   encoding.FamilyData,
		KeysOnly: true,
	}, perLookup, progress) {
		if err != nil {
			return missing, err
		}

		// A key of an impossible length is of no series.
		k, err := c.Schema.ParseRowKey(row.Key)
		if err != nil {
			continue
		}
		pairs = c.Schema.AppendPairs(pairs[:0], k.Tags)
		for _, p := range pairs {
			for _, tag := range [...]key{{encoding.UIDTagK, string(p.K)}, {encoding.UIDTagV, string(p.V)}} {
				if wanted[tag] && used[tag] == nil {
					used[tag] = bytes.Clone(row.Key)
					missing--
				}
			}
		}
		if missing == 0 {
			break
		}
	}
	return missing, nil
}
