package docsite_test

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	docsite "downpour/gateway/extra/docsite"
	"downpour/gateway/extra/tools"
	"downpour/pushdown/process/settings"
)

var (
	variable = regexp.MustCompile(`DOWNPOUR_[A-Z0-9_]*\w`)
	codeLine = regexp.MustCompile("`[^`\n]+`|(?m)^(?:    |\t).*$")
	fence    = regexp.MustCompile("(?s)```.*?```")
	// ours is one of our programs, by its name or by its folder, and what follows it.
	ours = regexp.MustCompile(
		`(?:^|[\s;|&(])(?:\./)?(?:[a-z/]+/)?(gateway|pushdown|bench|mutants)((?: [^|;&#<>\n]*)?)`,
	)
	flagWord = regexp.MustCompile(`(?:^|[\s\[|])--?([a-z][a-z0-9-]*)`)
	lone     = regexp.MustCompile("^`--?([a-z][a-z0-9-]+)(?:[ =][^`]*)?`$")
)

// pagesOf returns the texts of all pages except the list of changes, which also mentions what is gone.
func pagesOf(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, topic := range docsite.Topics() {
		for _, p := range topic.Pages {
			text, err := os.ReadFile(root + "/" + p.Path)
			if err != nil {
				t.Fatal(err)
			}
			if p.Path != "CHANGELOG.md" {
				all[p.Path] = string(text)
			}
		}
	}
	return all
}

// Every variable that a page names is known to a program, or is the beginning of some, with a star.
func TestPages_variables(t *testing.T) {
	known := settings.Known()
	for page, text := range pagesOf(t) {
		for _, at := range variable.FindAllStringIndex(text, -1) {
			name := text[at[0]:at[1]]
			beginning := strings.HasPrefix(text[at[1]:], "*")
			ok := slices.ContainsFunc(known, func(k string) bool {
				return k == name || beginning && strings.HasPrefix(k, name)
			})
			if !ok {
				t.Errorf("%s names %s, which no program knows", page, name)
			}
		}
	}
}

// Every flag that a page gives to one of our programs is one of that program, and of the command, and
// every flag that stands alone is one of some program.
func TestPages_flags(t *testing.T) {
	programs, commands := programFlags(t), commandFlags(t)
	checked := 0
	for page, text := range pagesOf(t) {
		for _, block := range fence.FindAllString(text, -1) {
			text += "\n    " + strings.ReplaceAll(block, "\n", "\n    ")
		}
		for _, line := range codeLine.FindAllString(text, -1) {
			bare := strings.Trim(line, "`")
			// The page of tools names commands without the program.
			if first, _, _ := strings.Cut(bare, " "); commands[first] != nil && page == "gateway/docs/tools.md" {
				bare = "gateway " + bare
			}
			for _, m := range ours.FindAllStringSubmatch(bare, -1) {
				program, rest := m[1], m[2]
				allowed := programs[program]
				words := strings.Fields(rest)
				switch {
				case strings.Contains(bare, "go test "):
					allowed = programs["tests"]
				case program == "gateway" && len(words) > 0 && commands[words[0]] != nil:
					allowed = commands[words[0]]
				}
				for _, f := range flagWord.FindAllStringSubmatch(rest, -1) {
					checked++
					if !allowed[f[1]] && !foreign[f[1]] {
						t.Errorf("%s: %s has no flag -%s: %s",
							page, strings.Join(append([]string{program}, words[:min(1, len(words))]...), " "),
							f[1], strings.TrimSpace(bare))
					}
				}
			}
			if m := lone.FindStringSubmatch(line); m != nil {
				checked++
				if !known(m[1], programs, commands) && !foreign[m[1]] {
					t.Errorf("%s: no program of ours has the flag in %s", page, line)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d flags were found on the pages", checked)
	}
	t.Logf("%d flags", checked)
}

func known(name string, sets ...map[string]map[string]bool) bool {
	return slices.ContainsFunc(sets, func(set map[string]map[string]bool) bool {
		for _, flags := range set {
			if flags[name] {
				return true
			}
		}
		return false
	})
}

// foreign are flags that all programs have, those of go test, and one of OpenTSDB's fsck that a table names.
var foreign = func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(
		"h help args bench benchtime benchmem count fuzz fuzztime parallel race run tags timeout update sync",
	) {
		all[name] = true
	}
	return all
}()

// programFlags returns the flags of each of our programs, and of tests, as the source defines them.
func programFlags(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{"tests": {}}
	folders := map[string]string{"gateway/cmd/gateway": "gateway", "pushdown/cmd/pushdown": "pushdown",
		"bench/cmd/bench": "bench", "integration/mutants": "mutants",
		"integration/e2e/e2etest": "tests"}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (len(name) > 1 && strings.HasPrefix(d.Name(), ".") ||
			slices.Contains([]string{"node_modules", "build", "testdata"}, d.Name())) {
			return fs.SkipDir
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		program := folders[path.Dir(name)]
		if strings.HasSuffix(name, "_test.go") {
			program = "tests"
		}
		if program == "" {
			return nil
		}
		if all[program] == nil {
			all[program] = map[string]bool{}
		}
		for _, f := range definedFlags(t, root+"/"+name) {
			all[program][f] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// definedFlags returns the names in calls such as flags.Bool("name", …) and flags.BoolVar(&x, "name", …).
func definedFlags(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		kind, place := strings.CutSuffix(f.Sel.Name, "Var")
		kinds := []string{"Bool", "String", "Int", "Int64", "Uint", "Uint64", "Float64", "Duration", "Func", ""}
		if !slices.Contains(kinds, kind) {
			return true
		}
		i := 0
		if place {
			i = 1
		}
		if len(call.Args) > i {
			if text, ok := call.Args[i].(*ast.BasicLit); ok && text.Kind == token.STRING {
				name, err := strconv.Unquote(text.Value)
				if err == nil && !strings.ContainsAny(name, " %") {
					names = append(names, name)
				}
			}
		}
		return true
	})
	return names
}

// commandFlags returns the flags of each command of the gateway, as its help lists them.
func commandFlags(t *testing.T) map[string]map[string]bool {
	t.Helper()
	listed := regexp.MustCompile(`(?m)^  -([a-z][a-z0-9-]*)`)
	all := map[string]map[string]bool{}
	for _, c := range tools.Commands() {
		var help bytes.Buffer
		if err := c.Run(context.Background(), &tools.Env{Out: &help, Err: &help}, []string{"-h"}); err != nil {
			t.Fatal(err)
		}
		all[c.Name] = map[string]bool{}
		for _, m := range listed.FindAllStringSubmatch(help.String(), -1) {
			all[c.Name][m[1]] = true
		}
	}
	return all
}
