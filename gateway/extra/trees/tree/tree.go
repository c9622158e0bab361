package tree

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"downpour/encoding"
)

// Tree is a tree's definition and its rules.
type Tree struct {
	ID          int // 1 to MaxID
	Name        string
	Description string
	Notes       string
	// StrictMatch leaves out series for which a level yields no name.
	StrictMatch bool
	Created     int64 // seconds, 0 if unknown
	// Enabled trees take new series.
	Enabled bool
	// StoreFailures records series that are left out.
	StoreFailures bool
	Rules         []Rule // ascending by level and order
}

// storedTree is the JSON of a definition.
type storedTree struct {
	Name          string `json:"name"`
	Description   string `json:"description"`
	Notes         string `json:"notes"`
	StrictMatch   bool   `json:"strictMatch"`
	Created       int64  `json:"created"`
	Enabled       bool   `json:"enabled"`
	StoreFailures bool   `json:"storeFailures"`
}

// ParseDefinition reads the value of a definition's cell, without rules.
func ParseDefinition(id int, value []byte) (Tree, error) {
	var s storedTree
	if err := json.Unmarshal(value, &s); err != nil {
		return Tree{}, fmt.Errorf("tree %d: cannot parse its definition of %d bytes: %w", id, len(value), err)
	}
	return Tree{ID: id, Name: s.Name, Description: s.Description, Notes: s.Notes, StrictMatch: s.StrictMatch,
		Created: s.Created, Enabled: s.Enabled, StoreFailures: s.StoreFailures}, nil
}

// AppendDefinition appends the value of a definition's cell. Source: Tree.toStorageJson.
func (t *Tree) AppendDefinition(dst []byte) []byte {
	dst = encoding.AppendJSONField(append(dst, '{'), "name", t.Name)
	dst = encoding.AppendJSONField(append(dst, ','), "description", t.Description)
	dst = encoding.AppendJSONField(append(dst, ','), "notes", t.Notes)
	dst = strconv.AppendBool(append(dst, `,"strictMatch":`...), t.StrictMatch)
	dst = strconv.AppendInt(append(dst, `,"created":`...), t.Created, 10)
	dst = strconv.AppendBool(append(dst, `,"enabled":`...), t.Enabled)
	dst = strconv.AppendBool(append(dst, `,"storeFailures":`...), t.StoreFailures)
	return append(dst, '}')
}

// MarshalJSON writes a tree as the HTTP API shows it: rules by level and order, or null.
func (t *Tree) MarshalJSON() ([]byte, error) {
	var rules map[int]map[int]*Rule
	for i := range t.Rules {
		r := &t.Rules[i]
		if rules == nil {
			rules = map[int]map[int]*Rule{}
		}
		if rules[r.Level] == nil {
			rules[r.Level] = map[int]*Rule{}
		}
		rules[r.Level][r.Order] = r
	}

	return json.Marshal(struct {
		Name          string                `json:"name"`
		Description   string                `json:"description"`
		Notes         string                `json:"notes"`
		Enabled       bool                  `json:"enabled"`
		Rules         map[int]map[int]*Rule `json:"rules"`
		Created       int64                 `json:"created"`
		TreeID        int                   `json:"treeId"`
		StrictMatch   bool                  `json:"strictMatch"`
		StoreFailures bool                  `json:"storeFailures"`
	}{t.Name, t.Description, t.Notes, t.Enabled, rules, t.Created, t.ID, t.StrictMatch, t.StoreFailures})
}

// Rule returns the rule of a level and order, nil if there is none.
func (t *Tree) Rule(level, order int) *Rule {
	i, found := slices.BinarySearchFunc(t.Rules, Rule{Level: level, Order: order}, compareRules)
	if !found {
		return nil
	}
	return &t.Rules[i]
}

// compareRules orders rules by level, then by order.
func compareRules(a, b Rule) int {
	return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Order, b.Order))
}

// SortRules puts rules into the order in which they are applied.
func SortRules(rules []Rule) { slices.SortFunc(rules, compareRules) }

// Change is a change of a definition. An empty text and nil are not given.
type Change struct {
	ID                                  int // 0 for a new tree
	Name, Description, Notes            string
	StrictMatch, Enabled, StoreFailures *bool
	// Created is the time of a new tree, in seconds; 0 for none.
	Created int64
}

// Empty reports whether nothing is given.
func (c *Change) Empty() bool {
	return c.Name+c.Description+c.Notes == "" && c.StrictMatch == nil && c.Enabled == nil && c.StoreFailures == nil
}

// ErrNoName is returned for a new tree without a name. The text is OpenTSDB's.
var ErrNoName = errors.New("Tree was missing the name")

// Validate returns an error if a text is too long.
func (c *Change) Validate() error {
	return errors.Join(checkLength("name", c.Name, MaxText), checkLength("description", c.Description, MaxNotes),
		checkLength("notes", c.Notes, MaxNotes))
}

// Apply returns the definition after the change. With overwrite, what is not given becomes
// empty or false. Source: Tree.copyChanges.
func (c *Change) Apply(t Tree, overwrite bool) Tree {
	if overwrite {
		t.Name, t.Description, t.Notes = "", "", ""
		t.StrictMatch, t.Enabled, t.StoreFailures = false, false, false
	}

	t.Name, t.Description, t.Notes = cmp.Or(c.Name, t.Name), cmp.Or(c.Description, t.Description),
		cmp.Or(c.Notes, t.Notes)
	for _, f := range []struct {
		given *bool
		to    *bool
	}{{c.StrictMatch, &t.StrictMatch}, {c.Enabled, &t.Enabled}, {c.StoreFailures, &t.StoreFailures}} {
		if f.given != nil {
			*f.to = *f.given
		}
	}
	return t
}
