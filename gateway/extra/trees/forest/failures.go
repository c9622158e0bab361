package forest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"downpour/encoding"
	"downpour/gateway/extra/trees/tree"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Failures is one of the two lists of series that a tree has left out.
type Failures struct {
	key    func(id int) []byte
	prefix string
	what   string
}

// The lists: series whose leaf another series has, with the TSUID of that one, and series
// for which rules yielded too few names, with those rules.
var (
	Collisions = Failures{tree.CollisionsKey, tree.CollisionPrefix, "collisions of a tree: name some TSUIDs"}
	NotMatched = Failures{tree.NotMatchedKey, tree.NotMatchedPrefix,
		"series that a tree has not matched: name some TSUIDs"}
)

// qualifier returns the column of a series.
func (l Failures) qualifier(tsuid []byte) []byte { return append([]byte(l.prefix), tsuid...) }

// Failed returns a list of a tree, by TSUIDs in hex: of the given series, or of all if tsuids
// is nil. It returns a *NotFoundError if there is no such tree.
// Source: Tree.fetchCollisions, Tree.fetchNotMatched.
func (f *Forest) Failed(ctx context.Context, l Failures, id int, tsuids [][]byte) (map[string]string, error) {
	if _, err := f.Tree(ctx, id); err != nil {
		return nil, err
	}

	if tsuids == nil {
		return f.failed(ctx, l, id, beginning(l.prefix))
	}
	// A scan wants its columns ascending and disjoint.
	tsuids = slices.Clone(tsuids)
	slices.SortFunc(tsuids, bytes.Compare)
	tsuids = slices.CompactFunc(tsuids, bytes.Equal)
	out := map[string]string{}
	for some := range slices.Chunk(tsuids, columnsAtOnce) {
		var columns []store.KeyRange
		for _, tsuid := range some {
			columns = append(columns, exactly(l.qualifier(tsuid)))
		}
		found, err := f.failed(ctx, l, id, columns...)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, found)
	}
	return out, nil
}

// columnsAtOnce is how many columns are read together.
const columnsAtOnce = 100

// failed reads columns of a list, by TSUIDs in hex.
func (f *Forest) failed(ctx context.Context, l Failures, id int, columns ...store.KeyRange) (map[string]string, error) {
	out := map[string]string{}
	r := exactly(l.key(id))
	scan := store.Scan{
		Table:   f.cfg.TreeTable,
		Family:  encoding.FamilyData,
		Start:   r.Start,
		Stop:    r.Stop,
		Columns: columns,
	}
	for row, err := range store.Rows(ctx, f.cfg.Store, scan) {
		if err != nil {
			return nil, fmt.Errorf("reading tree %d: %w", id, err)
		}
		for _, c := range row.Cells {
			if len(out) >= MaxChildren {
				return nil, &TooManyError{l.what}
			}
			if err := memory.Reserve(ctx, int64(childBytes+4*(len(c.Qualifier)+len(c.Value)))); err != nil {
				return nil, err
			}
			out[encoding.UID(c.Qualifier[len(l.prefix):]).String()] = string(c.Value)
		}
	}
	return out, nil
}
