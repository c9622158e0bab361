package forest

import (
	"context"
	"fmt"
	"strings"

	"downpour/encoding"
	"downpour/gateway/extra/trees/tree"
	"downpour/pushdown/store"
)

// deletedAtOnce bounds the cells of one write.
const deletedAtOnce = 1000

// Delete deletes the branches and leaves of a tree, and what it says of collisions and of
// series that it has not matched; with definition also its rules and itself. A tree need not
// be there: what is left of it is deleted. A deletion that was cut short can be repeated.
// Source: Tree.deleteTree.
func (f *Forest) Delete(ctx context.Context, id int, definition bool) error {
	if err := tree.CheckID(id); err != nil {
		return err
	}
	err := f.deleteCells(ctx, id, isGrown)
	f.changed() // also after an error: a treesync forgets which branches are there
	if err != nil || !definition {
		return err
	}

	// The definition goes last, so that a deletion that is cut short finds its tree again.
	// Series that this process added at the same time by the old definition are deleted after
	// it: the next tree that is made may have the same id. Another process may go by the old
	// definition for ReloadAfter. Create does not take an id that has rows left.
	if err := f.deleteCells(ctx, id, isDefinition); err != nil {
		return err
	}
	f.changed()
	f.settle() // waits for those who still add by the old definition
	return f.deleteCells(ctx, id, isGrown)
}

// isGrown reports whether a qualifier is one that series have made.
func isGrown(qualifier string) bool {
	return qualifier == tree.BranchQualifier || strings.HasPrefix(qualifier, tree.LeafPrefix) ||
		strings.HasPrefix(qualifier, tree.CollisionPrefix) || strings.HasPrefix(qualifier, tree.NotMatchedPrefix)
}

// isDefinition reports whether a qualifier is one that clients have made.
func isDefinition(qualifier string) bool {
	return qualifier == tree.DefinitionQualifier || tree.IsRule([]byte(qualifier))
}

// deleteCells deletes the cells of a tree whose qualifiers are of some kind.
func (f *Forest) deleteCells(ctx context.Context, id int, of func(qualifier string) bool) error {
	scan := store.Scan{
		Table:  f.cfg.TreeTable,
		Family: encoding.FamilyData,
		Start:  tree.Key(id),
		Stop:   encoding.PrefixEnd(tree.Key(id)),
	}
	for rows, err := range store.Blocks(ctx, f.cfg.Store, scan) {
		if err != nil {
			return fmt.Errorf("deleting tree %d: %w", id, err)
		}
		if err := f.deleteOf(ctx, rows, of); err != nil {
			return fmt.Errorf("deleting tree %d: %w", id, err)
		}
	}
	return nil
}

// deleteOf deletes cells of some rows.
func (f *Forest) deleteOf(ctx context.Context, rows []store.Row, of func(qualifier string) bool) error {
	var mutations []store.Mutation
	for _, r := range rows {
		key := append([]byte{}, r.Key...)
		for _, c := range r.Cells {
			if !of(string(c.Qualifier)) {
				continue
			}
			mutations = append(mutations, mutation(store.DeleteCell, key, append([]byte{}, c.Qualifier...), nil))
			if len(mutations) == deletedAtOnce {
				if err := f.apply(ctx, mutations); err != nil {
					return err
				}
				mutations = nil
			}
		}
	}
	return f.apply(ctx, mutations)
}
