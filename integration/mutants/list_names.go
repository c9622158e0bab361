package main

// ofNames are faults of names that change, and of what is remembered of them.
var ofNames = []mutant{
	{
		name: "names-of-refused-lines-get-uids",
		file: "gateway/api/telnet/lookahead.go",
		old:  "	if err != nil || c.parseNames(p, metric, tags) != nil {",
		new:  "	if c.parseNames(p, metric, tags) != nil && err != nil {",
		test: "TestPrepareNames",
	}, {
		name: "names-of-refused-points-get-uids",
		file: "gateway/api/httpapi/putroutes/store.go",
		old:  "			if err != nil {\n				p = nil\n			}\n			if !yield",
		new:  "			_ = err\n			if !yield",
		test: "gateway TestPut_newSeries",
	}, {
		name: "cells-behind-the-first-not-sought", file: "pushdown/store/pebble/atomic.go",
		old: "if sought < 0 || it.Valid() && compareKeys(it.Key(), k.key) < 0 {", new: "if sought < 0 {",
		test: "TestAtomic_many",
	}, {
		name: "names-of-refused-import-lines-get-uids", file: "gateway/extra/tools/sink.go",
		old: "			if err != nil {\n				p = nil\n			}\n", new: "			_ = err\n",
		test: "TestImport_newNames",
	}, {
		name: "exported-name-read-as-an-expression", file: "gateway/extra/tools/export.go",
		old: "	q.Queries[0].Metric = name\n", new: "	_ = name\n",
		test: "TestExport_names",
	}, {
		name: "names-assigned-over-a-change", file: "gateway/uid/assign.go",
		old: "strconv.FormatUint(d.Generation(), 36)", new: "strconv.FormatUint(0, 36)",
		test: "TestAssign_notSharedOverChange",
	}, {
		name: "names-held-for-nobody", file: "gateway/write/batch.go",
		old: "if outdated := b.release(); err", new: "if outdated := error(nil); err",
		test: "TestWriter_holds",
	}, {
		name: "names-of-before-the-batch-written", file: "gateway/write/batch.go",
		old: "return s.generation >= b.generation", new: "return true",
		test: "TestWriter_generations",
	}, {
		name: "names-of-series-never-old", file: "gateway/write/seriestable.go",
		old: "	if st.generation != generation {\n", new: "	if st.generation > generation {\n",
		test: "TestSeries_generations",
	}, {
		name: "series-of-a-spelling-with-the-same-hash", file: "gateway/write/seriestable.go",
		old: "e != nil && viewOf(textOf(e)) == key {", new: "e != nil && len(textOf(e)) == len(key) {",
		test: "TestSeriesTable",
	}, {
		name: "series-slot-read-twice",
		file: "gateway/write/seriestable.go",
		old:  "	_, slot, e := st.probe(hash, key)\n	if e == nil {\n		return false\n	}\n",
		new: "	at, slot, e := st.probe(hash, key)\n	if e == nil {\n		at, _, _ = st.probe(hash, key)\n" +
			"		slot = st.index[at].Load()\n		if e = st.entryOf(slot); slot == 0 || e == nil {\n" +
			"			return false\n		}\n	}\n",
		test: "TestSeriesTable_concurrent",
	}, {
		name: "series-of-older-names-kept", file: "gateway/write/seriestable.go",
		old: "		s.startEmpty(k.generation)\n", new: "		st.generation = k.generation\n",
		test: "TestSeriesTable",
	}, {
		name: "series-places-of-gone-entries-kept",
		file: "gateway/write/seriestable.go",
		old:  "	if i >= uint64(len(st.chunks)) {\n		return nil\n",
		new:  "	if i >= uint64(len(st.chunks)) {\n		i = 0\n",
		test: "TestSeriesTable",
	}, {
		name: "series-found-often-gone", file: "gateway/write/seriestable.go",
		old: "if word.Load()&bit != 0 && len(e)", new: "if word.Load()&bit > 1<<31 && len(e)",
		test: "TestSeriesTable_keepsFound",
	}, {
		name: "series-without-bound",
		file: "gateway/write/seriestable.go",
		old:  "(len(st.chunks)+1)*chunkBytes+len(st.index)*slotBytes > s.maxBytes {",
		new:  "(len(st.chunks)+1)*chunkBytes+len(st.index)*slotBytes > 100*s.maxBytes {",
		test: "TestSeriesTable_keepsFound",
	}, {
		name: "names-resolved-before-the-generation-is-read",
		file: "gateway/write/series.go",
		old:  "		k.generation, k.names = generation, namesOf{text: key}\n",
		new:  "		k.generation, k.names = s.cfg.Names.Generation(), namesOf{text: key}\n",
		test: "TestSeries_generations",
	}, {
		name: "names-changed-elsewhere-kept",
		file: "gateway/uid/watch.go",
		old:  "		if string(inTable[name]) != string(u) {\n",
		new:  "		if inTable[name] != nil && string(inTable[name]) != string(u) {\n",
		test: "TestCheck",
	}, {
		name: "names-changed-in-silence", file: "gateway/uid/rename.go",
		old: "	if err := d.Tell(ctx); err != nil {\n", new: "	if err := error(nil); err != nil {\n",
		test: "TestWatch",
	}, {
		name: "names-late-acknowledged", file: "gateway/uid/generation.go",
		old: "time.Since(began) > longWrite", new: "time.Since(began) > 1000*longWrite",
		test: "TestHold_late",
	}, {
		name: "names-weigh-nothing", file: "gateway/uid/dictionary.go",
		old: "return entryBytes + uint32(len(k.name))", new: "return 1",
		test: "TestDictionary_bytes",
	}, {
		name: "spellings-of-any-length-kept", file: "gateway/write/series.go",
		old: "	if len(spelling) > 2*len(k.names.text)+spellingRoom {\n", new: "	if len(spelling) == 0 {\n",
		test: "TestSeries_bytes",
	}, {
		name: "rows-of-a-block-read-on-and-on", file: "pushdown/store/rows.go",
		old: "seen%lookEvery == 0 && ctx.Err() != nil", new: "seen < 0",
		test: "TestRows_cancelledWithinBlock",
	}, {
		name: "newest-points-looked-for-in-vain",
		file: "gateway/metadata/last/last.go",
		old: "left -= rowsPerRead {\n		if err := ctx.Err(); err != nil {\n" +
			"			return nil, err\n		}\n",
		new:  "left -= rowsPerRead {\n",
		test: "TestFind_clientLeaves",
	}, {
		name: "lookup-without-an-end", file: "gateway/api/httpapi/metaroutes/lookup.go",
		old: "	ctx, cancel := h.timeout(r)\n", new: "	ctx, cancel := r.Context(), func() {}\n",
		test: "integration/story TestStories/lookups_timeout",
	},
}
