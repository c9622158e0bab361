package integration

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// storeDir is the package of store.Store, and of store.Features, which are what a store can do beyond that.
const storeDir = "pushdown/store"

// features reports what would let a store that wraps another one lose an ability, or hand out the inner
// store's, because nobody has thought of it:
//
//   - a type that embeds a store, and has a call of its own or nothing else in it, without a Features method of
//     its own: it would inherit Features, through which its callers go past its calls, or past what it hides;
//   - in what is no test, Features that are not returned as a literal which names every field, or none;
//   - a type assertion to an interface of package store, or to one that embeds it: what a store can do is found
//     by Features alone.
func features(h *house) (found []string) {
	s := readAbilities(h)
	if len(s.fields) == 0 {
		return nil // a planted tree without stores
	}
	for _, f := range h.files {
		imports := importedDirs(h, f)
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				found = append(found, s.inherited(h, f, d)...)
			}
			if d, ok := decl.(*ast.FuncDecl); ok && !f.test && !isForTests(f.room.dir) && d.Recv != nil &&
				d.Name.Name == "Features" {
				found = append(found, s.undecided(h, f, d)...)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			var to []ast.Expr
			switch n := n.(type) {
			case *ast.TypeAssertExpr:
				to = []ast.Expr{n.Type}
			case *ast.CaseClause:
				to = n.List
			}
			if slices.ContainsFunc(to, func(t ast.Expr) bool { return s.interfaces[typeName(f, imports, t)] }) {
				found = append(found, fmt.Sprintf("%s: asserts an interface of %s; ask Features", h.line(n), storeDir))
			}
			return true
		})
	}
	return found
}

// abilities are what the rule knows of all types by name, which is the folder of its package, a dot and the name in it.
type abilities struct {
	fields     []string                   // of store.Features
	calls      map[string]bool            // of stores, and of their features
	kinds      map[string]bool            // interfaces, and other names
	interfaces map[string]bool            // of those, what is of package store or embeds it
	own        map[string]map[string]bool // methods of a type that is no interface
	are        map[string]bool            // types that have a Features method
}

// readAbilities reads the types of a tree.
func readAbilities(h *house) *abilities {
	s := &abilities{
		calls:      map[string]bool{},
		kinds:      map[string]bool{},
		interfaces: map[string]bool{},
		own:        map[string]map[string]bool{},
		are:        map[string]bool{},
	}
	embedded := map[string][]string{} // in a type, or what it is another name of
	for _, f := range h.files {
		imports := importedDirs(h, f)
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv != nil {
				of := typeName(f, imports, d.Recv.List[0].Type)
				if s.own[of] == nil {
					s.own[of] = map[string]bool{}
				}
				s.own[of][d.Name.Name] = true
				s.are[of] = s.are[of] || d.Name.Name == "Features"
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok {
				s.enter(f, imports, t, embedded)
			}
			return true
		})
	}
	for grows := true; grows; {
		grows = false
		for of, all := range embedded {
			if !s.are[of] && slices.ContainsFunc(all, func(e string) bool { return s.are[e] }) {
				s.are[of], grows = true, true
			}
			if s.kinds[of] && !s.interfaces[of] &&
				slices.ContainsFunc(all, func(e string) bool { return s.interfaces[e] }) {
				s.interfaces[of], grows = true, true
			}
		}
	}
	return s
}

