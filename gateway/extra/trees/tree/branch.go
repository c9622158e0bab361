package tree

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"downpour/encoding"
)

// Root is the name of every tree's root.
const Root = "ROOT"

// Branch is a branch with what is right below it, in the form of the HTTP API.
type Branch struct {
	Key      []byte   // its row
	Path     []string // the names from Root to its own
	Leaves   []Leaf
	Branches []*Branch
}

// Leaf is a series at the end of a path. Metric and Tags are empty where names are not
// requested.
type Leaf struct {
	Metric      string            `json:"metric"`
	Tags        map[string]string `json:"tags"`
	TSUID       string            `json:"tsuid"`
	DisplayName string            `json:"displayName"`
}

// pathJSON is a path by depth: {"0":"ROOT","1":"lga"}.
type pathJSON map[int]string

// MarshalJSON writes a branch as the HTTP API shows it. Lists without elements are null.
func (b *Branch) MarshalJSON() ([]byte, error) {
	path := make(pathJSON, len(b.Path))
	for depth, name := range b.Path {
		path[depth] = name
	}
	return json.Marshal(struct {
		Leaves      []Leaf    `json:"leaves"`
		Branches    []*Branch `json:"branches"`
		Path        pathJSON  `json:"path"`
		DisplayName string    `json:"displayName"`
		TreeID      int       `json:"treeId"`
		BranchID    string    `json:"branchId"`
		Depth       int       `json:"depth"`
	}{b.Leaves, b.Branches, path, b.Path[len(b.Path)-1], IDOf(b.Key), BranchID(b.Key), len(b.Path) - 1})
}

// BranchID is how clients see a branch's key: upper-case hex, 00010001A246.
func BranchID(key []byte) string { return encoding.UID(key).String() }

// ParseBranchID reads a branch's key. An odd number of digits gets a leading zero. Its
// errors are OpenTSDB's. Source: Branch.stringToId.
func ParseBranchID(text string) ([]byte, error) {
	if len(text) < 4 {
		return nil, errors.New("Branch ID was too short")
	}
	return encoding.ParseHexUID(text)
}

// AppendBranch appends the value of a branch's cell, whose path begins with Root.
// Source: Branch.toStorageJson.
func AppendBranch(dst []byte, path []string) []byte {
	dst = append(dst, `{"path":{`...)
	for depth, name := range path {
		if depth > 0 {
			dst = append(dst, ',')
		}
		dst = encoding.AppendJSONField(dst, strconv.Itoa(depth), name)
	}
	dst = encoding.AppendJSONField(append(dst, `},`...), "displayName", path[len(path)-1])
	return append(dst, '}')
}

// ParseBranch reads the value of a branch's cell. Source: Branch.compileBranchId.
func ParseBranch(key, value []byte) (*Branch, error) {
	var in struct {
		Path        pathJSON `json:"path"`
		DisplayName string   `json:"displayName"`
	}
	if err := json.Unmarshal(value, &in); err != nil {
		return nil, fmt.Errorf("branch %s: cannot parse its %d bytes: %w", BranchID(key), len(value), err)
	}

	b := &Branch{Key: key}
	depths := make([]int, 0, len(in.Path))
	for depth := range in.Path {
		depths = append(depths, depth)
	}
	slices.Sort(depths)
	for _, depth := range depths {
		b.Path = append(b.Path, in.Path[depth])
	}

	// A branch's own name ends its path. As in OpenTSDB it is added where the stored path lacks it.
	if len(b.Path) == 0 || in.DisplayName != "" && b.Path[len(b.Path)-1] != in.DisplayName {
		b.Path = append(b.Path, in.DisplayName)
	}
	return b, nil
}

// AppendLeaf appends the value of a leaf's cell. Source: Leaf.toStorageJson.
func AppendLeaf(dst []byte, name, tsuid string) []byte {
	dst = encoding.AppendJSONField(append(dst, '{'), "displayName", name)
	dst = encoding.AppendJSONField(append(dst, ','), "tsuid", tsuid)
	return append(dst, '}')
}

// ParseLeaf reads the value of a leaf's cell. A leaf without a TSUID is an error.
func ParseLeaf(value []byte) (l Leaf, err error) {
	if err = json.Unmarshal(value, &l); err != nil || l.TSUID == "" {
		return l, fmt.Errorf("cannot parse a leaf of %d bytes, which needs a TSUID: %w", len(value),
			cmp.Or(err, errors.New("it has none")))
	}
	return l, nil
}

// Sort orders what is below a branch: by names without regard to case, then by names.
func (b *Branch) Sort() {
	slices.SortStableFunc(b.Leaves, func(x, y Leaf) int { return compareNames(x.DisplayName, y.DisplayName) })
	slices.SortStableFunc(b.Branches, func(x, y *Branch) int {
		return compareNames(x.Path[len(x.Path)-1], y.Path[len(y.Path)-1])
	})
}

// compareNames orders names as Java's String.compareToIgnoreCase does, and equal ones by
// their letters' case.
func compareNames(a, b string) int {
	return cmp.Or(slices.Compare(folded(a), folded(b)), strings.Compare(a, b))
}

// folded are the UTF-16 units of a text, in lower case by way of upper case.
func folded(s string) []uint16 {
	runes := []rune(s)
	for i, r := range runes {
		runes[i] = unicode.ToLower(unicode.ToUpper(r))
	}
	return utf16.Encode(runes)
}

// Shown returns the root with what a placement would put below it, as /api/tree/test shows
// it.
func (p *Placement) Shown(t *Tree, tsuid string) *Branch {
	root := &Branch{Key: Key(t.ID), Path: []string{Root}}
	leaf := Leaf{TSUID: tsuid, DisplayName: p.Leaf}
	if !p.named {
		// The only name is the root's leaf, which is not stored.
		if p.Leaf != "" {
			root.Leaves = []Leaf{leaf}
		}
		return root
	}
	if !p.Stored(t.StrictMatch) {
		return root
	}

	at := root
	for _, name := range p.Path {
		child := &Branch{Key: AppendChild(slices.Clone(at.Key), name), Path: append(slices.Clone(at.Path), name)}
		at.Branches = []*Branch{child}
		at = child
	}
	at.Leaves = []Leaf{leaf}
	return root
}
