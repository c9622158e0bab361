package main

// ofColumns are faults by which a scan for some columns returns others, or misses cells.
var ofColumns = []mutant{
	{
		name: "rollups-with-annotations-of-another-part",
		file: "pushdown/operator/part.go",
		old:  "		return o.addRollups(f, sp, r, key.BaseTime)\n",
		new: "		o.arena.addAnnotations(sp, o.decoder.Annotations())\n" +
			"		return o.addRollups(f, sp, r, key.BaseTime)\n",
		test: "TestRollup_afterOthers",
	}, {
		name: "data-time-of-rollups-overlooked",
		file: "pushdown/resultcache/timestamps.go",
		old:  "		inside := offset - int64(index)*r.plan.Rollup.Layout.Interval*1000\n",
		new:  "		inside := offset - int64(index)*r.plan.Rollup.Layout.Interval\n",
		test: "TestOpen_dataTimeOfOthers",
	}, {
		name: "data-time-of-histograms-overlooked", file: "pushdown/resultcache/timestamps.go",
		old: "		return int64(at) == offset, true\n", new: "		return int64(at) == offset+1, true\n",
		test: "TestOpen_dataTimeOfOthers",
	}, {
		name: "column-range-taken-for-a-prefix",
		file: "pushdown/store/hbase/filter.go",
		old:  "	return len(r.Start) > 0 && bytes.Equal(r.Stop, encoding.PrefixEnd(r.Start))\n",
		new:  "	return len(r.Start) > 0 && (len(r.Stop) > 0 || encoding.PrefixEnd(r.Start) == nil)\n",
		test: "TestScan_columns",
	}, {
		name: "column-ranges-beside-prefixes-lost", file: "pushdown/store/hbase/filter.go",
		old: "	case len(prefixes) == len(columns):\n", new: "	case len(prefixes) > 0:\n",
		test: "TestScan_columns",
	}, {
		name: "column-in-the-first-range-alone",
		file: "pushdown/store/pebble/get.go",
		old:  "		if c.ranges[i].Contains(qualifier) {\n			return true\n		}\n",
		new:  "		return c.ranges[i].Contains(qualifier)\n",
		test: "TestConformance",
	}, {
		name: "rollup-id-and-name-overlap",
		file: "pushdown/operator/rollup.go",
		old:  "		if len(last.Stop) == 0 || bytes.Compare(r.Start, last.Stop) < 0 {\n",
		new:  "		if len(last.Stop) == 0 {\n",
		test: "TestRollup_columns",
	}, {
		name: "rollup-columns-no-prefixes", file: "pushdown/operator/rollup.go", // a list of filters, which is slow
		old: "bytes.Compare(r.Start, last.Stop) < 0 {", new: "bytes.Compare(r.Start, last.Stop) <= 0 {",
		test: "TestRollup_columns",
	},
}
