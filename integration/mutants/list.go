package main

// mutants are the faults that tests must catch. Each is what a careless change
// could do, and would make an answer wrong or short, or lose a point.
var mutants = []mutant{
	// The scan of HBase.
	{
		name: "no-next-call-seq", file: "pushdown/store/hbase/scanrequest.go",
		old: "		NextCallSeq:             proto.Uint64(s.server.seq),\n", new: "",
		test: "TestScan_cutEveryReply",
	}, {
		name: "boundary-row-read-twice", file: "pushdown/store/hbase/scan.go",
		old: "rows[len(rows)-1].Key...), 0)", new: "rows[len(rows)-1].Key...))",
		test: "TestScan_manyLostReplies",
	}, {
		name: "resume-from-the-start", file: "pushdown/store/hbase/scan.go",
		old: "	s.at = append(append(make([]byte, 0, 64), rows[len(rows)-1].Key...), 0)\n", new: "",
		test: "TestScan_manyLostReplies",
	}, {
		name: "half-row-kept", file: "pushdown/store/hbase/scan.go", // of a reply before the fault
		old: "	s.rows.reset()\n", new: "",
		test: "TestScan_cutEveryReply",
	}, {
		name: "half-row-delivered", file: "pushdown/store/hbase/assembler.go",
		old: "	if a.held {\n		n--\n	}\n", new: "",
		test: "TestAssembler_anyPieces",
	}, {
		name: "heartbeat-taken-for-the-end", file: "pushdown/store/hbase/scan.go",
		old: "	return scan, region\n", new: "	return scan || len(response.CellsPerResult) == 0, region\n",
		test: "TestScan_cutEveryReply",
	}, {
		name: "hole-in-meta-ignored", file: "pushdown/store/hbase/regions.go",
		old: "if i > 0 && len(end) == 0 || !bytes.Equal(l.start, end) {", new: "if i < 0 {",
		test: "TestCheckChain",
	}, {
		name: "moved-region-remembered", file: "pushdown/store/hbase/store.go",
		old: "	case relocate, reopen, unknown:\n		st.regions.forget(loc)\n", new: "	case relocate, reopen, unknown:\n",
		test: "TestScan_changesBetweenBlocks",
	}, {
		name: "any-byte-but-newline", file: "pushdown/store/hbase/trie.go", // keys with 0A, 0D, 85 are lost
		old: `b.WriteString("(?s)^")`, new: `b.WriteString("^")`,
		test: "TestPattern",
	},
	// Seeking.
	{
		name: "unknown-heads-not-read", file: "pushdown/seek/heads.go",
		old: "if encoding.UIDNumber(h.tagk) > 1 {", new: "if encoding.UIDNumber(h.tagk) > 1<<40 {",
		test: "pushdown/operator TestSeek_changesBetweenAsks",
	}, {
		name: "known-heads-make-the-rest-unread", file: "pushdown/seek/heads.go", // the empty head lost
		old: "stems: [][]byte{tagk}}", new: "stems: nil}",
		test: "TestHeads_anyRows",
	}, {
		name: "ranges-of-one-tag-forgotten", file: "pushdown/seek/heads.go",
		old: "return len(b) == 0 || len(a) != 0 && bytes.Compare(a, b) <= 0", new: "return len(b) == 0 || len(a) != 0 && bytes.Compare(a, b) >= 0",
		test: "TestIntersect",
	},
	// Operators.
	{
		name: "filter-not-checked-again", file: "pushdown/operator/admit.go",
		old: "if !ok || !admitsValue(p, value) {", new: "if !ok && admitsValue(p, value) {",
		test: "TestStrict_superset",
	}, {
		name: "bucket-cut-at-a-part", file: "pushdown/operator/fold.go",
		old: "	if f.ends {\n", new: "	if true {\n",
		test: "TestFusedIsUnfused",
	}, {
		name: "memory-bound-ignored", file: "gateway/exec/try.go",
		old: "limit > 0 && held > limit", new: "limit > 0 && held < 0",
		test: "TestRun_errors",
	}, {
		name: "last-batch-forgotten", file: "pushdown/operator/strict.go",
		old: "	o.emit.flush(&o.arena)\n	o.done = true\n", new: "	o.done = true\n",
		test: "TestStrict_hourly",
	},
	// Between gateway and pushdown server.
	{
		name: "end-of-stream-error-ignored", file: "pushdown/client/remote.go",
		old: "	if err != nil {\n		return r.client.named(err)\n	}\n	shipped", new: "	_ = err\n	shipped",
		test: "pushdown TestClient_incomplete",
	}, {
		name: "lost-batch-not-counted", file: "pushdown/wire/wire.go",
		old: "if c.Batches != batches {", new: "if false {",
		test: "TestComplete",
	}, {
		name: "other-layout-served", file: "pushdown/service.go",
		old: "got != want {", new: "got == want+`.` {",
		test: "pushdown TestDoGet_errors",
	}, {
		name: "unknown-field-ignored", file: "encoding/scanplan/codec.go",
		old: "	dec.DisallowUnknownFields()\n", new: "",
		test: "TestParseTicket_refusesText",
	}, {
		name: "silent-server-waited-for", file: "pushdown/client/remote.go",
		old: "func() { r.cancel(wire.ErrStalled) }", new: "func() {}",
		test: "pushdown TestDoGet_stall",
	}, {
		name: "length-in-a-message-believed", file: "pushdown/client/client.go",
		old: "	opts.Mem = capped{opts.Mem}\n", new: "",
		test: "pushdown TestClient_badBatches",
	}, {
		name: "borders-in-a-message-believed", file: "pushdown/client/sound.go",
		old: "if b < last || int(b) > length {", new: "if b < last && int(b) > length {",
		test: "pushdown TestClient_badBatches",
	}, {
		name: "waiting-part-kept-at-the-end", file: "pushdown/shares.go",
		old: "	case <-stop:\n", new: "	case <-chan struct{}(nil):\n",
		test: "pushdown TestServe_drainRefuses",
	},
	// States of groups.
	{
		name: "edge-dropped", file: "pushdown/operator/grouping.go",
		old: "if !g.ends && s.Time[last]", new: "if len(row.Spans) < 0 && s.Time[last]",
		test: "gateway/exec TestCutting_oneAnswer",
	}, {
		name: "gap-added-out-of-order", file: "gateway/merge/join.go",
		old: "exact := j.sharing.AnyOrder || gap && j.sharing.Gaps; !exact", new: "exact := true; !exact",
		test: "gateway/exec TestCutting_oneAnswer",
	}, {
		name: "salts-added-up", file: "gateway/merge/join.go",
		old: "j.owners[p.at+i] > 1 && !j.sharing.InOrder", new: "j.owners[p.at+i] > 2 && !j.sharing.InOrder",
		test: "gateway/merge TestStates_several",
	}, {
		name: "proof-of-a-sum-ignored", file: "gateway/merge/join.go",
		old: "return !j.sum.Exact(i)", new: "return false",
		test: "gateway/exec TestCutting_oneAnswer",
	}, {
		name: "proof-without-late-values", file: "pushdown/aggregate/partial.go",
		old: "	if p.Low != nil {\n		f.prove(p, at, values)\n	}\n", new: "",
		test: "TestProof_exact",
	}, {
		name: "highest-bit-for-the-lowest", file: "pushdown/aggregate/proof.go",
		old: "	p.Low[i] = min(p.Low[i], o.Low[k])\n", new: "	p.Low[i] = max(p.Low[i], o.Low[k])\n",
		test: "TestProof_anyOrder",
	}, {
		name: "bound-sent-too-small", file: "pushdown/aggregate/proof.go",
		old: "math.Ldexp(1, int(high[i]))", new: "math.Ldexp(1, int(high[i])-1)",
		test: "TestProof_shipped",
	}, {
		name: "several-addends-taken-for-one", file: "pushdown/aggregate/proof.go",
		old: "case len(low) == 0 && live > 1:", new: "case len(low) == 0 && live > 2:",
		test: "TestProof_shipped",
	}, {
		name: "one-bit-too-many", file: "pushdown/aggregate/proof.go",
		old: "bound < math.Ldexp(1, 53+int(low))", new: "bound <= math.Ldexp(1, 53+int(low))",
		test: "TestProof_exact",
	}, {
		name: "infinite-out-of-order", file: "gateway/merge/join.go",
		old: "if j.m.doubt || j.inexact { // it may be finite in span order", new: "if j.m.doubt { // it may be finite in span order",
		test: "TestStates_proof",
	}, {
		name: "hopeless-sums-read-to-the-end", file: "gateway/merge/states.go",
		old: "if !m.rounding && m.hopeless(p, string(row.Group)) {", new: "if false {",
		test: "TestStates_proof",
	}, {
		name: "unknown-edge-taken-for-zero", file: "gateway/merge/join.go",
		old: "if earlier && !a.knowsLast || later && !b.knowsFirst {", new: "if earlier && a.last < 0 || later && b.first < 0 {",
		test: "gateway/exec TestCutting_oneAnswer",
	}, {
		name: "absent-series-not-filled", file: "gateway/merge/join.go",
		old: "n -= g.listed", new: "n = 0",
		test: "gateway/exec TestCutting_oneAnswer",
	}, {
		name: "sign-of-zero-ignored", file: "gateway/merge/join.go",
		old: "} else if j.fn.Tie(j.sum, k, v) {", new: "} else if v > 0 && j.fn.Tie(j.sum, k, v) {",
		test: "gateway/exec TestCutting_oneAnswer",
	}, {
		name: "refusal-of-the-merge-ignored", file: "gateway/ask/plan.go",
		old: "errors.Is(err, merge.ErrOrder) ||", new: "errors.Is(err, merge.ErrOrder) && p.Plan == nil ||",
		test: "gateway TestMode_fallsBack",
	},
	{
		name: "uneven-times-sent-as-even", file: "encoding/batch/even.go",
		old: "		if t-times[i+1] != step {\n", new: "		if t-times[i+1] != step && i == 0 {\n",
		test: "TestSeries_roundTrip",
	}, {
		name: "byte-counted-from-the-wrong-name", file: "encoding/batch/names.go",
		old:  "			if i < len(n) {\n				dst = append(dst, n[i]-last)\n				last = n[i]\n			}\n",
		new:  "			if i < len(n) {\n				dst = append(dst, n[i]-last)\n				last = n[i]\n			} else {\n				last = 0\n			}\n",
		test: "TestNames_roundTrip",
	},
	// The ledger.
	{
		name: "attempt-merged-twice", file: "gateway/exec/ledger.go",
		old: "		l.holes = slices.Replace(l.holes, i, i+1, rest...)\n		return true\n", new: "		if len(rest) == 0 {\n			l.holes = slices.Delete(l.holes, i, i+1)\n		}\n		return true\n",
		test: "TestLedger",
	}, {
		name: "interval-accepted-unwanted", file: "gateway/exec/ledger.go",
		old: "|| !stopsBy(r.Stop, h.Stop)", new: "",
		test: "TestLedger",
	}, {
		name: "hole-not-issued-again", file: "gateway/exec/ledger.go",
		old: "return len(l.holes) == 0 }", new: "return len(l.holes) <= 1 }",
		test: "TestRun_chaos",
	}, {
		name: "failed-attempt-kept", file: "gateway/exec/run.go", // its late batches are accepted
		old: "	if a.err == nil {\n		return r.accept(a)\n", new: "	if a.err == nil || len(a.records) > 0 {\n		return r.accept(a)\n",
		test: "TestRun_chaos",
	}, {
		name: "missing-ranges-not-told", file: "gateway/exec/errors.go",
		old: "	return &MissingError{Ranges: missing, Err: failure}\n", new: "	return nil\n",
		test: "TestRun_missing",
	}, {
		name: "salt-bucket-left-out", file: "gateway/compile/compile.go",
		old: "	for b := range s.Buckets() {\n", new: "	for b := range max(1, s.Buckets()-1) {\n",
		test: "TestGolden",
	}, {
		name: "cut-loses-a-row", file: "gateway/exec/cut.go",
		old: "		start = b\n", new: "		start = append(bytes.Clone(b), 0)\n",
		test: "TestCut_property",
	}, {
		name: "cut-by-size-behind-the-end", file: "gateway/exec/weights.go",
		old: " || float64(h) >= to", new: "",
		test: "TestCut_bytesFromBorders",
	}, {
		name: "refused-plan-ends-the-query", file: "gateway/exec/errors.go", // a server of another version
		old: "		return inProcess\n", new: "		return inProcess || true\n",
		test: "TestRun_chaos",
	},
	// Merge and arithmetic.
	{
		name: "parts-not-sorted", file: "gateway/merge/merger.go",
		old: "	if !sorted {\n", new: "	if false {\n",
		test: "TestConformance",
	}, {
		name: "spans-not-sorted", file: "gateway/merge/merger.go",
		old: "	slices.SortFunc(spans, func(a, b *span) int { return bytes.Compare(a.id, b.id) })\n", new: "	slices.SortFunc(spans, func(a, b *span) int { return bytes.Compare(b.id, a.id) })\n",
		test: "TestConformance",
	}, {
		name: "overlap-not-noticed", file: "gateway/merge/columns.go",
		old: "if ok && first <= last {", new: "if false {",
		test: "TestOverlap",
	}, {
		name: "fill-dropped", file: "gateway/merge/columns.go",
		old: "	if b.Fills() {\n", new: "	if false {\n",
		test: "TestConformance",
	}, {
		name: "zero-filled-with-nan", file: "pushdown/downsample/fill.go",
		old: "	if b.fill == scanplan.FillZero {\n", new: "	if false {\n",
		test: "gateway/merge TestConformance",
	}, {
		name: "line-begun-at-the-wrong-end", file: "pushdown/aggregate/interpolate.go",
		old: "out[i] = y0 + float64(x-x0)*dy/dx", new: "out[i] = y1 + float64(x-x0)*dy/dx",
		test: "TestGroupEqualsNaive",
	},
	// Points and their bytes.
	{
		name: "duplicate-kept", file: "encoding/rowmerge.go",
		old: "			continue\n", new: "",
		test: "TestRowDecoder_duplicates",
	}, {
		name: "older-duplicate-wins", file: "encoding/rowmerge.go",
		old: "return cmp.Compare(b.stamp, a.stamp)", new: "return cmp.Compare(a.stamp, b.stamp)",
		test: "TestRowDecoder_equalsModel",
	}, {
		name: "integer-typed-as-float", file: "gateway/put/point.go",
		old: "	q.Float, q.Width = p.Value.Float, len(value)\n", new: "	q.Float, q.Width = true, len(value)\n",
		test: "TestWriter_forms",
	}, {
		name: "ack-before-sync", file: "pushdown/store/pebble/write.go",
		old: "	if err := b.SyncWait(); err != nil {\n", new: "	if err := error(nil); err != nil {\n",
		test: "TestCrash",
	}, {
		name: "ack-before-write", file: "gateway/put/writer.go",
		old: "	err := w.write(r)\n	b.finish(err)\n", new: "	b.finish(nil)\n	err := w.write(r)\n",
		test: "TestWriter_acknowledgedAfterwards",
	}, {
		name: "row-guessed-unchecked", file: "gateway/put/rows.go",
		old: " || r.list[at].series != s || r.list[at].base != base", new: "",
		test: "TestWriter_rows",
	}, {
		name: "failed-batch-overwritten", file: "gateway/put/writer.go", // while a late call still sends it
		old: "	if err != nil {\n		return\n	}\n	r.reset()\n", new: "	r.reset()\n",
		test: "TestWriter_failedMemory",
	}, {
		name: "member-twice-read", file: "gateway/internal/httpapi/putscan.go",
		old: " || seen&(1<<member) != 0", new: "",
		test: "TestScanPoints_left",
	}, {
		name: "failed-write-acknowledged", file: "gateway/put/writer.go",
		old: "Apply(ctx, w.cfg.Table, mutations); err != nil {\n		return err\n", new: "Apply(ctx, w.cfg.Table, mutations); err != nil {\n		return nil\n",
		test: "TestWriter_failure",
	}, {
		name: "name-before-its-number", file: "gateway/uid/assign.go", // a forward mapping that a crash leaves alone
		old: "	ok, err := s.CompareAndPut(ctx, table, reverse, nil, row)\n",
		new: "	early := store.CellKey{Row: row, Family: encoding.FamilyID, Qualifier: kind.Qualifier()}\n" +
			"	if _, err := s.CompareAndPut(ctx, table, early, nil, u); err != nil {\n		return nil, err\n	}\n" +
			"	ok, err := s.CompareAndPut(ctx, table, reverse, nil, row)\n",
		test: "TestAssign_crash",
	},
	{
		name: "log-left-to-lie", file: "pushdown/store/pebble/idle.go",
		old: "(many || large) &&", new: "(many || large && many) &&",
		test: "TestIdleFlush",
	}, {
		name: "bundle-overtakes-itself", file: "gateway/put/bundle.go",
		old: "	if b.last != nil {\n", new: "	if false {\n",
		test: "TestBundle_pushesBack",
	}, {
		name: "uid-told-before-sync", file: "gateway/uid/assign.go",
		old: "(store.Stager); ok && err == nil {", new: "(store.Stager); ok && false {",
		test: "TestAssign_durable",
	}, {
		name: "sync-without-waiting", file: "pushdown/store/pebble/staged.go",
		old: "pebble.Sync)", new: "pebble.NoSync)",
		test: "TestStaged_sync",
	},
	// Live queries.
	{
		name: "final-before-the-gap", file: "gateway/live/standing/final.go", // which the next point fills
		old: "	return min(open, c.Time[before-1]+t.interval())\n", new: "	return open\n",
		test: "gateway/live/follow TestFinalBefore",
	}, {
		name: "one-rate-is-settled", file: "gateway/live/standing/final.go",
		old: "before < 2:", new: "before < 1:",
		test: "gateway/live/follow TestFinalBefore_values",
	}, {
		name: "merged-cells-unnoticed", file: "gateway/live/follow/kept.go",
		old: "				return row, true, true\n", new: "				return row, changed, false\n",
		test: "TestSplice",
	}, {
		name: "late-point-in-a-kept-row", file: "gateway/live/follow/poller.go",
		old: "		p.looked = now\n		p.rewind()\n", new: "		p.looked = now\n",
		test: "TestPoller_late",
	}, {
		name: "idle-store-not-looked-at", file: "gateway/live/follow/probe.go",
		old: "		return unreadable(ctx, err)\n", new: "		return nil\n",
		test: "TestProbe",
	},
}
