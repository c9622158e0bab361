package integration

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// house is a source tree read for the rules.
type house struct {
	module   string // its path, from go.mod
	packages map[string]*room
	files    []*goFile
	texts    map[string][]byte // every text file by path
	names    []string          // of every file and folder, as paths
	fset     *token.FileSet
}

// room is one package: a directory, and what its files import. Test files
// count apart, whichever package clause they have, and so do all of a package for tests.
type room struct {
	dir     string // slash path below the root, "encoding/scanplan"
	name    string // of the package clause; empty when there are only tests
	doc     bool   // has a package comment
	imports map[string]bool
	tests   map[string]bool
}

type goFile struct {
	path      string
	test      bool
	generated bool
	text      []byte
	ast       *ast.File
	room      *room
}

// Directories that hold nothing of ours: anywhere, and at the top (.gitignore).
var (
	skipped    = []string{".git", "node_modules", "__pycache__", ".venv"}
	skippedTop = []string{"build", "bin", "data"}
)

func readHouse(tree fs.FS) (*house, error) {
	h := &house{packages: map[string]*room{}, texts: map[string][]byte{}, fset: token.NewFileSet()}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(skipped, d.Name()) || slices.Contains(skippedTop, name) {
				return fs.SkipDir
			}
			h.names = append(h.names, name)
			return nil
		}
		if slices.Contains(skipped, d.Name()) {
			return nil // a linked work tree has a file .git that says where the repository is
		}
		if !d.Type().IsRegular() {
			return nil
		}
		h.names = append(h.names, name)
		return h.read(tree, name)
	})
	if err != nil {
		return nil, err
	}
	_, rest, found := bytes.Cut(h.texts["go.mod"], []byte("module "))
	if !found {
		return nil, fmt.Errorf("go.mod names no module")
	}
	h.module = string(bytes.Fields(rest)[0])
	slices.SortFunc(h.files, func(a, b *goFile) int { return strings.Compare(a.path, b.path) })
	return h, nil
}

func (h *house) read(tree fs.FS, name string) error {
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	h.texts[name] = text
	if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
		return nil // testdata is read by tests and not by Go
	}
	parsed, err := parser.ParseFile(h.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &goFile{
		path:      name,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(parsed),
		text:      text,
		ast:       parsed,
	}
	h.files = append(h.files, f)
	return h.enter(f)
}

// enter adds a file to its package.
func (h *house) enter(f *goFile) error {
	dir := path.Dir(f.path)
	r := h.packages[dir]
	if r == nil {
		r = &room{dir: dir, imports: map[string]bool{}, tests: map[string]bool{}}
		h.packages[dir] = r
	}
	f.room = r
	into := r.imports
	if f.test || isForTests(dir) {
		into = r.tests
	}
	if !f.test {
		r.name = f.ast.Name.Name
		r.doc = r.doc || f.ast.Doc != nil
	}
	for _, spec := range f.ast.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		into[imported] = true
	}
	return nil
}

// isForTests reports whether a package is for tests, which its name says.
func isForTests(dir string) bool { return strings.HasSuffix(dir, "test") }

// rooms returns the packages in order of their directory.
func (h *house) rooms() []*room {
	var all []*room
	for _, dir := range slices.Sorted(maps.Keys(h.packages)) {
		all = append(all, h.packages[dir])
	}
	return all
}

// ours returns the directory of an import of this module.
func (h *house) ours(imported string) (dir string, ok bool) {
	if imported == h.module {
		return ".", true
	}
	return strings.CutPrefix(imported, h.module+"/")
}

// line returns "path:line" of a node.
func (h *house) line(n ast.Node) string {
	p := h.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// under says that dir is folder or lies in it.
func under(dir, folder string) bool {
	return dir == folder || strings.HasPrefix(dir, folder+"/")
}

func underAny(dir string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return under(dir, f) })
}

// standard says that an import path is of the standard library: its first
// element has no dot, and it is none of ours.
func (h *house) standard(imported string) bool {
	_, ours := h.ours(imported)
	first, _, _ := strings.Cut(imported, "/")
	return !ours && !strings.Contains(first, ".")
}
