package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each test on real servers runs with every change or belongs to a target, so that none is forgotten.
func TestTargets_complete(t *testing.T) {
	for _, dir := range []string{"integration", "bench"} {
		for _, name := range serverTests(t, dir) {
			if regexp.MustCompile(realTests).MatchString(name) && dir == "integration" {
				continue
			}
			if !inTarget(t, dir, name) {
				t.Errorf("%s of ./%s is in no target of soak", name, dir)
			}
		}
	}
}

// serverTests names the tests behind the tag integration.
func serverTests(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, error %v", dir, len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "//go:build integration\n") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// inTarget reports whether a target's command runs the test.
func inTarget(t *testing.T, dir, name string) bool {
	t.Helper()
	for _, target := range targets {
		command := target.long
		folder, run := false, ""
		for i, arg := range command {
			folder = folder || arg == "./"+dir
			if arg == "-run" {
				run = command[i+1]
			}
		}
		if folder && regexp.MustCompile(run).MatchString(name) {
			return true
		}
	}
	return false
}

// A file calls for the targets of the longest path that it lies below.
func TestCalledFor(t *testing.T) {
	for file, want := range map[string]string{
		"pushdown/store/hbase/kerberos/keep.go": "kerberos tickets",
		"pushdown/resultcache/cache.go":         "proofs result-cache",
		"gateway/web/main.js":                   "browser",
		"README.md":                             "",
	} {
		var names []string
		for _, target := range calledFor([]string{file}) {
			names = append(names, target.name)
		}
		if d := cmp.Diff(want, strings.Join(names, " ")); d != "" {
			t.Errorf("%s: -want +got\n%s", file, d)
		}
	}
}

// Names are unique, those of turns exist, and each target has a command.
func TestTargets_names(t *testing.T) {
	seen := map[string]bool{}
	for _, target := range targets {
		if seen[target.name] || len(target.command(long)) == 0 {
			t.Errorf("target %s: twice, or without a command", target.name)
		}
		seen[target.name] = true
	}
	if _, err := named(turns); err != nil {
		t.Error(err)
	}
	if _, err := named([]string{"none"}); err == nil {
		t.Error("a target that does not exist: no error")
	}
}

// The simulation is tried with faults that there are: one whose name no source has is never planted.
func TestTargets_faults(t *testing.T) {
	planted := map[string]bool{}
	marker := regexp.MustCompile("//" + `fault:([a-z0-9-]+)`)
	for _, dir := range []string{"encoding", "gateway", "pushdown"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range marker.FindAllSubmatch(text, -1) {
				planted[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range strings.SplitSeq(strings.Trim(inWorlds, "^()$"), "|") {
		if !planted[name] {
			t.Errorf("the target simulation-power names the fault %s, which no source has", name)
		}
	}
}
