package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// fault is a change of one place in a file.
type fault struct {
	id   int
	file string
	line int
	what string // is wrong: "always: len(b) == 0"
}

// String is "series.go:271: always: n > 0".
func (f fault) String() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.what) }

// source is a file with its faults in it, which are all off.
type source struct {
	name   string
	text   []byte
	faults []fault
	edits  []edit
	set    *token.FileSet
}

// edit inserts a text. All lines keep their numbers.
type edit struct {
	at, span int // where, and how long what it opens or closes is
	id       int // of its fault: of two faults of one place that with the smaller one is outside
	closes   bool
	text     string
}

// parse returns a file with faults in it, numbered from first on. On the lines of except there are
// none: they would not compile.
func parse(name string, text []byte, first int, except map[int]bool) (*source, error) {
	s := &source{name: name, text: text, set: token.NewFileSet()}
	file, err := parser.ParseFile(s.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s.edits = append(s.edits, edit{
		at:   s.offset(file.Name.End()),
		text: `; import "downpour/integration/mutator/mutant"`,
	})
	next := first
	s.walk(file, func(node ast.Node, what, open, close string) {
		line, last := s.set.Position(node.Pos()).Line, s.set.Position(node.End()).Line
		for l := line; l <= last; l++ {
			if except[l] {
				return
			}
		}
		from, to := s.offset(node.Pos()), s.offset(node.End())
		s.faults = append(s.faults, fault{next, name, line, what + ": " + short(text[from:to])})
		id := fmt.Sprint(next)
		s.edits = append(s.edits,
			edit{from, to - from, next, false, strings.ReplaceAll(open, "#", id)},
			edit{to, to - from, next, true, strings.ReplaceAll(close, "#", id)})
		next++
	})
	return s, nil
}

func (s *source) offset(p token.Pos) int { return s.set.Position(p).Offset }

func (s *source) of(n ast.Node) string { return string(s.text[s.offset(n.Pos()):s.offset(n.End())]) }

// short is the begin of a text, on one line.
func short(text []byte) string {
	words := strings.Join(strings.Fields(string(text)), " ")
	if len(words) > 90 {
		return words[:90] + "…"
	}
	return words
}

// walk calls put for each place of a fault, with the texts around it; # stands for its number.
func (s *source) walk(file *ast.File, put func(node ast.Node, what, open, close string)) {
	// A condition is set after it was computed, so that a test reaches only a fault that changes it. What sets all of
	// it is not tried of its parts again.
	type setting struct {
		ast.Expr
		to bool
	}
	done := map[setting]bool{}
	set := func(e ast.Expr, to bool) {
		s := setting{ast.Unparen(e), to}
		switch {
		case done[s]:
		case to:
			put(e, "always", "((", ") || mutant.On(#))")
		default:
			put(e, "never", "((", ") && !mutant.On(#))")
		}
		done[s] = true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl: // constants and types are not computed, and imports are texts
			return n.Tok == token.VAR
		case *ast.IfStmt:
			set(n.Cond, true)
			set(n.Cond, false)
		case *ast.ForStmt:
			if n.Cond != nil {
				set(n.Cond, true)
				set(n.Cond, false)
			}
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LAND, token.LOR:
				set(n, n.Op == token.LOR)
				for _, part := range []ast.Expr{n.X, n.Y} {
					set(part, n.Op == token.LAND)
					done[setting{ast.Unparen(part), n.Op == token.LOR}] = true
				}
			default:
				equality := n.Op == token.EQL || n.Op == token.NEQ
				with := wrong[n.Op]
				if with != token.ILLEGAL && simple(n.X) && simple(n.Y) && !(equality && done[setting{n, true}]) {
					x, y := s.of(n.X), s.of(n.Y)
					put(n, "with "+with.String(), "mutant.Pick(#, ", fmt.Sprintf(", %s %s %s)", x, with, y))
				}
			}
		case *ast.ReturnStmt:
			if len(n.Results) == 0 {
				break
			}
			id, ok := n.Results[len(n.Results)-1].(*ast.Ident)
			if ok && strings.HasPrefix(strings.ToLower(id.Name), "err") {
				put(id, "no error", "mutant.Err(#, ", ")")
			}
		case *ast.BlockStmt:
			s.drop(n.List, put)
		case *ast.CaseClause:
			s.drop(n.Body, put)
		case *ast.CommClause:
			s.drop(n.Body, put)
		}
		return true
	})
}

// wrong is what stands in the place of an operator.
var wrong = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.ADD: token.SUB, token.SUB: token.ADD, token.SHL: token.SHR, token.SHR: token.SHL,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.MUL: token.ADD, token.AND: token.OR,
}

// endsByItself matches what makes a timer, or a context with one: what is deferred after it only ends it earlier.
var endsByItself = regexp.MustCompile(`:= (context\.With(Timeout|Deadline)|time\.New(Timer|Ticker))\(`)

// simple reports whether an expression can be computed twice.
func simple(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident, *ast.BasicLit:
		return true
	case *ast.SelectorExpr:
		return simple(e.X)
	case *ast.CallExpr:
		f, ok := e.Fun.(*ast.Ident)
		return ok && (f.Name == "len" || f.Name == "cap") && simple(e.Args[0])
	}
	return false
}

// drop leaves out statements, one at a time.
func (s *source) drop(list []ast.Stmt, put func(node ast.Node, what, open, close string)) {
	for i, st := range list {
		switch st := st.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt:
		case *ast.DeferStmt:
			if i > 0 && endsByItself.MatchString(s.of(list[i-1])) {
				continue
			}
		case *ast.AssignStmt:
			if st.Tok == token.DEFINE {
				continue
			}
		case *ast.BranchStmt:
			if st.Tok != token.CONTINUE && st.Tok != token.BREAK {
				continue
			}
		default:
			continue
		}
		put(st, "left out", "if !mutant.On(#) { ", " }")
	}
}

// changed returns the text with all faults in it.
func (s *source) changed() []byte {
	slices.SortStableFunc(s.edits, func(a, b edit) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		// What ends here comes first, the inner before the outer, then what begins here, the outer
		// before the inner.
		switch {
		case a.closes != b.closes:
			if a.closes {
				return -1
			}
			return 1
		case a.closes:
			return cmp.Or(cmp.Compare(a.span, b.span), cmp.Compare(b.id, a.id))
		default:
			return cmp.Or(cmp.Compare(b.span, a.span), cmp.Compare(a.id, b.id))
		}
	})
	var out []byte
	at := 0
	for _, e := range s.edits {
		out = append(append(out, s.text[at:e.at]...), e.text...)
		at = e.at
	}
	return append(out, s.text[at:]...)
}
