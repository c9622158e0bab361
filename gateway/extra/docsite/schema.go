package docsite

import (
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// schemaJSON is what a schema of the API's description may have. Anything else is an error, so that
// nothing is left out of the page.
type schemaJSON struct {
	Ref         string          `json:"$ref"`
	Description string          `json:"description"`
	Type        json.RawMessage `json:"type"` // a name, or a list of names
	Enum        []string        `json:"enum"`
	Const       any             `json:"const"`
	Pattern     string          `json:"pattern"`
	MediaType   string          `json:"contentMediaType"`

	AnyOf []json.RawMessage `json:"anyOf"`
	OneOf []json.RawMessage `json:"oneOf"`

	Items       json.RawMessage   `json:"items"`
	PrefixItems []json.RawMessage `json:"prefixItems"`
	MinItems    int               `json:"minItems"`

	Properties  fields                     `json:"properties"`
	Patterns    map[string]json.RawMessage `json:"patternProperties"`
	Additional  json.RawMessage            `json:"additionalProperties"`
	Required    []string                   `json:"required"`
	Unevaluated json.RawMessage            `json:"unevaluatedProperties"`
}

// fields are the properties of an object in their order.
type fields []field

type field struct {
	name   string
	schema json.RawMessage
}

// UnmarshalJSON reads the properties in their order.
func (f *fields) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var one field
		one.name = name.(string)
		if err := d.Decode(&one.schema); err != nil {
			return err
		}
		*f = append(*f, one)
	}
	return nil
}

// schemaID is the id of the heading of a named schema.
func schemaID(name string) string { return "schema-" + strings.ToLower(name) }

// schemaOrFault is schema of a place. An error there is noted as a fault of the document.
func (r *reference) schemaOrFault(place string, text json.RawMessage) template.HTML {
	made, err := r.schema(text)
	if err != nil {
		r.faults = append(r.faults, fmt.Sprintf("%s: %v", place, err))
	}
	return made
}

// schema returns a schema in words: "list of Point", and the fields of an object as a list.
func (r *reference) schema(text json.RawMessage) (template.HTML, error) {
	if len(text) == 0 || string(text) == "{}" || string(text) == "true" {
		return "any", nil
	}
	var s schemaJSON
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return "", fmt.Errorf("schema %.80s: %w", text, err)
	}

	words, err := r.kindOf(&s)
	if err != nil {
		return "", err
	}
	if s.Description != "" {
		words += ": " + r.words(s.Description)
	}
	list, err := r.fieldList(&s)
	return words + list, err
}

// kindOf returns what kind of value a schema describes.
func (r *reference) kindOf(s *schemaJSON) (template.HTML, error) {
	switch {
	case s.Ref != "":
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		r.out.links = append(r.out.links, link{r.page.Slug, schemaID(name)})
		return template.HTML(fmt.Sprintf(`<a href="#%s">%s</a>`, html.EscapeString(schemaID(name)),
			html.EscapeString(name))), nil
	case len(s.AnyOf)+len(s.OneOf) > 0:
		return r.joined(" or ", append(s.AnyOf, s.OneOf...))
	case s.Const != nil:
		return template.HTML(html.EscapeString(fmt.Sprint(s.Const))), nil
	case len(s.Enum) > 0:
		return template.HTML("<code>" + strings.Join(s.Enum, "</code> or <code>") + "</code>"), nil
	case len(s.PrefixItems) > 0:
		inner, err := r.joined(", ", s.PrefixItems)
		return "list [" + inner + "]", err
	}

	names, err := typeNames(s.Type)
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "any", nil
	}
	words := strings.Join(names, " or ")
	var of json.RawMessage
	switch {
	case slices.Contains(names, "list") && s.Items != nil:
		of = s.Items
	case slices.Contains(names, "object") && len(s.Patterns) > 0:
		of = s.Patterns[slices.Sorted(maps.Keys(s.Patterns))[0]]
	case slices.Contains(names, "object") && len(s.Additional) > 0 && s.Additional[0] == '{':
		of = s.Additional
	}
	if of == nil {
		return template.HTML(html.EscapeString(words)), nil
	}
	inner, err := r.schema(of)
	return template.HTML(html.EscapeString(words)) + " of " + inner, err
}

// typeNames returns the names of types as the page has them.
func typeNames(text json.RawMessage) ([]string, error) {
	var names []string
	if len(text) == 0 {
		return nil, nil
	}
	if text[0] != '[' {
		text = json.RawMessage("[" + string(text) + "]")
	}
	if err := json.Unmarshal(text, &names); err != nil {
		return nil, fmt.Errorf("type %s: %w", text, err)
	}
	said := map[string]string{"array": "list", "string": "text"}
	for i, n := range names {
		if w := said[n]; w != "" {
			names[i] = w
		}
	}
	return names, nil
}

// joined returns several schemas with a word between.
func (r *reference) joined(between string, all []json.RawMessage) (template.HTML, error) {
	var parts []string
	for _, one := range all {
		words, err := r.schema(one)
		if err != nil {
			return "", err
		}
		parts = append(parts, string(words))
	}
	return template.HTML(strings.Join(parts, between)), nil
}

// fieldList returns the fields of an object as a list.
func (r *reference) fieldList(s *schemaJSON) (template.HTML, error) {
	if len(s.Properties) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteString("<ul>\n")
	for _, f := range s.Properties {
		words, err := r.schema(f.schema)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
		needed := ""
		if slices.Contains(s.Required, f.name) {
			needed = ", always"
		}
		fmt.Fprintf(&b, "<li><code>%s</code>%s: %s</li>\n", html.EscapeString(f.name), needed, words)
	}
	b.WriteString("</ul>\n")
	return template.HTML(b.String()), nil
}

var tag = regexp.MustCompile(`<[^>]*>`)

// wordsOf returns the text of HTML that this package has made.
func wordsOf(made template.HTML) string {
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(string(made), " "))), " ")
}
