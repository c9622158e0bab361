package docsite

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"downpour/gateway/api/openapi"
)

//go:embed reference.html
var referenceText string

// reference is one rendering of the API's description.
type reference struct {
	doc    *openapi.Document
	page   Page
	out    *rendered
	faults []string
}

// chapter is a tag with its operations.
type chapter struct {
	ID, Name   string
	About      template.HTML
	Operations []operationShown
}

// operationShown is an operation as the page has it.
type operationShown struct {
	ID, Method, Path string
	Summary, About   template.HTML
	Scope            string
	Parameters       []parameterShown
	Body             template.HTML
	Example          string
	Answers          []answerShown
}

type parameterShown struct {
	Name, In string
	Required bool
	Type     template.HTML
	About    template.HTML
}

type answerShown struct {
	Status string
	About  template.HTML
	Bodies []bodyShown
}

type bodyShown struct {
	Kind   string
	Schema template.HTML
}

// schemaShown is a named schema as the page has it.
type schemaShown struct {
	ID, Name string
	Fields   template.HTML
}

// reference renders the description of the HTTP API.
func (b *builder) reference(p Page, source []byte) (*rendered, error) {
	doc, err := openapi.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	r := &reference{doc: doc, page: p, out: &rendered{title: doc.Info.Title}}
	r.heading(1, doc.Info.Title, headingID(doc.Info.Title))
	shown := struct {
		Title    string
		About    template.HTML
		Chapters []chapter
		Schemas  []schemaShown
	}{Title: doc.Info.Title, About: r.words(doc.Info.Description)}
	r.section(headingID(doc.Info.Title), doc.Info.Title, unmarked(doc.Info.Description))

	for _, tag := range doc.Tags {
		shown.Chapters = append(shown.Chapters, r.chapter(tag))
	}
	r.heading(2, "Schemas", "schemas")
	for _, s := range doc.Components.Schemas {
		id := schemaID(s.Name)
		r.heading(3, s.Name, id)
		fields, err := r.schema(s.JSON)
		if err != nil {
			r.faults = append(r.faults, fmt.Sprintf("schema %s: %v", s.Name, err))
		}
		shown.Schemas = append(shown.Schemas, schemaShown{id, s.Name, fields})
		r.section(id, s.Name, wordsOf(fields))
	}
	if len(r.faults) > 0 {
		return nil, fmt.Errorf("%s: %s", p.Path, strings.Join(r.faults, "\n"))
	}

	t, err := template.New("reference").Parse(referenceText)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if err := t.Execute(&body, shown); err != nil {
		return nil, err
	}
	r.out.body = body.Bytes()
	return r.out, nil
}

// chapter returns a tag with all its operations.
func (r *reference) chapter(tag openapi.Tag) chapter {
	c := chapter{ID: headingID(tag.Name), Name: tag.Name, About: r.words(tag.Description)}
	r.heading(2, tag.Name, c.ID)
	for _, p := range r.doc.Paths {
		for _, o := range p.Operations {
			if slices.Contains(o.Tags, tag.Name) {
				c.Operations = append(c.Operations, r.operation(p.Path, o))
			}
		}
	}
	return c
}

// places are where a request has its parameters, in the words of the page.
var places = map[string]string{"query": "address", "path": "path", "header": "header"}

// operation returns one operation as it is shown.
func (r *reference) operation(path string, o openapi.Operation) operationShown {
	method := strings.ToUpper(o.Method)
	shown := operationShown{
		ID:      headingID(method + " " + path),
		Method:  method,
		Path:    path,
		Summary: r.words(o.Summary),
		About:   r.words(o.Description),
		Scope:   o.Scope,
	}
	name := method + " " + path
	r.heading(3, name, shown.ID)
	found := []string{unmarked(o.Summary), unmarked(o.Description)}

	for _, p := range o.Parameters {
		p = r.doc.Parameter(p)
		kind := r.schemaOrFault(name, p.Schema)
		shown.Parameters = append(shown.Parameters, parameterShown{
			p.Name, places[p.In], p.Required, kind, r.words(p.Description),
		})
		found = append(found, p.Name, unmarked(p.Description))
	}
	if o.RequestBody != nil {
		for _, kind := range slices.Sorted(maps.Keys(o.RequestBody.Content)) {
			media := o.RequestBody.Content[kind]
			shown.Body = r.schemaOrFault(name, media.Schema)
			shown.Example = indented(media.Example)
			found = append(found, wordsOf(shown.Body))
		}
	}
	for _, status := range statuses(o.Responses) {
		answer := r.doc.Response(o.Responses[status])
		a := answerShown{Status: status, About: r.words(answer.Description)}
		for _, kind := range slices.Sorted(maps.Keys(answer.Content)) {
			a.Bodies = append(a.Bodies, bodyShown{kind, r.schemaOrFault(name, answer.Content[kind].Schema)})
		}
		shown.Answers = append(shown.Answers, a)
		found = append(found, unmarked(answer.Description))
	}
	r.section(shown.ID, name, strings.Join(found, " "))
	return shown
}

// indented returns an example with a line for each member, "" for none.
func indented(example json.RawMessage) string {
	var out bytes.Buffer
	if len(example) == 0 || json.Indent(&out, example, "", "  ") != nil {
		return "" // the whole document has been parsed already
	}
	return out.String()
}

// statuses returns the statuses of answers in order, and the one for all others last.
func statuses(answers map[string]openapi.Response) []string {
	all := slices.Sorted(maps.Keys(answers))
	if i := slices.Index(all, "default"); i >= 0 {
		all = append(slices.Delete(all, i, i+1), "default")
	}
	return all
}

// heading adds a heading to the page.
func (r *reference) heading(level int, words, id string) {
	if slices.Contains(r.out.ids, id) {
		r.faults = append(r.faults, fmt.Sprintf("two headings have the id %s", id))
	}
	r.out.ids = append(r.out.ids, id)
	r.out.headings = append(r.out.headings, heading{level, id, words})
}

// section adds what the search finds.
func (r *reference) section(id, heading, words string) {
	r.out.sections = append(r.out.sections, section{id, heading, strings.Join(strings.Fields(words), " ")})
}

// unmarked is a description without the marks of Markdown.
func unmarked(description string) string {
	source := []byte(description)
	return plain(markdown.Parser().Parse(text.NewReader(source)), source)
}

// words renders a description, which is Markdown. Its links into the site begin with /docs/.
func (r *reference) words(description string) template.HTML {
	source := []byte(description)
	doc := markdown.Parser().Parse(text.NewReader(source))
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		l, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		place, inSite := strings.CutPrefix(string(l.Destination), address(""))
		if !inSite {
			r.faults = append(r.faults, fmt.Sprintf("a link leads to %s, want a page below %s", l.Destination,
				address("")))
			return ast.WalkContinue, nil
		}
		slug, id, _ := strings.Cut(place, "#")
		r.out.links = append(r.out.links, link{slug, id})
		return ast.WalkContinue, nil
	})
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, doc); err != nil {
		r.faults = append(r.faults, err.Error())
	}
	made := strings.TrimSpace(out.String())
	// A lone paragraph stands in a cell or behind other words.
	if inner, ok := strings.CutPrefix(made, "<p>"); ok && strings.Count(made, "<p>") == 1 {
		made = strings.TrimSuffix(inner, "</p>")
	}
	return template.HTML(made) // of our own document; goldmark leaves raw HTML out
}
