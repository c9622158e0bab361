// Package dashboard keeps dashboards: pages of panels, each a readable JSON document. It says
// which documents it takes, and keeps their versions in a table of our own.
//
//	{
//	  "form": 1,
//	  "title": "Web servers",
//	  "range": {"from": "1h-ago", "to": ""},
//	  "variables": [{"name": "host", "metric": "proc.stat.cpu", "tagk": "host", "all": true}],
//	  "panels": [
//	    {"id": "cpu", "type": "lines", "title": "CPU of $host", "place": {"x": 0, "y": 0, "w": 6, "h": 8},
//	     "queries": ["avg:auto:rate:proc.stat.cpu{host=$host}"]}
//	  ]
//	}
//
// A document is stored and given back byte for byte. Fields and types of panels that are not
// listed here are kept, so that a later release may add some.
package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// What a document may have at most.
const (
	Form      = 1       // the version of the form that this release writes
	MaxBytes  = 1 << 20 // of a document
	MaxPanels = 500

	columns        = 12     // of the grid
	maxRow         = 10_000 // first row of a panel
	maxHeight      = 100    // rows of a panel
	maxTitle       = 200    // characters
	maxDescription = 1000   // characters
	maxTags        = 10     // of a dashboard
	maxTag         = 40     // characters
	maxType        = 64     // bytes
	maxTime        = 64     // bytes of a range's ends
	maxQueries     = 26     // of a panel
	maxQuery       = 4096   // bytes of a query that is text
	maxFormulas    = 8      // of a panel
)

// ErrLaterForm is returned for a document of a form that this release does not know.
var ErrLaterForm = errors.New("a later release made this document")

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	idForm   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
)

// CheckName returns an error unless name may be a dashboard's. Names stand in addresses, in
// which the gateway ignores case.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("name: got %.80q, want 1 to 64 of a-z, 0-9 and . _ -, the first a letter or digit", name)
	}
	return nil
}

// A Summary is what a list says of a document.
type Summary struct {
	Title  string `json:"title"`
	Panels int    `json:"panels"`
	// Tags are words by which dashboards are found.
	Tags []string `json:"tags,omitempty"`
}

// object is a JSON object. Its keys are compared exactly, as the page does.
type object map[string]json.RawMessage

// Check returns an error that names the first fault of a document.
func Check(document []byte) (s Summary, err error) {
	if len(document) > MaxBytes {
		return s, fmt.Errorf("document: got %d bytes, want at most %d", len(document), MaxBytes)
	}
	if !utf8.Valid(document) {
		return s, errors.New("document: want UTF-8")
	}
	var d object
	if err := json.Unmarshal(document, &d); err != nil || d == nil {
		return s, fmt.Errorf("document: want a JSON object: %w", orNull(err))
	}

	var form int
	if err := d.read("form", &form, true); err != nil {
		return s, err
	}
	if form > Form {
		return s, fmt.Errorf("form: got %d, want %d: %w", form, Form, ErrLaterForm)
	}
	if form != Form {
		return s, fmt.Errorf("form: got %d, want %d", form, Form)
	}

	if s.Title, err = d.text("title", maxTitle); err != nil {
		return s, err
	}
	if s.Tags, err = d.tags(); err != nil {
		return s, err
	}
	if err := d.checkRange(); err != nil {
		return s, err
	}
	names, err := d.checkVariables()
	if err != nil {
		return s, err
	}
	s.Panels, err = d.checkPanels(names)
	return s, err
}

var errNull = errors.New("it is null")

func orNull(err error) error {
	if err == nil {
		return errNull
	}
	return err
}

