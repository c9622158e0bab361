package docsite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"downpour"
)

// longPage is how many words a page has that nobody reads from its beginning to its end.
const longPage = 5000

// A long page begins with a table of what is where: links to all its headings of the second level, in their order.
func TestPages_contents(t *testing.T) {
	b := &builder{tree: downpour.Pages, topics: Topics(), pages: pages(Topics())}
	long := 0
	for _, p := range b.inOrder() {
		if p.Path == apiPath {
			continue
		}
		source, err := b.read(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		if len(strings.Fields(string(source))) < longPage {
			continue
		}
		long++
		if d := cmp.Diff(secondLevel(t, b, p, source), firstTable(source)); d != "" {
			t.Errorf("%s: the table of what is where, -headings +links:\n%s", p.Path, d)
		}
	}
	if long < 4 {
		t.Errorf("only %d pages have %d words or more, want 4", long, longPage)
	}
}

// secondLevel are the ids of a page's headings of the second level.
func secondLevel(t *testing.T, b *builder, p Page, source []byte) (ids []string) {
	r, err := b.render(p, source)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range r.headings {
		if h.Level == 2 {
			ids = append(ids, h.ID)
		}
	}
	return ids
}

// firstTable are the places of the page itself to which the table leads that is its first, and comes before its
// headings of the second level. None if there is no such table.
func firstTable(source []byte) (ids []string) {
	for n := markdown.Parser().Parse(text.NewReader(source)).FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 2 {
			return nil
		}
		if n.Kind() != tables.KindTable {
			continue
		}
		_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if l, ok := n.(*ast.Link); ok && entering {
				if id, here := strings.CutPrefix(string(l.Destination), "#"); here {
					ids = append(ids, id)
				}
			}
			return ast.WalkContinue, nil
		})
		return ids
	}
	return nil
}
