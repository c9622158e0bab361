package chaos

import (
	"context"
	"errors"
	"fmt"

	"downpour/integration/e2e"
)

// regions lists the regions of a table.
func (w *world) regions(ctx context.Context, table string) (regions []e2e.Region, err error) {
	err = w.tended(ctx, func(ctx context.Context) (err error) {
		regions, err = w.cluster.Admin.Regions(ctx, table)
		return err
	})
	return regions, err
}

// mostRegions is where splitting ends.
const mostRegions = 12

// split cuts a region of the data table at one of its rows, or between two. Of many regions it
// merges two instead, so that faults can go on for any time.
func split(ctx context.Context, w *world) (string, error) {
	s := w.site()
	regions, err := w.regions(ctx, s.Tables.Data)
	if err != nil {
		return "", err
	}
	if len(regions) >= mostRegions {
		return merge(ctx, w)
	}
	key := s.rows[w.rng.IntN(len(s.rows))]
	if w.rng.IntN(2) == 0 {
		key = key[:len(key)-1-w.rng.IntN(4)] // a key that is no row
	}
	return fmt.Sprintf("%s at %x", s.Tables.Data, key), w.tended(ctx, func(ctx context.Context) error {
		return w.cluster.Admin.Split(ctx, s.Tables.Data, key)
	})
}

// merge joins two neighbours among the regions of the data table. Where few are left it splits one instead.
func merge(ctx context.Context, w *world) (string, error) {
	s := w.site()
	regions, err := w.regions(ctx, s.Tables.Data)
	if err != nil {
		return "", err
	}
	if len(regions) < 3 {
		return split(ctx, w)
	}
	i := w.rng.IntN(len(regions) - 1)
	return fmt.Sprintf("%s at %x", s.Tables.Data, []byte(regions[i].Stop)),
		w.tended(ctx, func(ctx context.Context) error {
			return w.cluster.Admin.Merge(ctx, s.Tables.Data, regions[i].EncodedName, regions[i+1].EncodedName)
		})
}

// move moves two regions of the data table, or one twice, and a region of the UID table.
func move(ctx context.Context, w *world) (string, error) {
	s := w.site()
	for _, table := range []string{s.Tables.Data, s.Tables.Data, s.Tables.UID} {
		if detail, err := w.moveOne(ctx, table); err != nil {
			return detail, err
		}
	}
	return s.Tables.Data, nil
}

func moveMeta(ctx context.Context, w *world) (string, error) { return w.moveOne(ctx, "hbase:meta") }

// moveOne moves a region to another server.
func (w *world) moveOne(ctx context.Context, table string) (string, error) {
	regions, err := w.regions(ctx, table)
	if err != nil {
		return table, err
	}
	region := regions[w.rng.IntN(len(regions))]
	for _, i := range w.rng.Perm(w.cluster.Len()) {
		if target := w.cluster.RegionServerAddr(i); target != region.Server {
			return fmt.Sprintf("%s from %s to %s", table, region.Server, target),
				w.tended(ctx, func(ctx context.Context) error {
					return w.cluster.Admin.Move(ctx, table, region.EncodedName, target)
				})
		}
	}
	return table, errors.New("there is no other server")
}
