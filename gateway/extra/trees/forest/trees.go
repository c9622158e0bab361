package forest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/extra/trees/tree"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// definition are the columns of a tree's definition and rules.
var definition = []store.KeyRange{exactly([]byte(tree.DefinitionQualifier)), beginning(tree.RulePrefix)}

// Tree returns a tree, or a *NotFoundError. Source: Tree.fetchTree.
func (f *Forest) Tree(ctx context.Context, id int) (*tree.Tree, error) {
	if err := tree.CheckID(id); err != nil {
		return nil, err
	}
	t, err := f.read(ctx, id)
	if err == nil && t == nil {
		err = noTree(id)
	}
	return t, err
}

// read returns a tree, nil if there is none: rules without a definition make no tree.
func (f *Forest) read(ctx context.Context, id int) (*tree.Tree, error) {
	cells, err := f.row(ctx, tree.Key(id), definition...)
	if err != nil {
		return nil, fmt.Errorf("reading tree %d: %w", id, err)
	}

	var t *tree.Tree
	var rules []tree.Rule
	for _, c := range cells {
		if err := memory.Reserve(ctx, int64(2*len(c.Value))); err != nil { // read and in the answer
			return nil, err
		}
		switch {
		case tree.IsRule(c.Qualifier):
			r, err := tree.ParseRule(c.Value)
			if err != nil {
				return nil, fmt.Errorf("tree %d, %s: %w", id, c.Qualifier, err)
			}
			rules = append(rules, r)
		default: // the definition: no other column is read
			parsed, err := tree.ParseDefinition(id, c.Value)
			if err != nil {
				return nil, err
			}
			t = &parsed
		}
	}

	if t != nil {
		tree.SortRules(rules)
		t.Rules = rules
	}
	return t, nil
}

// Trees returns all trees by their ids. Source: Tree.fetchAllTrees.
func (f *Forest) Trees(ctx context.Context) ([]*tree.Tree, error) {
	out := []*tree.Tree{}
	err := f.each(ctx, func(_ int, t *tree.Tree) {
		if t != nil { // nil for rows that a deleted tree has left
			out = append(out, t)
		}
	})
	return out, err
}

// each reads one tree after another, by their ids. An id that has rows and no definition comes
// with nil.
func (f *Forest) each(ctx context.Context, do func(id int, t *tree.Tree)) error {
	// Between the rows of two definitions lie all branches of the first. They are skipped:
	// there may be millions.
	for id := 1; id <= tree.MaxID; id++ {
		next, err := f.nextID(ctx, id)
		if err != nil || next == 0 {
			return err
		}
		t, err := f.read(ctx, next)
		if err != nil {
			return err
		}
		do(next, t)
		id = next
	}
	return nil
}

// nextID returns the first id of at least from that has a row, 0 for none.
func (f *Forest) nextID(ctx context.Context, from int) (int, error) {
	for start := tree.Key(from); start != nil; {
		scan := store.Scan{
			Table:    f.cfg.TreeTable,
			Family:   encoding.FamilyData,
			Start:    start,
			MaxRows:  1,
			KeysOnly: true,
		}
		start = nil
		for r, err := range store.Rows(ctx, f.cfg.Store, scan) {
			if err != nil {
				return 0, fmt.Errorf("reading the ids of trees: %w", err)
			}
			if len(r.Key) >= tree.IDWidth {
				return tree.IDOf(r.Key), nil
			}
			start = append(bytes.Clone(r.Key), 0) // behind a key that is no tree's
		}
	}
	return 0, nil
}

// Create makes a tree, whose id is the largest one plus 1, and returns it. An id without a
// definition counts: its rows are of a tree that was deleted, see Delete, and the new tree
// would show them. Source: Tree.createNewTree.
func (f *Forest) Create(ctx context.Context, c tree.Change) (*tree.Tree, error) {
	if c.Name == "" {
		return nil, tree.ErrNoName
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}

	for range attempts {
		trees, largest := 0, 0
		err := f.each(ctx, func(id int, t *tree.Tree) {
			largest = id // ids ascend
			if t != nil {
				trees++
			}
		})
		if err != nil {
			return nil, err
		}
		if largest == tree.MaxID {
			return nil, errors.New("Exhausted all Tree IDs")
		}
		if trees >= MaxTrees {
			return nil, fmt.Errorf("There are %d trees, and can be no more: delete some", trees)
		}
		t := c.Apply(tree.Tree{ID: largest + 1, Created: c.Created}, true)

		ok, err := f.exchange(ctx, tree.Key(t.ID), []byte(tree.DefinitionQualifier), nil, t.AppendDefinition(nil))
		if err != nil {
			return nil, fmt.Errorf("storing tree %d: %w", t.ID, err)
		}
		if ok {
			f.changed()
			return f.Tree(ctx, t.ID)
		}
		// Another process has made a tree of this id.
	}
	return nil, ErrConflict
}

// Change changes a tree's definition or, with overwrite, replaces it, and returns what is
// stored. Source: Tree.storeTree.
func (f *Forest) Change(ctx context.Context, c tree.Change, overwrite bool) (*tree.Tree, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	for range attempts {
		old, err := f.cell(ctx, tree.Key(c.ID), []byte(tree.DefinitionQualifier))
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading tree %d: %w", c.ID, err)
		case old == nil:
			return nil, noTree(c.ID)
		case c.Empty():
			return nil, ErrNoChange
		}

		was, err := tree.ParseDefinition(c.ID, old)
		if err != nil {
			return nil, err
		}
		t := c.Apply(was, overwrite)
		value := t.AppendDefinition(nil)
		ok := bytes.Equal(old, value)
		if !ok {
			if ok, err = f.exchange(ctx, tree.Key(c.ID), []byte(tree.DefinitionQualifier), old, value); err != nil {
				return nil, fmt.Errorf("storing tree %d: %w", c.ID, err)
			}
		}
		if ok {
			f.changed()
			return f.Tree(ctx, c.ID)
		}
	}
	return nil, ErrConflict
}
