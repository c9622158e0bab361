package docsite

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"

	"downpour/gateway/api/openapi"
)

// Files are the files of the site by name.
type Files map[string][]byte

// builder builds a site of one source tree.
type builder struct {
	tree   fs.FS
	topics []Topic
	pages  map[string]Page
}

// Build builds the site of all pages of Topics, which are in tree. The error lists what is wrong
// with them, such as dead links.
func Build(tree fs.FS) (Files, error) { return build(tree, Topics()) }

// build is Build with some topics.
func build(tree fs.FS, topics []Topic) (Files, error) {
	b := &builder{tree: tree, topics: topics, pages: pages(topics)}
	done, err := b.renderAll()
	if err != nil {
		return nil, err
	}
	if err := b.checkLinks(done); err != nil {
		return nil, err
	}
	return b.files(done)
}

// renderAll renders all pages, by slug.
func (b *builder) renderAll() (map[string]*rendered, error) {
	done := map[string]*rendered{}
	var errs []error
	for _, t := range b.topics {
		for _, p := range t.Pages {
			source, err := b.read(p.Path)
			if err != nil {
				errs = append(errs, fmt.Errorf("topic %s: %w", t.Name, err))
				continue
			}
			if done[p.Slug] != nil {
				errs = append(errs, fmt.Errorf("topic %s: the page %s is there twice", t.Name, p.Slug))
			}
			r, err := b.renderPage(p, source)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			done[p.Slug] = r
		}
	}
	return done, errors.Join(errs...)
}

// read returns a page. The API's description is in its package.
func (b *builder) read(name string) ([]byte, error) {
	if name == apiPath {
		return openapi.JSON, nil
	}
	return fs.ReadFile(b.tree, name)
}

func (b *builder) renderPage(p Page, source []byte) (*rendered, error) {
	if path.Ext(p.Path) == ".json" {
		return b.reference(p, source)
	}
	return b.render(p, source)
}

// checkLinks returns an error for each link to a page or a heading that is not there.
func (b *builder) checkLinks(done map[string]*rendered) error {
	var errs []error
	for _, p := range b.inOrder() {
		for _, l := range done[p.Slug].links {
			target := done[l.slug]
			if target == nil {
				errs = append(errs, fmt.Errorf("%s: a link leads to the page %s, which is not there", p.Path, l.slug))
			} else if l.id != "" && !slices.Contains(target.ids, l.id) {
				errs = append(errs, fmt.Errorf("%s: a link leads to #%s of %s, which has no such heading", p.Path, l.id,
					l.slug))
			}
		}
	}
	return errors.Join(errs...)
}

// inOrder returns all pages in the order of the index.
func (b *builder) inOrder() (all []Page) {
	for _, t := range b.topics {
		all = append(all, t.Pages...)
	}
	return all
}

//go:embed page.html
var pageText string

// pageTemplate is the frame of all pages.
var pageTemplate = template.Must(template.New("page").Parse(pageText))

// frame is what the template shows.
type frame struct {
	Title    string
	Slug     string // "" for the index
	Body     template.HTML
	Topics   []topicShown
	Headings []heading // of the second level
	Source   string    // the path of the file
}

// topicShown is a topic in the list of pages, and on the index.
type topicShown struct {
	Name, About string
	Pages       []pageShown
}

// pageShown is a page in such a list.
type pageShown struct {
	Title, About, Address string
	Here                  bool
}

// files returns all files of the site.
func (b *builder) files(done map[string]*rendered) (Files, error) {
	out := Files{}
	for _, p := range b.inOrder() {
		r := done[p.Slug]
		var second []heading
		for _, h := range r.headings {
			if h.Level == 2 {
				second = append(second, h)
			}
		}
		// The body is made of our own pages, in which raw HTML is refused.
		page, err := b.inFrame(done, frame{
			Title:    r.title,
			Slug:     p.Slug,
			Body:     template.HTML(r.body),
			Headings: second,
			Source:   p.Path,
		})
		if err != nil {
			return nil, err
		}
		out[p.Slug+".html"] = page
	}

	index, err := b.inFrame(done, frame{Title: "Documentation"})
	if err != nil {
		return nil, err
	}
	out["index.html"] = index
	out["search.json"], err = b.searchIndex(done)
	return out, err
}

// inFrame puts a page into the frame that all have.
func (b *builder) inFrame(done map[string]*rendered, f frame) ([]byte, error) {
	for _, t := range b.topics {
		shown := topicShown{Name: t.Name, About: t.About}
		for _, p := range t.Pages {
			shown.Pages = append(shown.Pages,
				pageShown{cmp.Or(short[p.Slug], done[p.Slug].title), p.About, address(p.Slug), p.Slug == f.Slug})
		}
		f.Topics = append(f.Topics, shown)
	}
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, f); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Source, err)
	}
	return page.Bytes(), nil
}

// found is a section as the page's search reads it. The names are short, because there are many.
type found struct {
	Address string `json:"a"`
	Page    string `json:"p"`           // title
	Heading string `json:"h,omitempty"` // if it is not the page's title
	Text    string `json:"t"`
}

// searchIndex returns all sections of all pages, one a line.
func (b *builder) searchIndex(done map[string]*rendered) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("[")
	first := true
	for _, p := range b.inOrder() {
		r := done[p.Slug]
		for _, s := range r.sections {
			f := found{Address: address(p.Slug), Page: r.title, Text: s.text}
			if s.heading != r.title {
				f.Heading = s.heading
				f.Address += "#" + s.id
			}
			line, err := json.Marshal(f)
			if err != nil {
				return nil, err
			}
			if !first {
				out.WriteString(",")
			}
			first = false
			out.WriteString("\n")
			out.Write(line)
		}
	}
	out.WriteString("\n]\n")
	return out.Bytes(), nil
}
