package forest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/extra/trees/tree"
	"downpour/gateway/uid"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Branch returns a branch with its leaves, with their names, and the branches right below
// it. Leaves whose UIDs have no names are left out. It returns a *NotFoundError if there is
// no such branch, and a *TooManyError for more than MaxChildren below it.
// Source: Branch.fetchBranch.
func (f *Forest) Branch(ctx context.Context, key []byte) (*tree.Branch, error) {
	var b *tree.Branch
	if tree.IsBranchKey(key) {
		value, err := f.cell(ctx, key, []byte(tree.BranchQualifier))
		if err != nil {
			return nil, fmt.Errorf("reading branch %s: %w", tree.BranchID(key), err)
		}
		if value != nil {
			if b, err = tree.ParseBranch(key, value); err != nil {
				return nil, err
			}
		}
	}
	if b == nil {
		return nil, &NotFoundError{fmt.Sprintf("branch '%s' for tree '%d'", tree.BranchID(key), tree.IDOf(key))}
	}

	if err := f.children(ctx, b); err != nil {
		return nil, fmt.Errorf("reading branch %s: %w", tree.BranchID(key), err)
	}
	if err := f.leaves(ctx, b); err != nil {
		return nil, fmt.Errorf("reading branch %s: %w", tree.BranchID(key), err)
	}
	b.Sort()
	return b, nil
}

// deeperRows is after how many rows below a child the scan is reopened after them.
const deeperRows = 200

// childBytes is about what a branch or leaf takes on top of its JSON, in the list and in the
// answer.
const childBytes = 400

// children adds the branches right below a branch. What is deeper comes in between, and is
// passed over in rows or, where there is more of it, by a new scan.
func (f *Forest) children(ctx context.Context, b *tree.Branch) error {
	width := len(b.Key) + tree.HashWidth
	from, end := append(bytes.Clone(b.Key), 0), encoding.PrefixEnd(b.Key)
	for from != nil {
		scan := store.Scan{Table: f.cfg.TreeTable, Family: encoding.FamilyData, Start: from, Stop: end,
			Columns: []store.KeyRange{exactly([]byte(tree.BranchQualifier))}}
		from = nil
		deeper := 0
		for r, err := range store.Rows(ctx, f.cfg.Store, scan) {
			if err != nil {
				return err
			}
			if len(r.Key) < width {
				continue // no branch: the root's lists of series that are left out have such keys
			}
			if len(r.Key) > width {
				if deeper++; deeper > deeperRows {
					from = encoding.PrefixEnd(r.Key[:width])
					break
				}
				continue
			}

			deeper = 0
			if err := f.child(ctx, b, r); err != nil {
				return err
			}
		}
		// Behind the last possible child nothing is left.
		if from != nil && end != nil && bytes.Compare(from, end) >= 0 {
			from = nil
		}
	}
	return nil
}

// child adds one branch.
func (f *Forest) child(ctx context.Context, b *tree.Branch, r store.Row) error {
	if len(b.Branches) >= MaxChildren {
		return &TooManyError{"branches below one"}
	}
	if err := memory.Reserve(ctx, int64(childBytes+4*len(r.Cells[0].Value))); err != nil {
		return err
	}
	c, err := tree.ParseBranch(bytes.Clone(r.Key), r.Cells[0].Value)
	if err == nil {
		b.Branches = append(b.Branches, c)
	}
	return err
}

// namedAtOnce is for how many leaves names are looked up together.
const namedAtOnce = 1000

// leaves adds the leaves of a branch, with their names. Damaged ones, and those with a UID
// that has no name, are left out.
func (f *Forest) leaves(ctx context.Context, b *tree.Branch) error {
	r := exactly(b.Key)
	scan := store.Scan{
		Table:   f.cfg.TreeTable,
		Family:  encoding.FamilyData,
		Start:   r.Start,
		Stop:    r.Stop,
		Columns: []store.KeyRange{beginning(tree.LeafPrefix)},
	}
	var found []tree.Leaf
	for row, err := range store.Rows(ctx, f.cfg.Store, scan) {
		if err != nil {
			return err
		}
		for _, c := range row.Cells {
			if len(found) >= MaxChildren {
				return &TooManyError{"leaves of a branch"}
			}
			if err := memory.Reserve(ctx, int64(childBytes+8*len(c.Value))); err != nil {
				return err
			}
			l, err := tree.ParseLeaf(c.Value)
			if err != nil {
				// OpenTSDB shows the others, too.
				f.cfg.Log.Warn("a leaf is damaged", "branch", tree.BranchID(b.Key), "err", err)
				continue
			}
			found = append(found, l)
		}
	}

	for from := 0; from < len(found); from += namedAtOnce {
		part := found[from:min(from+namedAtOnce, len(found))]
		// With all names known at once, those of single leaves come from the cache.
		// A UID without a name is no error here: nameLeaf leaves its leaf out.
		err := f.learnNames(ctx, part)
		if noName := (*uid.NoSuchIDError)(nil); err != nil && !errors.As(err, &noName) {
			return err
		}
		for i := range part {
			named, err := f.nameLeaf(ctx, &part[i])
			if err != nil {
				return err
			}
			if named {
				b.Leaves = append(b.Leaves, part[i])
			}
		}
	}
	return nil
}

// learnNames looks up the names of leaves, so that the dictionary has them in its cache.
// Leaves with a damaged TSUID are left to nameLeaf.
func (f *Forest) learnNames(ctx context.Context, leaves []tree.Leaf) error {
	var uids [3][]encoding.UID
	for _, l := range leaves {
		tsuid, err := hex.DecodeString(l.TSUID)
		if err != nil {
			continue
		}
		metric, tags, err := f.cfg.Schema.SplitTSUID(tsuid)
		if err != nil {
			continue
		}
		uids[encoding.UIDMetric] = append(uids[encoding.UIDMetric], metric)
		for _, p := range f.cfg.Schema.AppendPairs(nil, tags) {
			uids[encoding.UIDTagK] = append(uids[encoding.UIDTagK], p.K)
			uids[encoding.UIDTagV] = append(uids[encoding.UIDTagV], p.V)
		}
	}

	for kind := range uids {
		if _, err := f.cfg.Names.Names(ctx, encoding.UIDKind(kind), uids[kind]); err != nil {
			return err
		}
	}
	return nil
}

// nameLeaf sets a leaf's names. It reports whether all of its UIDs have one.
func (f *Forest) nameLeaf(ctx context.Context, l *tree.Leaf) (named bool, err error) {
	tsuid, err := hex.DecodeString(l.TSUID)
	if err != nil { // a damaged TSUID, which has no names either
		return false, nil
	}
	// A leaf shows names alone, no custom fields.
	s, err := f.series(ctx, tsuid, false)
	if unnamed(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	l.Metric, l.Tags = s.Metric.Text, make(map[string]string, len(s.Tags))
	for _, t := range s.Tags {
		l.Tags[t.Key.Text] = t.Value.Text
	}
	return true, nil
}
