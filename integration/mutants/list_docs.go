package main

// ofTheDocs are faults of the documentation's site: links that lead nowhere, pages that are missing or
// old, names that no program has.
var ofTheDocs = []mutant{
	{
		name: "links-to-headings-are-not-looked-at",
		file: "gateway/extra/docsite/build.go",
		old:  "l.id != \"\" && !slices.Contains(target.ids, l.id)",
		new:  "l.id == \"x\" && !slices.Contains(target.ids, l.id)",
		test: "TestBuild_faults",
	}, {
		name: "headings-have-ids-of-their-own", file: "gateway/extra/docsite/markdown.go",
		old: "			return unicode.ToLower(r)\n", new: "			return r\n",
		test: "TestHeadingID",
	}, {
		name: "equal-headings-have-one-id", file: "gateway/extra/docsite/markdown.go",
		old: "slices.Contains(r.ids, id); i++ {", new: "slices.Contains(r.ids, id+\"x\"); i++ {",
		test: "TestBuild",
	}, {
		name: "search-begins-at-the-second-section", file: "gateway/extra/docsite/build.go",
		old: "				f.Address += \"#\" + s.id\n", new: "				f.Address += \"\"\n",
		test: "TestBuild",
	}, {
		name: "pages-below-docs-are-no-pages", file: "gateway/extra/docsite/extra.go",
		old: `map[string]http.Handler{"docs": h}`, new: "nil",
		test: "gateway/extra TestDocs_served",
	}, {
		name: "documentation-wants-a-token", file: "gateway/extra/docsite/extra.go",
		old: `{"docs": {Serve:`, new: `{"docs": {Scope: 1, Serve:`,
		test: "gateway/extra TestDoors",
	},
}
