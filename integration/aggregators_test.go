package integration

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding/scanplan"
	"downpour/integration/conformance"
	"downpour/pushdown/operator/aggregate"
)

// The table of aggregators on the compatibility page says what the code does: each one's class,
// interpolation and file, and how many recorded answers use it. The tests that the page names
// exist.
func TestDocs_aggregators(t *testing.T) {
	page, err := os.ReadFile("../gateway/docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "## Where an aggregator is computed and tested\n")
	if !found {
		t.Fatal("compatibility.md lacks the section on where an aggregator is computed and tested")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var got []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") && strings.Contains(line, ".go`") && !strings.Contains(line, "/") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	recorded := recordedAggregators(t)
	files := aggregatorFiles(t)
	var want []string
	for _, name := range aggregate.Names() {
		f, _ := aggregate.Lookup(scanplan.Aggregator(name))
		if recorded[name] == 0 {
			t.Errorf("%s: no recorded answer uses it, want at least 1", name)
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | `%s` | %d |",
			name, f.Class, f.Interpolation, files[name], recorded[name]))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-code +page\n%s", d)
	}
	namedTests(t, section)
}

// recordedAggregators counts the recorded queries by the aggregators that they
// group or downsample with.
func recordedAggregators(t *testing.T) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, name := range conformance.Queries() {
		var r struct {
			Queries []struct {
				Request struct {
					Queries []struct{ Aggregator, Downsample string }
				}
			}
		}
		if err := conformance.Decode(name, &r); err != nil {
			t.Fatal(err)
		}
		for _, q := range r.Queries {
			used := map[string]bool{}
			for _, s := range q.Request.Queries {
				used[s.Aggregator] = true
				if parts := strings.Split(s.Downsample, "-"); len(parts) > 1 {
					used[parts[1]] = true
				}
			}
			for name := range used {
				count[name]++
			}
		}
	}
	return count
}

// aggregatorFiles finds the file that declares each aggregator's arithmetic, which
// its row of the table names.
func aggregatorFiles(t *testing.T) map[string]string {
	t.Helper()
	fset := token.NewFileSet()
	paths, err := filepath.Glob("../pushdown/operator/aggregate/*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared, table := map[string]string{}, (*ast.CompositeLit)(nil)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch d := n.(type) {
			case *ast.FuncDecl:
				declared[d.Name.Name] = filepath.Base(path)
			case *ast.ValueSpec:
				for i, name := range d.Names {
					declared[name.Name] = filepath.Base(path)
					if name.Name == "table" {
						table = d.Values[i].(*ast.CompositeLit)
					}
				}
			}
			return true
		})
	}
	files := map[string]string{}
	for _, row := range table.Elts {
		name, arithmetic := "", ""
		for _, field := range row.(*ast.CompositeLit).Elts {
			f := field.(*ast.KeyValueExpr)
			switch identifier(f.Key) {
			case "Name":
				name = strings.Trim(f.Value.(*ast.BasicLit).Value, `"`)
			case "arithmetic":
				arithmetic = identifier(f.Value)
			}
		}
		files[name] = declared[arithmetic]
	}
	return files
}

// identifier is the name of a variable, or of the function that a call names.
func identifier(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.CallExpr:
		return identifier(e.Fun)
	}
	return ""
}

// namedTests looks for every test that the section names, FILE: `TestA`,
// `TestB`, in its file.
func namedTests(t *testing.T, section string) {
	t.Helper()
	named := 0
	for line := range strings.Lines(section) {
		words := strings.Split(line, "`")
		path := slices.IndexFunc(words, func(w string) bool { return strings.HasSuffix(w, "_test.go") })
		if path < 0 {
			continue
		}
		source, err := os.ReadFile(filepath.Join("..", words[path]))
		if err != nil {
			t.Error(err)
		}
		for _, word := range words {
			if !strings.HasPrefix(word, "Test") {
				continue
			}
			named++
			if !strings.Contains(string(source), "func "+word+"(") {
				t.Errorf("%s has no %s", words[path], word)
			}
		}
	}
	if named < 8 {
		t.Errorf("the section names %d tests, want at least 8", named)
	}
}
