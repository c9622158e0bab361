package docsite

import (
	"bytes"
	"fmt"
	"html"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// pictures is the folder of the pictures that pages show; the gateway serves it with the site.
const pictures = "gateway/web/docs/"

// rendered is a page of Markdown as HTML.
type rendered struct {
	title    string
	body     []byte
	headings []heading // of the first three levels, in order
	sections []section
	ids      []string // of all headings
	links    []link   // to other places of the site
	sources  []string // files of the source that it names
}

// heading is a heading of a page.
type heading struct {
	Level    int
	ID, Text string
}

// section is the text below one heading, as the search finds it.
type section struct {
	id, heading, text string
}

// link is a link to a place of the site: a page by its slug, and perhaps a heading.
type link struct {
	slug, id string
}

// markdown is the parser and the renderer of all pages. Tables scroll by themselves, and cells have no
// style attribute, which the pages' policy would refuse.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))),
)

// shownHTML is the HTML that pages may have, because Markdown has no sign for it.
var shownHTML = map[string]bool{"<sup>": true, "</sup>": true}

// render renders the Markdown of a page. The error lists all faults.
func (b *builder) render(p Page, source []byte) (*rendered, error) {
	doc := markdown.Parser().Parse(text.NewReader(source))
	out := &rendered{}
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(p.Path+": "+format, args...)) }

	var comments []ast.Node
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			out.add(n, source)
		case *ast.Link:
			if err := b.lead(p, n, out); err != nil {
				fault("%v", err)
			}
		case *ast.Image:
			if err := b.show(p, n); err != nil {
				fault("%v", err)
			}
		case *ast.HTMLBlock:
			if !bytes.HasPrefix(bytes.TrimSpace(n.Lines().Value(source)), []byte("<!--")) {
				fault("has HTML, which is not shown: %.60q", n.Lines().Value(source))
			}
			comments = append(comments, n)
		case *ast.RawHTML:
			if shownHTML[string(n.Segments.Value(source))] {
				break
			}
			fault("has HTML, which is not shown: %.60q", n.Segments.Value(source))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	if out.title == "" {
		fault("has no heading of the first level")
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(faults, "\n"))
	}

	for _, c := range comments {
		c.Parent().RemoveChild(c.Parent(), c)
	}
	out.sections = sectionsOf(doc, source, out.title)
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, source, doc); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	out.body = body.Bytes()
	return out, nil
}

// add gives a heading its id and adds it to the headings of the page.
func (r *rendered) add(n *ast.Heading, source []byte) {
	words := plain(n, source)
	id := headingID(words)
	for i, same := 1, id; slices.Contains(r.ids, id); i++ {
		id = fmt.Sprintf("%s-%d", same, i)
	}
	r.ids = append(r.ids, id)
	n.SetAttributeString("id", []byte(id))
	if n.Level == 1 && r.title == "" {
		r.title = words
	}
	if n.Level <= 3 {
		r.headings = append(r.headings, heading{n.Level, id, words})
	}
}

// headingID returns the id of a heading: the one by which links in the repository name it, too. Letters
// are small, blanks are hyphens, and of other characters only - and _ stay.
func headingID(words string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(words))
}

// lead makes a link of the repository one of the site. A file that is no page is named instead: the
// site does not have it.
func (b *builder) lead(p Page, n *ast.Link, out *rendered) error {
	to := string(n.Destination)
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return nil
	}
	file, id, _ := strings.Cut(to, "#")
	target := p
	if file != "" {
		place := path.Join(path.Dir(p.Path), file)
		var ok bool
		if target, ok = b.pageOf(place); !ok {
			if !fs.ValidPath(place) {
				return fmt.Errorf("the link %s leads to %s, which is not in the source", to, place)
			}
			out.sources = append(out.sources, place)
			name(n, place)
			return nil
		}
	}
	out.links = append(out.links, link{target.Slug, id})
	n.Destination = []byte(address(target.Slug))
	if id != "" {
		n.Destination = []byte(address(target.Slug) + "#" + id)
	}
	return nil
}

// pageOf returns the page of a file, or of a folder that has a README.
func (b *builder) pageOf(place string) (Page, bool) {
	p, ok := b.pages[place]
	if !ok {
		p, ok = b.pages[path.Join(place, "README.md")]
	}
	return p, ok
}

