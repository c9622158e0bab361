package main

// ofTreeBounds are memory and time that one series or tree takes from the others, series that come
// back from a tree that was deleted, and branches that are short without a word.
var ofTreeBounds = []mutant{
	{
		name: "trials-beyond-what-was-reserved",
		file: "gateway/extra/trees/treeroutes/series.go",
		old:  "		if left -= trialBytes(trial); left < 0 {\n",
		new:  "		if left -= trialBytes(trial); left < -1<<40 {\n",
		test: "gateway/extra TestTree_testMemory",
	}, {
		name: "tree-names-without-end", file: "gateway/extra/trees/tree/place.go",
		old: "		w.size += nameBytes + len(w.name)\n", new: "		w.size += len(w.name) / MaxPath\n",
		test: "TestPlace_memory",
	}, {
		name: "tree-rules-that-yield-none-without-end", file: "gateway/extra/trees/tree/place.go",
		old: "			w.size += nameBytes + len(notMatched[len(notMatched)-1])\n", new: "",
		test: "TestPlace_memory",
	}, {
		name: "tree-messages-without-end", file: "gateway/extra/trees/tree/place.go",
		old: "	if !w.explain || w.told > MaxMessages {\n", new: "	if !w.explain {\n",
		test: "TestPlace_memory",
	}, {
		name: "tree-refusal-untold", file: "gateway/extra/trees/tree/place.go",
		old: "	w.told = 0 // what became", new: "	// what became",
		test: "TestPlace_memory",
	}, {
		name: "treesync-by-trees-of-its-start", file: "gateway/extra/trees/forest/sync.go",
		old: "	if trees != s.trees {\n", new: "	if s.trees == nil {\n",
		test: "TestSync_treeChanges",
	}, {
		name: "treesync-knows-branches-that-are-gone", file: "gateway/extra/trees/forest/delete.go",
		old: "	f.changed() // also after an error: a treesync forgets which branches are there\n", new: "",
		test: "TestSync_treeChanges",
	}, {
		name: "treesync-reads-no-trees-of-others", file: "gateway/extra/trees/forest/sync.go",
		old: "	f.current.Store(nil)\n", new: "",
		test: "TestSync_othersTrees",
	}, {
		name: "tree-on-what-is-left",
		file: "gateway/extra/trees/forest/trees.go",
		old:  "			largest = id // ids ascend\n			if t != nil {\n				trees++\n",
		new:  "			if t != nil {\n				largest = id // ids ascend\n				trees++\n",
		test: "TestCreate_leftovers",
	}, {
		name: "tree-behind-a-stray-key", file: "gateway/extra/trees/forest/trees.go",
		old: "			start = append(bytes.Clone(r.Key), 0)", new: "			_ = append(bytes.Clone(r.Key), 0)",
		test: "TestTrees_strayKeys",
	}, {
		name: "tree-takes-all-work", file: "gateway/extra/trees/forest/add.go",
		old: "left-share*(len(trees.all)-1-i)", new: "left-0*share*i",
		test: "TestAdd_work",
	}, {
		name: "tree-work-is-free", file: "gateway/extra/trees/forest/add.go",
		old: "		left -= p.Work\n", new: "",
		test: "TestAdd_work",
	}, {
		name: "tree-added-after-the-end", file: "gateway/extra/trees/forest/add.go",
		old: "		if err := ctx.Err(); err != nil {\n			return n, err\n		}\n", new: "",
		test: "TestAdd_ends",
	}, {
		name: "tree-short-while-series-wait",
		file: "gateway/extra/trees/treeroutes/handlers.go",
		old:  "	err := h.FlushMeta(ctx)\n	switch {\n	case err == nil:\n",
		new:  "	err := h.FlushMeta(ctx)\n	switch {\n	case err == nil || ctx.Err() == nil:\n",
		test: "TestHandlers_seriesWait",
	},
}