// read decodes a field, and leaves to alone if there is none that must be.
func (o object) read(field string, to any, must bool) error {
	raw, ok := o[field]
	if !ok && !must {
		return nil
	}
	if !ok || string(raw) == "null" {
		return fmt.Errorf("%s: it is missing", field)
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// objects returns a field that is a list of at most so many objects, or missing.
func (o object) objects(field string, most int) (list []object, err error) {
	if err := o.read(field, &list, false); err != nil {
		return nil, err
	}
	if len(list) > most {
		return nil, fmt.Errorf("%s: got %d, want at most %d", field, len(list), most)
	}
	return list, nil
}

// text returns a field that is a text of at most that many characters, or missing.
func (o object) text(field string, most int) (s string, err error) {
	if err := o.read(field, &s, false); err != nil {
		return "", err
	}
	if n := utf8.RuneCountInString(s); n > most {
		return "", fmt.Errorf("%s: got %d characters, want at most %d", field, n, most)
	}
	return s, nil
}

// tags returns the words by which the dashboard is found.
func (o object) tags() (tags []string, err error) {
	if err := o.read("tags", &tags, false); err != nil {
		return nil, err
	}
	if len(tags) > maxTags {
		return nil, fmt.Errorf("tags: got %d, want at most %d", len(tags), maxTags)
	}
	for i, tag := range tags {
		if n := utf8.RuneCountInString(tag); n < 1 || n > maxTag {
			return nil, fmt.Errorf("tags[%d]: got %d characters, want 1 to %d", i, n, maxTag)
		}
	}
	return tags, nil
}

// checkRange checks the range that all panels have: {"from", "to"}, times as in queries.
func (o object) checkRange() error {
	var r object
	if err := o.read("range", &r, false); err != nil {
		return err
	}
	for _, end := range []string{"from", "to"} {
		if _, err := r.text(end, maxTime); err != nil {
			return fmt.Errorf("range.%w", err)
		}
	}
	return nil
}

// checkPanels returns the number of panels, which name only these variables.
func (o object) checkPanels(variables map[string]bool) (int, error) {
	var panels []object
	if err := o.read("panels", &panels, true); err != nil {
		return 0, err
	}
	if len(panels) > MaxPanels {
		return 0, fmt.Errorf("panels: got %d, want at most %d", len(panels), MaxPanels)
	}

	seen := map[string]bool{}
	for i, p := range panels {
		id, err := p.check()
		if err == nil {
			err = p.checkUses(variables)
		}
		if err != nil {
			return 0, fmt.Errorf("panels[%d].%w", i, err)
		}
		if seen[id] {
			return 0, fmt.Errorf("panels[%d].id: %s is the id of another panel", i, id)
		}
		seen[id] = true
	}
	return len(panels), nil
}

// place is where a panel is on the grid.
type place struct{ X, Y, W, H int }

// check checks one panel and returns its id. Of a type that this release does not know
// only what all panels have is looked at.
func (o object) check() (id string, err error) {
	if err := o.read("id", &id, true); err != nil {
		return "", err
	}
	if !idForm.MatchString(id) {
		return "", fmt.Errorf("id: got %.40q, want 1 to 32 letters, digits, _ or -", id)
	}
	var kind string
	if err := o.read("type", &kind, true); err != nil {
		return "", err
	}
	if kind == "" || len(kind) > maxType {
		return "", fmt.Errorf("type: got %d bytes, want 1 to %d", len(kind), maxType)
	}
	if _, err := o.text("title", maxTitle); err != nil {
		return "", err
	}
	if _, err := o.text("description", maxDescription); err != nil {
		return "", err
	}
	if err := o.checkPlace(); err != nil {
		return "", err
	}

	return id, o.checkFields(kind)
}

// checkPlace checks that a panel is inside the grid. Fields of place are looked at by
// their exact names.
func (o object) checkPlace() error {
	var at object
	if err := o.read("place", &at, true); err != nil {
		return err
	}
	var p place
	for field, to := range map[string]*int{"x": &p.X, "y": &p.Y, "w": &p.W, "h": &p.H} {
		if err := at.read(field, to, true); err != nil {
			return fmt.Errorf("place.%w", err)
		}
	}
	if p.X < 0 || p.W < 1 || p.W > columns || p.X > columns-p.W || p.Y < 0 || p.Y > maxRow || p.H < 1 ||
		p.H > maxHeight {
		return fmt.Errorf("place: got x %d, y %d, w %d, h %d, want a place in %d columns, y at most %d, h 1 to %d",
			p.X, p.Y, p.W, p.H, columns, maxRow, maxHeight)
	}
	return nil
}

// checkQueries checks queries: texts as in the parameter m, or objects: OpenTSDB's
// sub-queries, or {"m": text} with what the chart adds.
func (o object) checkQueries() error {
	var queries []json.RawMessage
	if err := o.read("queries", &queries, false); err != nil {
		return err
	}
	if len(queries) > maxQueries {
		return fmt.Errorf("queries: got %d, want at most %d", len(queries), maxQueries)
	}
	for i, raw := range queries {
		var text string
		var fields object
		isNull := string(raw) == "null" // which json takes for both
		if isNull || json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &fields) != nil {
			return fmt.Errorf("queries[%d]: want a text or an object", i)
		}
		if len(text) > maxQuery {
			return fmt.Errorf("queries[%d]: got %d bytes, want at most %d", i, len(text), maxQuery)
		}
	}
	return nil
}

// checkFormulas checks formulas over the queries: {"expr", "name"}.
func (o object) checkFormulas() error {
	formulas, err := o.objects("formulas", maxFormulas)
	if err != nil {
		return err
	}
	for i, f := range formulas {
		for _, field := range []string{"expr", "name"} {
			if _, err := f.text(field, maxQuery); err != nil {
				return fmt.Errorf("formulas[%d].%w", i, err)
			}
		}
	}
	return nil
}
