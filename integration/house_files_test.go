package integration

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/format"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of sizes. What to aim for is far below them.
const (
	maxLines      = 500
	maxTestLines  = 700
	maxFunction   = 80
	maxParameters = 7
	maxMethods    = 8
)

// A line has at most maxColumns; a tab takes tabColumns of them.
const (
	maxColumns = 120
	tabColumns = 4
)

// emptyNames are package names that could hold anything.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "types", "model", "models", "core", "misc"}

func packageNames(h *house) (found []string) {
	for _, r := range h.rooms() {
		if base := path.Base(r.dir); slices.Contains(emptyNames, r.name) || slices.Contains(emptyNames, base) {
			found = append(found, fmt.Sprintf("%s: a package named %s says nothing", r.dir, base))
		}
	}
	return found
}

func packageComments(h *house) (found []string) {
	for _, r := range h.rooms() {
		if r.name != "" && !r.doc {
			found = append(found, r.dir+": no package comment")
		}
	}
	return found
}

// wellKnown are methods that the standard library explains, so they need no comment.
var wellKnown = []string{"Error", "Unwrap", "String", "ServeHTTP", "Len", "Less", "Swap"}

func exportedComments(h *house) (found []string) {
	for _, f := range h.files {
		if f.test || f.generated {
			continue
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name, exported := exportedFunction(d)
				if exported && !(d.Recv != nil && slices.Contains(wellKnown, d.Name.Name)) {
					found = append(found, h.comment(d, name, d.Doc)...)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					found = append(found, h.specComment(d, spec)...)
				}
			}
		}
	}
	return found
}

// exportedFunction names a function or method that other packages can call.
func exportedFunction(d *ast.FuncDecl) (name string, exported bool) {
	if !d.Name.IsExported() {
		return "", false
	}
	if d.Recv == nil {
		return d.Name.Name, true
	}
	receiver := d.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + d.Name.Name, t.IsExported()
		default:
			return d.Name.Name, false
		}
	}
}

// specComment looks at one type, constant or variable; in a group a comment
// over the group, or one behind the line, is enough for a value.
func (h *house) specComment(d *ast.GenDecl, spec ast.Spec) (found []string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			found = h.comment(s, s.Name.Name, first(s.Doc, s.Comment, lone(d)))
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				found = append(found, h.comment(s, name.Name, first(s.Doc, s.Comment, d.Doc))...)
			}
		}
	}
	return found
}

// lone is the comment of a declaration without a group: go/ast gives it to the
// declaration and not to its one spec.
func lone(d *ast.GenDecl) *ast.CommentGroup {
	if d.Lparen == token.NoPos {
		return d.Doc
	}
	return nil
}

func first(groups ...*ast.CommentGroup) *ast.CommentGroup {
	for _, g := range groups {
		if g != nil {
			return g
		}
	}
	return nil
}

func (h *house) comment(n ast.Node, name string, doc *ast.CommentGroup) []string {
	if doc == nil {
		return []string{fmt.Sprintf("%s: exported %s has no comment", h.line(n), name)}
	}
	text := strings.TrimSpace(doc.Text())
	bare := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Contains(text, "TODO") || text == bare || text == bare+"." {
		return []string{fmt.Sprintf("%s: comment of exported %s says only %q", h.line(n), name, text)}
	}
	return nil
}

func sizes(h *house) (found []string) {
	for _, f := range h.files {
		if f.generated {
			continue
		}
		limit := maxLines
		if f.test {
			limit = maxTestLines
		}
		if n := bytes.Count(f.text, []byte("\n")); n > limit {
			found = append(found, fmt.Sprintf("%s: %d lines, at most %d", f.path, n, limit))
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch d := n.(type) {
			case *ast.FuncDecl:
				found = append(found, h.functionSize(d)...)
			case *ast.TypeSpec:
				if t, ok := d.Type.(*ast.InterfaceType); ok && t.Methods.NumFields() > maxMethods {
					found = append(found, fmt.Sprintf("%s: interface %s has %d methods, at most %d",
						h.line(d), d.Name.Name, t.Methods.NumFields(), maxMethods))
				}
			}
			return true
		})
	}
	return found
}

func (h *house) functionSize(d *ast.FuncDecl) (found []string) {
	if n := h.fset.Position(d.End()).Line - h.fset.Position(d.Pos()).Line + 1; n > maxFunction {
		found = append(found, fmt.Sprintf("%s: %s has %d lines, at most %d", h.line(d), d.Name.Name, n, maxFunction))
	}
	if n := d.Type.Params.NumFields(); n > maxParameters {
		found = append(found, fmt.Sprintf("%s: %s has %d parameters, at most %d",
			h.line(d), d.Name.Name, n, maxParameters))
	}
	return found
}

// plantedFault begins a line of a test's comment that declares a planted fault. It is put together here so that
// this file declares none.
const plantedFault = "//" + "fault:"

