package main

// ofExpressions are faults of expressions and their tables.
var ofExpressions = []mutant{
	{
		name: "division-by-zero-is-infinite",
		file: "gateway/query/expression/arithmetic.go",
		old:  "		if r == 0 {\n			return 0\n		}\n		return l / r\n",
		new:  "		return l / r\n",
		test: "TestEvaluate",
	}, {
		name: "constants-of-64-bits", file: "gateway/query/expression/lexer.go",
		old: "strconv.FormatFloat(short, 'g', -1, 32)", new: "strconv.FormatFloat(short, 'g', -1, 64)",
		test: "TestEvaluate",
	}, {
		name: "inexact-integers-computed", file: "gateway/query/expression/arithmetic.go",
		old: "if math.Abs(out) > maxExact {", new: "if math.Abs(out) > 2*maxExact {",
		test: "TestEvaluate_errors",
	}, {
		name: "block-read-from-the-first-row", file: "gateway/query/expression/evaluate.go",
		old: "ev.columns[n.index][ev.from : ev.from+ev.rows]", new: "ev.columns[n.index][:ev.rows]",
		test: "TestColumnsArePoints",
	}, {
		name: "nesting-not-bounded",
		file: "gateway/query/expression/parse.go",
		old:  "	x, err := p.unary()\n	return &unary",
		new:  "	p.depth = 0\n	x, err := p.unary()\n	return &unary",
		test: "TestParse_errors",
	}, {
		name: "nan-is-a-point", file: "gateway/query/exp/steps.go",
		old: "if v := s.at(at); !math.IsNaN(v) {", new: "if v := s.at(at); i >= 0 || math.IsNaN(v) {",
		test: "TestTables_union",
	}, {
		name: "missing-series-filled",
		file: "gateway/query/exp/evaluate.go",
		old:  "			columns[i] = none\n",
		new: "			columns[i] = none\n			for k := range none {\n" +
			"				none[k] = t.variables[i].fill\n			}\n",
		test: "TestTablesArePoints",
	}, {
		name: "intersection-steps-through-all", file: "gateway/query/exp/join.go",
		old: "if j.Operator != \"intersection\" || stepped(", new: "if j.Operator != \"\" || stepped(",
		test: "TestTables_intersection",
	}, {
		name: "replaced-series-not-stepped",
		file: "gateway/query/exp/join.go",
		old:  "	if !slices.Contains(members, -1) {\n		return true\n	}\n",
		new:  "	if !slices.Contains(members, -1) {\n		return members[i] == s\n	}\n",
		test: "TestTables_replaced",
	}, {
		name: "comparison-is-no-number", file: "gateway/query/expression/arithmetic.go",
		old: "	case lk.isFloating() || rk.isFloating():\n", new: "	case lk.isFloating() && rk.isFloating():\n",
		test: "TestEvaluate",
	}, {
		name: "column-not-reserved",
		file: "gateway/query/exp/evaluate.go",
		old: "		if err := c.bounds.begin(int64(len(t.Times)) * 8); err != nil {\n" +
			"			return t, err\n		}\n",
		new:  "",
		test: "TestTables_bounds",
	}, {
		name: "order-of-insertion-for-hash-order", file: "gateway/query/javahash/javahash.go",
		old: "cmp.Compare(slotOf(key(a), slots), slotOf(key(b), slots))", new: "cmp.Compare(slots, slots)",
		test: "gateway TestExpConformance",
	}, {
		name: "expressions-trimmed-before-they-are-computed", file: "gateway/query/engine/resolve.go",
		old: "if q.Untrimmed {", new: "if q.Untrimmed && len(out) < 0 {",
		test: "gateway TestExpConformance",
	}, {
		name: "null-becomes-zero", file: "encoding/batch/outputs.go",
		old: "				o.values[i].appendNulls(1)\n", new: "				o.values[i].append(0)\n",
		test: "TestOutputWriter",
	},
}
