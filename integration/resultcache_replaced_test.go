//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"downpour/integration/e2e"
)

// replaced are steps that put another table into the place of the data table, in random order. The
// same number of puts follows each step of a replacement, so that regions with the old names reach
// the old read points again. Some steps bring back what was there before, so that there is
// something to ask for.
func (s *tableLife) replaced(rng *rand.Rand, rounds int) (steps []step) {
	for round := range rounds {
		for _, i := range rng.Perm(len(replacements)) {
			steps = append(steps, s.replacement(rng, replacements[i], fmt.Sprintf("s%d-%d", round, i))...)
		}
	}
	return steps
}

// replacements are the ways to replace a table, each as the words of its steps, see replace.
var replacements = [][]string{
	{"restore"},
	{"clone"},
	{"clone", "clone"},
	{"truncate", "restore"},
	{"truncate preserving splits", "restore"},
	{"create", "clone"},
	{"split", "restore"},
	{"split", "merge", "clone"},
	{"move", "restore", "move"},
}

// replacement is the steps of one way. First comes a snapshot of that name, which restore and clone
// bring back.
func (s *tableLife) replacement(rng *rand.Rand, way []string, snapshot string) []step {
	snapshot = s.tables.Data + "-" + snapshot
	n := 1 + rng.IntN(4)
	values := func() []e2e.Point { return somePoints(rng, n) }
	steps := []step{{fmt.Sprintf("snapshot, %d puts", n), s.both(func(ctx context.Context) error {
		return hbase(s.T).Admin.Snapshot(ctx, s.tables.Data, snapshot)
	}, values())}}
	for _, word := range way {
		steps = append(steps, step{fmt.Sprintf("%s of %v, %d puts", word, way, n),
			s.both(func(ctx context.Context) error {
				return s.replace(ctx, word, snapshot)
			}, values())})
	}
	return steps
}

// somePoints are points in different cells of rows that exist.
func somePoints(rng *rand.Rand, n int) (points []e2e.Point) {
	for _, second := range rng.Perm(3600)[:n] {
		points = append(points, e2e.Point{
			Metric:    "load.int",
			Timestamp: dataStart + 1800 + int64(second),
			Value:     json.RawMessage(fmt.Sprint(rng.IntN(1000))),
			Tags:      map[string]string{"host": "a"},
		})
	}
	return points
}

// both does something and then puts points one by one, so that each is one change of a region.
func (s *tableLife) both(do func(context.Context) error, points []e2e.Point) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		for i := range points {
			if err := e2e.Put(ctx, s.readers["alone"].URL, points[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
}

func (s *tableLife) replace(ctx context.Context, word, snapshot string) error {
	admin, table := hbase(s.T).Admin, s.tables.Data
	switch word {
	case "restore":
		return admin.RestoreSnapshot(ctx, table, snapshot)
	case "clone":
		return s.clone(ctx, snapshot)
	case "truncate":
		return admin.Truncate(ctx, table, false)
	case "truncate preserving splits":
		return admin.Truncate(ctx, table, true)
	case "create":
		if err := admin.DropTable(ctx, table); err != nil {
			return err
		}
		return admin.CreateTable(ctx, table, "NONE", []string{"t"})
	case "split":
		return s.splitAnywhere(ctx)
	case "merge":
		regions, err := admin.Regions(ctx, table)
		if err != nil {
			return err
		}
		return admin.Merge(ctx, table, regions[0].EncodedName, regions[1].EncodedName)
	case "move":
		return s.move(ctx)
	}
	return fmt.Errorf("no such way: %q", word)
}

// splitAnywhere splits a region at a row with which no region begins.
func (s *tableLife) splitAnywhere(ctx context.Context) error {
	admin, table := hbase(s.T).Admin, s.tables.Data
	regions, err := admin.Regions(ctx, table)
	if err != nil {
		return err
	}
	cells, err := admin.Scan(ctx, table)
	if err != nil {
		return err
	}
	for i := range cells {
		key := cells[(i+len(cells)/2)%len(cells)].Row
		if !slices.ContainsFunc(regions, func(r e2e.Region) bool { return bytes.Equal(r.Start, key) }) {
			return admin.Split(ctx, table, key)
		}
	}
	return fmt.Errorf("no row of %s to split at", table)
}

// clones is how often clone tries to get all regions onto their old servers.
const clones = 8

// clone puts a clone into the table's place, if possible with each region on the server that it was
// on before: only there could its read point be taken for the old one.
func (s *tableLife) clone(ctx context.Context, snapshot string) error {
	admin, table := hbase(s.T).Admin, s.tables.Data
	before, err := admin.Regions(ctx, table)
	if err != nil {
		return err
	}
	for try := range clones {
		if err := admin.DropTable(ctx, table); err != nil {
			return err
		}
		if err := admin.CloneSnapshot(ctx, table, snapshot); err != nil {
			return err
		}
		after, err := admin.Regions(ctx, table)
		if err != nil {
			return err
		}
		same := slices.EqualFunc(before, after, func(a, b e2e.Region) bool {
			return a.EncodedName != b.EncodedName || a.Server == b.Server
		})
		if same {
			s.Logf("clone on the old servers after %d tries", try+1)
			break
		}
	}
	return nil
}
