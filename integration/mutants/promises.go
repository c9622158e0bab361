package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// directive begins both halves of a promise fault: the marker and the declaration.
const directive = "//" + "fault:"

var (
	// marker ends a line of code: what the line is without it, the fault's name, the test that catches it.
	marker = regexp.MustCompile(`^(\s*)(\S.*?)\s*` + directive + `([a-z][a-z0-9-]*) (Test\w+(?:/\w+)?)$`)
	// declared is a line of a test's comment, or of a story's: the fault's name, the old code,
	// empty for the whole line, and the new, empty for none.
	declared = regexp.MustCompile(`^` + directive + `([a-z][a-z0-9-]*) (?:(.*\S) )?=>(?: (.*\S))?$`)
)

// stories are scripts that package integration/story runs, each as a part of TestStories.
const stories = "integration/story/testdata"

// halves is what the tree says of one fault.
type halves struct {
	marks        []mark
	declarations []declaration
}

// mark is a line that ends with a marker.
type mark struct {
	file string
	line int // from 0
	test string
}

// declaration stands above the test that catches the fault.
type declaration struct {
	file, test string
	old, new   string
}

// reading collects both halves of all faults, and what is wrong with them.
type reading struct {
	tree   fs.FS
	texts  map[string]string // of the files with markers
	faults map[string]*halves
	wrong  []error
}

// Folders that hold no sources of ours, and this one, whose tests hold markers of trees that they make up.
var skipped = []string{".git", "build", "bin", "data", "integration/mutants"}

// readPromises returns the faults that are marked in a tree, by name. The error names all faults that have lost their
// marker, their declaration or the code that they change.
func readPromises(tree fs.FS) ([]fault, error) {
	r := &reading{tree: tree, texts: map[string]string{}, faults: map[string]*halves{}}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(skipped, name) || d.Name() == "node_modules"),
			d.IsDir() && d.Name() == "testdata" && name != stories:
			return fs.SkipDir
		case !d.IsDir() && path.Dir(name) == stories:
			return r.story(name)
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		return r.file(name)
	})
	if err != nil {
		return nil, err
	}
	var out []fault
	for _, name := range slices.Sorted(maps.Keys(r.faults)) {
		f, err := r.join(name, r.faults[name])
		if err != nil {
			r.wrong = append(r.wrong, fmt.Errorf("%s: %w", name, err))
			continue
		}
		out = append(out, f)
	}
	return out, errors.Join(r.wrong...)
}

// file takes the markers of a source file, or the declarations of a test file.
func (r *reading) file(name string) error {
	text, err := fs.ReadFile(r.tree, name)
	if err != nil || !strings.Contains(string(text), directive) {
		return err
	}
	if strings.HasSuffix(name, "_test.go") {
		return r.declarations(name, string(text))
	}
	r.texts[name] = string(text)
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.Contains(line, directive) {
			continue
		}
		m := marker.FindStringSubmatch(line)
		if m == nil {
			r.wrong = append(r.wrong, fmt.Errorf("%s:%d: got %q, want code and %sNAME TestX",
				name, i+1, strings.TrimSpace(line), directive))
			continue
		}
		h := r.halves(m[3])
		h.marks = append(h.marks, mark{file: name, line: i, test: m[4]})
	}
	return nil
}

// declarations takes those of a test file. Each stands in the comment of a test.
func (r *reading) declarations(name, text string) error {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	tests := map[*ast.CommentGroup]string{}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Doc != nil && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
			tests[f.Doc] = f.Name.Name
		}
	}
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			if !strings.HasPrefix(c.Text, directive) {
				continue
			}
			m, test := declared.FindStringSubmatch(c.Text), tests[group]
			if m == nil || test == "" {
				r.wrong = append(r.wrong, fmt.Errorf("%s: got %q, want %sNAME OLD => NEW in the comment of a test",
					fset.Position(c.Pos()), c.Text, directive))
				continue
			}
			h := r.halves(m[1])
			h.declarations = append(h.declarations, declaration{file: name, test: test, old: m[2], new: m[3]})
		}
	}
	return nil
}

// story takes the declarations of a story: comments of the form "# //fault:NAME OLD => NEW".
func (r *reading) story(name string) error {
	text, err := fs.ReadFile(r.tree, name)
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		line, is := strings.CutPrefix(line, "# "+directive)
		if !is {
			continue
		}
		m := declared.FindStringSubmatch(directive + line)
		if m == nil {
			r.wrong = append(r.wrong, fmt.Errorf("%s: got %q, want # %sNAME OLD => NEW", name, line, directive))
			continue
		}
		h := r.halves(m[1])
		test := "TestStories/" + strings.TrimSuffix(path.Base(name), ".txt")
		h.declarations = append(h.declarations, declaration{file: name, test: test, old: m[2], new: m[3]})
	}
	return nil
}

func (r *reading) halves(name string) *halves {
	h := r.faults[name]
	if h == nil {
		h = &halves{}
		r.faults[name] = h
	}
	return h
}

// join makes a fault of its marker and its declaration.
func (r *reading) join(name string, h *halves) (fault, error) {
	switch {
	case len(h.marks) == 0:
		return fault{}, fmt.Errorf("%s of %s declares it, and no line is marked",
			h.declarations[0].test, h.declarations[0].file)
	case len(h.declarations) == 0:
		return fault{}, fmt.Errorf("%s:%d is marked, and no test declares it", h.marks[0].file, h.marks[0].line+1)
	case len(h.marks) > 1 || len(h.declarations) > 1:
		return fault{}, fmt.Errorf("got %d markers and %d declarations, want one of each",
			len(h.marks), len(h.declarations))
	}
	m, d := h.marks[0], h.declarations[0]
	if m.test != d.test {
		return fault{}, fmt.Errorf("the marker at %s:%d names %s, want %s of %s",
			m.file, m.line+1, m.test, d.test, d.file)
	}
	changed, err := d.apply(r.texts[m.file], m.line)
	if err != nil {
		return fault{}, fmt.Errorf("%s:%d: %w", m.file, m.line+1, err)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), m.file, changed, parser.SkipObjectResolution); err != nil {
		return fault{}, fmt.Errorf("is no Go any more: %w", err)
	}
	dir := strings.TrimSuffix(path.Dir(d.file), "/testdata")
	return fault{name: name, file: m.file, dir: dir, test: d.test, testFile: d.file, changed: changed}, nil
}

// apply changes the code of one line and leaves the number of lines as it is.
func (d declaration) apply(text string, line int) (string, error) {
	lines := strings.Split(text, "\n")
	m := marker.FindStringSubmatch(lines[line])
	indent, code := m[1], m[2]
	old := cmp.Or(d.old, code)
	if n := strings.Count(code, old); n != 1 {
		return "", fmt.Errorf("%q occurs %d times in the line %q, want once", old, n, code)
	}
	if old == d.new {
		return "", fmt.Errorf("%q is changed to itself", old)
	}
	lines[line] = indent + strings.Replace(code, old, d.new, 1)
	return strings.Join(lines, "\n"), nil
}
