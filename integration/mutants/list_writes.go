package main

// ofWrites are faults of writes to HBase: what replies are believed, what a slow
// server is sent, and what is told at the end.
var ofWrites = []mutant{
	{
		name: "index-of-nobody-taken", file: "pushdown/store/hbase/multi.go", // ends the process
		old: " || index >= int64(len(actions)) {", new: " {",
		test: "TestMulti_lies",
	}, {
		name: "two-results-of-one-taken", file: "pushdown/store/hbase/multi.go",
		old: "		if a.answered {\n			return nil,", new: "		if false {\n			return nil,",
		test: "TestMulti_lies",
	}, {
		name: "results-of-a-failed-region-taken",
		file: "pushdown/store/hbase/multi.go",
		old:  "	if e := r.GetException(); e != nil {",
		new:  "	if e := r.GetException(); e != nil && len(r.GetResultOrException()) == 0 {",
		test: "TestMulti_lies",
	}, {
		name: "slow-server-given-up",
		file: "pushdown/store/hbase/calls/silence.go", // and retried
		old: "dead := p.answersNewConnection(c.Addr) && p.pause(p.cfg.ProbeAfter) && " +
			"c.liveness.probeUnansweredFor() > 0",
		new:  "dead := c.liveness.probeUnansweredFor() > 0",
		test: "pushdown/store/hbase TestSlow_serverPaused",
	}, {
		name: "moved-region-waited-for", file: "pushdown/store/hbase/calls/silence.go",
		old: "if !p.probeSilent(c) || moved != nil || call.Moved == nil {", new: "if !p.probeSilent(c) || true {",
		test: "pushdown/store/hbase TestSlow_pausedServerLosesRegions",
	}, {
		name: "cell-in-the-place-of-an-earlier-value", file: "gateway/write/cells.go",
		old: "last[string(e.qualifier)] == i {", new: "last[string(e.qualifier)] >= i {",
		test: "TestWriter_forms",
	}, {
		name: "busy-region-asked-by-all", file: "pushdown/store/hbase/window.go",
		old: "case p.delay > 0 && (p.inFlight > 0 || now.Before(p.nextAttempt)):", new: "case false:",
		test: "TestPacer",
	}, {
		name: "written-behind-an-abandoned-write", file: "pushdown/store/hbase/window.go",
		old: "	case p.abandoned > 0:\n", new: "	case false:\n",
		test: "TestSlow_abandonedWrite",
	}, {
		name: "cells-beyond-the-frame", file: "pushdown/store/hbase/calls/wire.go", // ends the process, in gohbase
		old: "int64(cells) > int64(size-n) {", new: "int64(cells) > 1<<40 {",
		test: "TestWire_frames",
	}, {
		name: "rows-of-before-taken", file: "pushdown/store/hbase/scan.go",
		old: "if bytes.Compare(rows[0].Key, s.resumeKey) < 0 || ", new: "if ",
		test: "TestScan_otherRows",
	}, {
		name: "flush-not-waited-for", file: "gateway/write/writer.go",
		old: "c.Timeout = 2 * time.Minute", new: "c.Timeout = 30 * time.Second",
		test: "TestWriter_flushingRegions",
	},
}