// tooWide reports long lines. Two kinds of line in tests cannot be broken, because they are compared whole: the
// declaration of a planted fault, and the output of an example.
func tooWide(h *house) (found []string) {
	for _, f := range h.files {
		if f.generated {
			continue
		}
		var whole []string
		if f.test {
			for _, example := range doc.Examples(f.ast) {
				whole = append(whole, strings.Split(example.Output, "\n")...)
			}
		}
		for i, line := range strings.Split(string(f.text), "\n") {
			n := utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
			text := strings.TrimLeft(line, "\t")
			if n <= maxColumns || f.test && strings.HasPrefix(text, plantedFault) ||
				slices.Contains(whole, strings.TrimPrefix(text, "// ")) {
				continue
			}
			found = append(found, fmt.Sprintf("%s:%d: %d columns, at most %d", f.path, i+1, n, maxColumns))
		}
	}
	return found
}

// environment lists the packages other than mains that read the environment: the first hands its own on to the
// programs that it starts, the second gives tests their seed.
var environment = []string{"integration/e2e", "encoding/seedtest", "integration/mutator/mutant"}

func calls(h *house) (found []string) {
	for _, f := range h.files {
		if f.test {
			// In a bubble of synctest a sleep is how virtual time passes.
			virtual := localName(f, "testing/synctest") != ""
			for _, c := range callsOf(f, "time", "Sleep") {
				if virtual {
					break
				}
				found = append(found, h.line(c)+": calls time.Sleep in a test; poll, or use testing/synctest")
			}
			for _, c := range skips(f) {
				found = append(found, h.line(c)+": skips a test; what is missing must fail")
			}
		}
		for _, c := range endsByIs(f) {
			found = append(found, h.line(c)+": errors.Is(…, io.EOF); compare with ==, "+
				"because the error of a connection that was closed wraps io.EOF, too, and is no end")
		}
		if f.room.name == "main" {
			continue
		}
		for _, c := range callsOf(f, "os", "Getenv", "LookupEnv", "ExpandEnv", "Environ") {
			if !slices.Contains(environment, f.room.dir) {
				found = append(found, fmt.Sprintf("%s: calls os.%s; only mains read the environment",
					h.line(c), c.Sel.Name))
			}
		}
	}
	return found
}

// endsByIs finds calls of errors.Is with io.EOF.
func endsByIs(f *goFile) (found []*ast.CallExpr) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if ok && len(c.Args) == 2 && len(callsIn(c.Fun, "errors", "Is")) > 0 &&
			len(callsIn(c.Args[1], "io", "EOF")) > 0 {
			found = append(found, c)
		}
		return true
	})
	return found
}

// callsOf finds the uses of functions of an imported package, under whatever
// name the file imports it.
func callsOf(f *goFile, imported string, names ...string) (found []*ast.SelectorExpr) {
	local := localName(f, imported)
	if local == "" {
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(names, s.Sel.Name) {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == local {
			found = append(found, s)
		}
		return true
	})
	return found
}

// localName is the name under which a file knows an imported package, empty
// when it does not import it.
func localName(f *goFile, imported string) string {
	for _, spec := range f.ast.Imports {
		if spec.Path.Value != strconv.Quote(imported) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(imported)
	}
	return ""
}

// skips finds calls t.Skip and its kin on anything named like a test's handle.
func skips(f *goFile) (found []ast.Node) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, s.Sel.Name) {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"t", "tb", "b"}, x.Name) {
			found = append(found, s)
		}
		return true
	})
	return found
}

func formatted(h *house) (found []string) {
	for _, f := range h.files {
		if want, err := format.Source(f.text); err != nil || !bytes.Equal(want, f.text) {
			found = append(found, f.path+": gofmt would change it")
		}
	}
	return found
}

// The words are put together here so that this file does not hold them.
var (
	machinePath = regexp.MustCompile(`(?:^|[^\w./-])(/(?:wo` + `rk|ro` + `ot|home|Users)/)`)
	registries  = []string{
		"registry.npm" + "js.org", "pyp" + "i.org", "files.python" + "hosted.org", "repo1.maven" + ".org",
		"repo.maven" + ".apache.org", "proxy.golang" + ".org", "sum.golang" + ".org", "deb.debian" + ".org",
	}
	secret = regexp.MustCompile(`sk` + `-[A-Za-z0-9_-]{20,}|-----BEGIN [A-Z ]*PRIVATE KEY`)
)

// words reports texts that name a path of one machine or a registry, or hold a secret.
func words(h *house) (found []string) {
	for _, name := range slices.Sorted(maps.Keys(h.texts)) {
		if name == "go.sum" {
			continue
		}
		for i, l := range bytes.Split(h.texts[name], []byte("\n")) {
			at := fmt.Sprintf("%s:%d", name, i+1)
			if m := machinePath.FindSubmatch(l); m != nil {
				found = append(found, fmt.Sprintf("%s: names the machine path %s", at, m[1]))
			}
			for _, host := range registries {
				if bytes.Contains(l, []byte(host)) {
					found = append(found, fmt.Sprintf("%s: names the registry host %s", at, host))
				}
			}
			if secret.Match(l) {
				found = append(found, at+": holds what looks like a secret")
			}
		}
	}
	return found
}
