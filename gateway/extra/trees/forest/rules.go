package forest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"downpour/gateway/extra/trees/tree"
	"downpour/pushdown/store"
)

// PutRule stores a rule, or changes the one at its place; with overwrite it replaces that. It
// returns what is stored, and ErrNoChange if nothing changes. Source:
// TreeRule.syncToStorage.
func (f *Forest) PutRule(ctx context.Context, given tree.Rule, overwrite bool) (*tree.Rule, error) {
	for range attempts {
		stored, done, err := f.tryRule(ctx, given, overwrite)
		if err != nil {
			return nil, err
		}
		if done {
			f.changed()
			return stored, nil
		}
	}
	return nil, ErrConflict
}

// tryRule is one attempt of PutRule; done is false if another process was faster.
func (f *Forest) tryRule(
	ctx context.Context, given tree.Rule, overwrite bool,
) (stored *tree.Rule, done bool, err error) {
	t, err := f.Tree(ctx, given.TreeID)
	if err != nil {
		return nil, false, err
	}
	if given.Empty() {
		return nil, false, ErrNoChange
	}
	if err := given.CheckPlace(); err != nil {
		return nil, false, err
	}

	qualifier := tree.RuleQualifier(given.Level, given.Order)
	old, err := f.cell(ctx, tree.Key(t.ID), qualifier)
	if err != nil {
		return nil, false, fmt.Errorf("reading rule %s: %w", &given, err)
	}
	r := given
	if old != nil {
		was, err := tree.ParseRule(old)
		if err != nil {
			return nil, false, err
		}
		if r = was.Merge(given, overwrite); r == was && !overwrite {
			return nil, false, ErrNoChange
		}
	}
	if err := checkWith(t, r); err != nil {
		return nil, false, err
	}

	ok, err := f.exchange(ctx, tree.Key(t.ID), qualifier, old, r.AppendStored(nil))
	if err != nil {
		return nil, false, fmt.Errorf("storing rule %s: %w", &r, err)
	}
	return &r, ok, nil
}

// checkWith returns why a tree cannot be applied if it gets some rules, which replace those
// at their places. A rule that was there before and cannot be applied is no reason: it may
// be OpenTSDB's.
func checkWith(t *tree.Tree, rules ...tree.Rule) error {
	after := tree.Tree{ID: t.ID, Rules: slices.Clone(rules)}
	for i := range rules {
		if err := rules[i].Validate(); err != nil {
			return err
		}
	}
	for _, r := range t.Rules {
		there := slices.ContainsFunc(rules, func(x tree.Rule) bool { return x.Level == r.Level && x.Order == r.Order })
		if !there && r.Validate() == nil {
			after.Rules = append(after.Rules, r)
		}
	}
	tree.SortRules(after.Rules)
	_, err := tree.Compile(after)
	return err
}

// PutRules stores several rules of one tree, which exists. A rule that changes nothing is
// left as it is. All are checked before one is stored.
func (f *Forest) PutRules(ctx context.Context, rules []tree.Rule) error {
	t, err := f.Tree(ctx, rules[0].TreeID)
	if err != nil {
		return err
	}

	after := slices.Clone(rules)
	for i := range after {
		if err := after[i].CheckPlace(); err != nil {
			return err
		}
		if was := t.Rule(after[i].Level, after[i].Order); was != nil {
			after[i] = was.Merge(after[i], false)
		}
	}
	if err := checkWith(t, after...); err != nil {
		return err
	}

	for _, r := range rules {
		if _, err := f.PutRule(ctx, r, false); err != nil && err != ErrNoChange {
			return err
		}
	}
	return nil
}

// ReplaceRules replaces all rules of a tree, at one stroke. A rule that another process stores
// at the same time is overwritten or, at another place, stays with the new ones.
func (f *Forest) ReplaceRules(ctx context.Context, rules []tree.Rule) error {
	t, err := f.Tree(ctx, rules[0].TreeID)
	if err != nil {
		return err
	}
	for i := range rules {
		if err := rules[i].CheckPlace(); err != nil {
			return err
		}
	}
	// Of several rules of one place the last one counts.
	places := map[[2]int]tree.Rule{}
	for _, r := range rules {
		places[[2]int{r.Level, r.Order}] = r
	}
	rules = slices.Collect(maps.Values(places))
	// Checked with a tree without rules, because the rules that are there all go.
	if err := checkWith(&tree.Tree{ID: t.ID}, rules...); err != nil {
		return err
	}

	var mutations []store.Mutation
	for _, r := range t.Rules {
		if _, kept := places[[2]int{r.Level, r.Order}]; !kept { // a deletion next to a put of the same cell could win
			mutations = append(mutations, mutation(store.DeleteCell, tree.Key(t.ID),
				tree.RuleQualifier(r.Level, r.Order), nil))
		}
	}
	for _, r := range rules {
		mutations = append(mutations, mutation(store.Put, tree.Key(t.ID), tree.RuleQualifier(r.Level, r.Order),
			r.AppendStored(nil)))
	}
	if err := f.apply(ctx, mutations); err != nil {
		return fmt.Errorf("storing the rules of tree %d: %w", t.ID, err)
	}
	f.changed()
	return nil
}

// DeleteRule deletes the rule of r's tree at the level and order of r. It returns a
// *NotFoundError if the tree or the rule is not there.
func (f *Forest) DeleteRule(ctx context.Context, r tree.Rule) error {
	t, err := f.Tree(ctx, r.TreeID)
	if err != nil {
		return err
	}
	if t.Rule(r.Level, r.Order) == nil {
		return noRule(&r)
	}
	return f.deleteRules(ctx, t.ID, []tree.Rule{r})
}

// DeleteRules deletes all rules of a tree.
func (f *Forest) DeleteRules(ctx context.Context, id int) error {
	t, err := f.Tree(ctx, id)
	if err != nil {
		return err
	}
	return f.deleteRules(ctx, id, t.Rules)
}

func (f *Forest) deleteRules(ctx context.Context, id int, rules []tree.Rule) error {
	var mutations []store.Mutation
	for _, r := range rules {
		mutations = append(mutations, mutation(store.DeleteCell, tree.Key(id),
			tree.RuleQualifier(r.Level, r.Order), nil))
	}
	if err := f.apply(ctx, mutations); err != nil {
		return fmt.Errorf("deleting rules of tree %d: %w", id, err)
	}
	f.changed()
	return nil
}

// Rule returns the rule of r's tree at the level and order of r, or a *NotFoundError.
func (f *Forest) Rule(ctx context.Context, r tree.Rule) (*tree.Rule, error) {
	t, err := f.Tree(ctx, r.TreeID)
	if err != nil {
		return nil, err
	}
	if found := t.Rule(r.Level, r.Order); found != nil {
		return found, nil
	}
	return nil, noRule(&r)
}
