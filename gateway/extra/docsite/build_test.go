package docsite

import (
	"strings"
	"testing"
	"testing/fstest"
)

// small builds a site of two pages, a.md and docs/b.md, and looks for what they name of the source.
func small(a, b string) (Files, error) {
	tree := fstest.MapFS{
		"a.md": {Data: []byte(a)}, "docs/b.md": {Data: []byte(b)}, "docs/x.go": {Data: []byte("package x\n")},
		"gateway/web/docs/page.png": {Data: []byte("PNG")},
	}
	topics := []Topic{{"T", "about", []Page{{"first", "a.md", "the first"}, {"second", "docs/b.md", "the second"}}}}
	files, err := build(tree, topics)
	if err == nil {
		err = checkSources(tree, tree, topics)
	}
	return files, err
}

func TestBuild(t *testing.T) {
	files, err := small("# One & all\n\nSee [b](docs/b.md#two-words), [x](docs/x.go), <http://host/>.\n\n"+
		"![A page](gateway/web/docs/page.png)\n\n## `code` here\n\ntext\n",
		"# B\n\n## Two words\n\n| a | |\n|---|---|\n| 1 | <2 |\n\n    code < 1\n\n[back](../a.md)\n\n## Two words\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"first.html": {"<title>One &amp; all · Downpour</title>", `<a href="/docs/second#two-words">b</a>`,
			`x <span class="source">(in the source: <code>docs/x.go</code>)</span>`, `<a href="http://host/">`,
			`<img src="/docs/page.png" alt="A page">`, `<h2 id="code-here">`, `<a href="#code-here">code here</a>`,
			`aria-current="page">One &amp; all</a>`},
		"second.html": {`<th scope="col">a</th>`, "<td></td>", "<td>&lt;2</td>",
			`<pre tabindex="0"><code>code &lt; 1`, `<a href="/docs/first">back</a>`, `<h2 id="two-words-1">`},
		"index.html": {`<dt><a href="/docs/first">One &amp; all</a></dt>`, "<dd>the second</dd>"},
		"search.json": {`{"a":"/docs/first","p":"One \u0026 all","t":"See b, x, http://host/. A page"}`,
			`{"a":"/docs/first#code-here","p":"One \u0026 all","h":"code here","t":"text"}`,
			`{"a":"/docs/second#two-words","p":"B","h":"Two words","t":"a 1 \u003c2 code \u003c 1 back"}`},
	} {
		for _, want := range wants {
			if !strings.Contains(string(files[name]), want) {
				t.Errorf("%s lacks %s:\n%s", name, want, files[name])
			}
		}
	}
	if strings.Contains(string(files["second.html"]), "style=") {
		t.Error("a page has a style inside, which its policy refuses")
	}
}

// What would be wrong on the site is an error of the build, which names the page.
func TestBuild_faults(t *testing.T) {
	f := func(a, want string) {
		t.Helper()
		if _, err := small(a, "# B\n\n## Here\n"); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "a.md") {
			t.Errorf("%q: got %v, want %q", a, err, want)
		}
	}
	f("# A\n\n[x](docs/gone.md)\n", "leads to docs/gone.md, which is not there")
	f("# A\n\n[x](docs/b.md#gone)\n", "leads to #gone of second")
	f("# A\n\n[x](#gone)\n", "leads to #gone of first")
	f("# A\n\n![x](docs/gone.png)\n", "want a .png in gateway/web/docs/")
	f("# A\n\n![x](gateway/web/docs/gone.png)\n", "which is not there")
	f("# A\n\n<div>x</div>\n", "has HTML")
	f("# A\n\nx <b>y</b>\n", "has HTML")
	f("## A\n", "no heading of the first level")
	if _, err := small("# A\n\n<!-- a comment -->\n\n[x](docs/b.md#here)\n", "# B\n\n## Here\n"); err != nil {
		t.Error(err)
	}
	if _, err := build(fstest.MapFS{}, []Topic{{"T", "", []Page{{"a", "a.md", ""}}}}); err == nil ||
		!strings.Contains(err.Error(), "a.md") {
		t.Errorf("a page that is not there: got %v", err)
	}
	double := fstest.MapFS{"a.md": {Data: []byte("# A\n")}}
	if _, err := build(double, []Topic{{"T", "", []Page{{"a", "a.md", ""}, {"a", "a.md", ""}}}}); err == nil ||
		!strings.Contains(err.Error(), "twice") {
		t.Errorf("two pages of one address: got %v", err)
	}
}

// The ids of headings are those by which links in the repository name them.
func TestHeadingID(t *testing.T) {
	for words, want := range map[string]string{
		"Known errors of OpenTSDB, and how to be rid of them": "known-errors-of-opentsdb-and-how-to-be-rid-of-them",
		"Options of /api/query/gexp":                          "options-of-apiquerygexp",
		"uid fsck, metasync":                                  "uid-fsck-metasync",
		"A_b-c  d":                                            "a_b-c--d",
		"Größe":                                               "größe",
	} {
		if got := headingID(words); got != want {
			t.Errorf("%q: got %q, want %q", words, got, want)
		}
	}
}

// A schema of the API's description that the page cannot show is an error.
func TestReference_faults(t *testing.T) {
	f := func(schema, about, want string) {
		t.Helper()
		doc := `{"info":{"title":"T"},"tags":[{"name":"x","description":"` + about +
			`"}],"paths":{},"components":{"schemas":{"S":` + schema + `}}}`
		tree := fstest.MapFS{"api.json": {Data: []byte(doc)}}
		_, err := build(tree, []Topic{{"T", "", []Page{{"api", "api.json", ""}}}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", schema, err, want)
		}
	}
	f(`{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"]}`, "", "")
	f(`{"allOf":[]}`, "", "allOf")
	f(`{"$ref":"#/components/schemas/Gone"}`, "", "#schema-gone")
	f(`{}`, "[x](elsewhere)", "want a page below /docs/")
	f(`{}`, "[x](/docs/api#gone)", "#gone")
}
