package main

// ofTrees are series in wrong branches or in none, changes that are lost, and trees that
// come back.
var ofTrees = []mutant{
	{
		name: "tree-parts-at-the-end",
		file: "gateway/extra/trees/tree/place.go",
		old:  "	for len(w.parts) > 0 && w.parts[len(w.parts)-1] == \"\" {\n",
		new:  "	for len(w.parts) > 1 && w.parts[len(w.parts)-1] == \"\" {\n",
		test: "TestPlace_split",
	}, {
		name: "tree-branch-in-a-branch-of-its-name", file: "gateway/extra/trees/tree/place.go",
		old: "		case parent == current:\n", new: "		case parent == current && parent == Root:\n",
		test: "TestJoin_equalsRecursion",
	}, {
		name: "tree-rules-without-end", file: "gateway/extra/trees/tree/place.go",
		old: "	if w.work+work > w.most {\n", new: "	if w.work+work < 0 {\n",
		test: "TestPlace_bounds",
	}, {
		name: "tree-separator-cuts-everywhere", file: "gateway/extra/trees/tree/compile.go",
		old: "	case mayMatchEmpty(out.separator):\n", new: "	case r.Separator == \"\":\n",
		test: "TestRule_Validate",
	}, {
		name: "tree-not-matched-elsewhere", file: "gateway/extra/trees/tree/key.go",
		old: "append(Key(id), 2)", new: "append(Key(id), 3)",
		test: "gateway/extra TestTreeConformance",
	}, {
		name: "tree-collision-is-no-collision", file: "gateway/extra/trees/forest/add.go",
		old: "		case leaf.TSUID == encoding.UID(tsuid).String():\n", new: "		case leaf.TSUID != \"\":\n",
		test: "TestAdd",
	}, {
		name: "tree-written-blindly", file: "gateway/extra/trees/forest/forest.go",
		old: "	return f.cfg.Store.CompareAndPut(ctx, f.cfg.TreeTable, at, old, value)\n",
		new: "	_, err := f.cfg.Store.CompareAndPut(ctx, f.cfg.TreeTable, at, old, value)\n	return true, " +
			"errors.Join(err, f.apply(ctx, []store.Mutation{mutation(store.Put, key, qualifier, value)}))\n",
		test: "TestForest_compareAndSet",
	}, {
		name: "tree-branches-behind-deep-ones",
		file: "gateway/extra/trees/forest/branches.go",
		old:  "					from = encoding.PrefixEnd(r.Key[:width])\n",
		new:  "					from = encoding.PrefixEnd(r.Key[:len(b.Key)])\n",
		test: "TestBranch_deep",
	}, {
		name: "tree-changed-and-not-read-again", file: "gateway/extra/trees/forest/snapshot.go",
		old: "	if s != nil && s.changes == f.changes.Load() && ", new: "	if s != nil && ",
		test: "TestAdd_foreignRule",
	}, {
		name: "tree-never-read-again", file: "gateway/extra/trees/forest/snapshot.go",
		old: " && f.cfg.Now().Sub(s.at).Abs() < ReloadAfter {", new: " {",
		test: "TestAdd_reload",
	}, {
		name: "series-of-a-failed-write-forgotten", file: "gateway/metadata/meta/record.go",
		old: "			rest = append(rest, part...)\n", new: "",
		test: "TestTracker_property",
	}, {
		name: "series-counted-and-never-described", file: "gateway/metadata/meta/record.go",
		old: "sums[i] == s.points || s.again", new: "sums[i] == s.points",
		test: "TestTracker_property",
	}, {
		name: "tree-series-told-once", file: "gateway/metadata/meta/record.go",
		old: "(made || s.again)", new: "made",
		test: "TestTracker_describedLater",
	}, {
		name: "tree-rules-for-readers", file: "gateway/extra/trees/treeroutes/rule.go",
		old: "	default:\n		return errVerb\n	}\n	if err := h.mayChange(w, r); err != nil {\n" +
			"		return err\n	}\n",
		new:  "	default:\n		return errVerb\n	}\n",
		test: "gateway/extra TestDoors",
	},
}
