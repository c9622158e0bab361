package integration

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// unseeded are tests that still draw from the global generator. The list may only get shorter.
var unseeded = map[string]string{
	"integration/compaction_test.go":       "when a job is killed",
	"integration/kerberos_tickets_test.go": "which stretch is asked for",
}

// Generators that are given their seed, and the types of them; all else in the packages is the global generator.
var seeded = []string{
	"New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf", "Rand", "Source", "Source64", "PCG", "ChaCha8",
	"Zipf",
}

const seedtestAdvice = "; take it from encoding/seedtest"

// draws reports tests whose draws no seed repeats.
func draws(h *house) (found []string) {
	for _, f := range h.files {
		if !f.test {
			continue
		}
		var lines []string
		for _, imported := range []string{"math/rand", "math/rand/v2"} {
			for _, c := range othersOf(f, imported, seeded) {
				lines = append(lines, fmt.Sprintf("%s: rand.%s draws from the global generator%s",
					h.line(c), c.Sel.Name, seedtestAdvice))
			}
		}
		for _, c := range callsOf(f, "crypto/rand", "Read", "Int", "Text", "Prime") {
			lines = append(lines, fmt.Sprintf("%s: rand.%s draws what no seed repeats%s",
				h.line(c), c.Sel.Name, seedtestAdvice))
		}
		for _, n := range clockSeeds(f) {
			lines = append(lines, h.line(n)+": a seed of the clock"+seedtestAdvice)
		}
		found = append(found, except(f, unseeded, "draws from the global generator", lines)...)
	}
	for _, r := range h.rooms() {
		const rapid, seedtest = "pgregory.net/rapid", "encoding/seedtest"
		if (r.imports[rapid] || r.tests[rapid]) && !r.imports[h.module+"/"+seedtest] &&
			!r.tests[h.module+"/"+seedtest] && r.dir != seedtest && r.dir != "integration/mutants" {
			found = append(found, r.dir+": uses rapid without encoding/seedtest, which gives it the seed")
		}
	}
	return found
}

// except drops the lines of a file that is excepted, and reports an exception that is no longer one.
func except(f *goFile, exceptions map[string]string, of string, lines []string) []string {
	_, excepted := exceptions[f.path]
	switch {
	case excepted && len(lines) == 0:
		return []string{fmt.Sprintf("%s: is an exception that %s, but nothing there does; take it off the list",
			f.path, of)}
	case excepted:
		return nil
	}
	return lines
}

// othersOf finds the uses of everything in an imported package but of some names.
func othersOf(f *goFile, imported string, but []string) (found []*ast.SelectorExpr) {
	local := localName(f, imported)
	if strings.HasPrefix(imported, "math/rand") && local == "v2" {
		local = "rand"
	}
	if local == "" {
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && !slices.Contains(but, s.Sel.Name) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == local {
				found = append(found, s)
			}
		}
		return true
	})
	return found
}

// clockSeeds finds generators, and variables named like a seed, that are given the time.
func clockSeeds(f *goFile) (found []ast.Node) {
	ofClock := func(e ast.Node) (clock bool) {
		ast.Inspect(e, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok &&
				slices.Contains([]string{"UnixNano", "UnixMicro", "UnixMilli", "Unix", "Nanosecond"}, s.Sel.Name) {
				clock = clock || len(callsIn(s.X, "time", "Now")) > 0
			}
			return true
		})
		return clock
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok &&
				slices.Contains([]string{"NewPCG", "NewSource", "NewChaCha8", "Seed"}, s.Sel.Name) {
				for _, a := range n.Args {
					if ofClock(a) {
						found = append(found, a)
					}
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if id, ok := to.(*ast.Ident); ok && strings.Contains(strings.ToLower(id.Name), "seed") &&
					i < len(n.Rhs) && ofClock(n.Rhs[i]) {
					found = append(found, n)
				}
			}
		}
		return true
	})
	return found
}

// callsIn finds uses of functions of a package below a node, by the package's own name.
func callsIn(below ast.Node, name string, functions ...string) (found []ast.Node) {
	ast.Inspect(below, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(functions, s.Sel.Name) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == name {
				found = append(found, s)
			}
		}
		return true
	})
	return found
}

// clocked are tests that compare how long something took, outside of a file that has a bubble, and why.
var clocked = map[string]string{
	"pushdown/compaction/background/calls_test.go": "the bubble is that of simulate",
	"pushdown/store/hbase/rights_test.go":          "the bubble is that of slowlyOn",
	"pushdown/store/hbase/encryption_test.go":      "a slow writer lets time pass, and bounds nothing",
}

// elapsed reports tests that compare how long something took with a bound: on a busy machine it takes longer.
// Tests on real servers have no other clock; how long they may take is a matter of their own.
func elapsed(h *house) (found []string) {
	for _, f := range h.files {
		// In a bubble of synctest only what is waited for takes time.
		if !f.test || f.room.dir == "integration" || localName(f, "testing/synctest") != "" {
			continue
		}
		var lines []string
		for _, n := range durations(f) {
			lines = append(lines, h.line(n)+": compares how long something took; count, or use testing/synctest")
		}
		found = append(found, except(f, clocked, "compares how long something took", lines)...)
	}
	return found
}

// durations finds comparisons of time.Since, or of what it was assigned to in the same function.
func durations(f *goFile) (found []ast.Node) {
	comparisons := []token.Token{token.LSS, token.GTR, token.LEQ, token.GEQ, token.EQL, token.NEQ}
	for _, decl := range f.ast.Decls {
		took := map[string]bool{}
		ast.Inspect(decl, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
				for i, to := range a.Lhs {
					if id, ok := to.(*ast.Ident); ok && len(callsIn(a.Rhs[i], "time", "Since")) > 0 {
						took[id.Name] = true
					}
				}
			}
			return true
		})
		ast.Inspect(decl, func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			if !ok || !slices.Contains(comparisons, b.Op) {
				return true
			}
			ast.Inspect(b, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if ok && took[id.Name] {
					found = append(found, b)
				}
				return true
			})
			if len(callsIn(b, "time", "Since")) > 0 {
				found = append(found, b)
			}
			return true
		})
	}
	return found
}

// stale names exceptions of files that are gone.
func stale(h *house) (found []string) {
	if h.texts["integration/house_seeds_test.go"] == nil {
		return nil // a planted tree
	}
	for _, list := range []map[string]string{unseeded, clocked} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if h.texts[name] == nil {
				found = append(found, name+": is an exception to a rule, but is not there")
			}
		}
	}
	return found
}