// enter notes a type.
func (s *abilities) enter(f *goFile, imports map[string]string, t *ast.TypeSpec, embedded map[string][]string) {
	of := f.room.dir + "." + t.Name.Name
	list := fieldsOf(t.Type)
	if list == nil {
		if t.Assign.IsValid() {
			s.kinds[of] = true
			embedded[of] = append(embedded[of], typeName(f, imports, t.Type))
		}
		return
	}
	_, isInterface := t.Type.(*ast.InterfaceType)
	s.kinds[of] = isInterface
	inStore := f.room.dir == storeDir && !f.test
	if isInterface && inStore {
		s.interfaces[of] = true
	}
	for _, field := range list.List {
		if len(field.Names) == 0 {
			embedded[of] = append(embedded[of], typeName(f, imports, field.Type))
		}
		for _, name := range field.Names {
			s.are[of] = s.are[of] || isInterface && name.Name == "Features"
			if of == storeDir+".Features" {
				s.fields = append(s.fields, name.Name)
			}
			// Calls of scanners and of watches are not those of their store.
			_, call := field.Type.(*ast.FuncType)
			if call && inStore && t.Name.Name != "Scanner" && t.Name.Name != "Watch" && name.Name != "Features" {
				s.calls[name.Name] = true
			}
		}
	}
}

// inherited reports types that would inherit Features.
func (s *abilities) inherited(h *house, f *goFile, d *ast.GenDecl) (found []string) {
	imports := importedDirs(h, f)
	for _, spec := range d.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		st, ok := t.Type.(*ast.StructType)
		own := s.own[f.room.dir+"."+t.Name.Name]
		if !ok || own["Features"] {
			continue
		}
		for _, field := range st.Fields.List {
			if len(field.Names) > 0 || !s.are[typeName(f, imports, field.Type)] {
				continue
			}
			if len(st.Fields.List) == 1 {
				found = append(found, fmt.Sprintf("%s: %s embeds a store and nothing else, and has no Features",
					h.line(t), t.Name.Name))
				continue
			}
			for _, call := range slices.Sorted(maps.Keys(own)) {
				if s.calls[call] {
					found = append(found, fmt.Sprintf("%s: %s embeds a store, has %s of its own, and no Features",
						h.line(t), t.Name.Name, call))
					break
				}
			}
		}
	}
	return found
}

// undecided reports a Features method that says nothing of some field.
func (s *abilities) undecided(h *house, f *goFile, d *ast.FuncDecl) []string {
	last, ok := d.Body.List[len(d.Body.List)-1].(*ast.ReturnStmt)
	if ok && len(last.Results) == 1 {
		if literal, ok := last.Results[0].(*ast.CompositeLit); ok {
			missing := slices.Clone(s.fields)
			for _, e := range literal.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					missing = slices.DeleteFunc(missing, func(name string) bool {
						return name == kv.Key.(*ast.Ident).Name
					})
				}
			}
			if len(literal.Elts) == 0 || len(missing) == 0 {
				return nil
			}
			return []string{fmt.Sprintf("%s: Features says nothing of %s", h.line(d), strings.Join(missing, ", "))}
		}
	}
	return []string{fmt.Sprintf("%s: Features returns no literal, so it says nothing of each field", h.line(d))}
}

// fieldsOf returns the fields of a struct, or the methods of an interface.
func fieldsOf(t ast.Expr) *ast.FieldList {
	switch t := t.(type) {
	case *ast.StructType:
		return t.Fields
	case *ast.InterfaceType:
		return t.Methods
	}
	return nil
}

// importedDirs returns the folders of our packages by the names that a file has for them.
func importedDirs(h *house, f *goFile) map[string]string {
	dirs := map[string]string{}
	for _, spec := range f.ast.Imports {
		whole, _ := strconv.Unquote(spec.Path.Value)
		dir, ours := strings.CutPrefix(whole, h.module+"/")
		if !ours {
			continue
		}
		name := path.Base(dir)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		dirs[name] = dir
	}
	return dirs
}

// typeName names a type, or that which a pointer points to.
func typeName(f *goFile, imports map[string]string, t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return typeName(f, imports, t.X)
	case *ast.ParenExpr:
		return typeName(f, imports, t.X)
	case *ast.Ident:
		return f.room.dir + "." + t.Name
	case *ast.SelectorExpr:
		if x, ok := t.X.(*ast.Ident); ok && imports[x.Name] != "" {
			return imports[x.Name] + "." + t.Sel.Name
		}
	}
	return ""
}