// name puts the path of a file of the source behind a link's text, in place of the link.
func name(n *ast.Link, place string) {
	n.Destination = nil
	n.SetAttributeString("source", []byte(place))
}

// show makes the address of a picture one of the site.
func (b *builder) show(p Page, n *ast.Image) error {
	place := path.Join(path.Dir(p.Path), string(n.Destination))
	if !strings.HasPrefix(place, pictures) || path.Ext(place) != ".png" {
		return fmt.Errorf("shows %s, want a .png in %s", place, pictures)
	}
	if _, err := fs.Stat(b.tree, place); err != nil {
		return fmt.Errorf("shows %s, which is not there", place)
	}
	n.Destination = []byte(address(strings.TrimPrefix(place, pictures)))
	return nil
}

// address is where the gateway serves a file of the site.
func address(name string) string { return "/docs/" + name }

// plain returns the text of a node without markup. Lines are joined by blanks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	write(&b, n, source)
	return strings.Join(strings.Fields(b.String()), " ")
}

func write(b *strings.Builder, n ast.Node, source []byte) {
	switch t := n.(type) {
	case *ast.Text:
		b.Write(t.Value(source))
		if t.SoftLineBreak() || t.HardLineBreak() {
			b.WriteByte(' ')
		}
	case *ast.String:
		b.Write(t.Value)
	case *ast.AutoLink:
		b.Write(t.URL(source))
	case *ast.CodeBlock:
		b.Write(t.Lines().Value(source))
	case *ast.FencedCodeBlock:
		b.Write(t.Lines().Value(source))
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		write(b, c, source)
	}
	if n.Type() == ast.TypeBlock { // a cell, a paragraph, an item
		b.WriteByte(' ')
	}
}

// sectionsOf cuts a document at its headings of the first three levels.
func sectionsOf(doc ast.Node, source []byte, title string) (out []section) {
	at := section{heading: title}
	var words []string
	end := func() {
		at.text = strings.Join(words, " ")
		if at.text != "" || at.id != "" {
			out = append(out, at)
		}
		words = nil
	}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok || h.Level > 3 {
			words = append(words, plain(n, source))
			continue
		}
		end()
		id, _ := h.AttributeString("id")
		at = section{id: string(id.([]byte)), heading: plain(h, source)}
	}
	end()
	return out
}

// blocks renders what scrolls by itself on a narrow screen, so that the keyboard reaches it, and links
// to files of the source.
type blocks struct{}

// RegisterFuncs is called by goldmark.
func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(tables.KindTable, renderTable)
	r.Register(tables.KindTableCell, renderCell)
	r.Register(ast.KindFencedCodeBlock, renderCode)
	r.Register(ast.KindCodeBlock, renderCode)
	r.Register(ast.KindLink, renderLink)
	r.Register(ast.KindRawHTML, renderHTML)
}

func renderTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		w.WriteString(`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>` + "\n")
	} else {
		w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}

// renderCell renders a cell of a table. A heading without words is none.
func renderCell(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "td"
	if n.Parent().Kind() == tables.KindTableHeader && n.ChildCount() > 0 {
		tag = "th"
	}
	switch {
	case !entering:
		w.WriteString("</" + tag + ">\n")
	case tag == "th":
		w.WriteString(`<th scope="col">`)
	default:
		w.WriteString("<td>")
	}
	return ast.WalkContinue, nil
}

func renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		w.WriteString(`<pre tabindex="0"><code>`)
		w.WriteString(html.EscapeString(string(n.Lines().Value(source))))
		w.WriteString("</code></pre>\n")
	}
	return ast.WalkSkipChildren, nil
}

// renderHTML passes on what shownHTML allows.
func renderHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if raw := n.(*ast.RawHTML).Segments.Value(source); entering && shownHTML[string(raw)] {
		w.Write(raw)
	}
	return ast.WalkSkipChildren, nil
}

func renderLink(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	place, ofSource := n.AttributeString("source")
	switch {
	case ofSource && !entering:
		w.WriteString(` <span class="source">(in the source: <code>` + html.EscapeString(string(place.([]byte))) +
			"</code>)</span>")
	case ofSource:
	case entering:
		w.WriteString(`<a href="` + html.EscapeString(string(n.(*ast.Link).Destination)) + `">`)
	default:
		w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}
