package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Every fault still has its place in the sources. All lost ones are named, not only the first.
func TestMutants_places(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) < 20 {
		t.Errorf("%d faults, want at least 20", len(mutants))
	}
	dir := t.TempDir()
	for _, m := range mutants {
		if _, err := overlay(root, dir, m); err != nil {
			t.Error(err)
		}
	}
}

// Every fault compiles. Faults of different files are compiled together, so there are as many builds
// as the file with most faults has faults.
func TestMutants_compile(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for n, rounds := 0, deal(mutants); n < len(rounds); n++ {
		dir := t.TempDir()
		file, err := overlay(root, dir, rounds[n]...)
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"build", "-overlay=" + file, "-o", os.DevNull}
		cmd := exec.CommandContext(t.Context(), "go", append(args, packages(rounds[n])...)...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("round %d: %v\n%s", n, err, out)
		}
	}
}

// deal divides mutants so that no two of one round change one file.
func deal(all []mutant) (rounds [][]mutant) {
	count := map[string]int{}
	for _, m := range all {
		n := count[m.file]
		count[m.file]++
		if n == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[n] = append(rounds[n], m)
	}
	return rounds
}

func packages(mutants []mutant) (out []string) {
	for _, m := range mutants {
		dir := "./" + m.file[:strings.LastIndexByte(m.file, '/')]
		if !strings.HasSuffix(m.file, ".go") {
			dir = "./" + m.pkg() // which embeds it
		}
		if !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// Names are unique, and every named test is there.
func TestMutants_namesAndTests(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range mutants {
		if seen[m.name] {
			t.Errorf("two faults are named %s", m.name)
		}
		seen[m.name] = true
		if !hasTest(t, root+"/"+m.pkg(), m.testName()) {
			t.Errorf("%s: there is no %s in %s", m.name, m.testName(), m.pkg())
		}
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(dir + "/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+name+"(") {
			return true
		}
	}
	return false
}

// A fault counts as caught if the test ran and failed, not if it was not built or did not run.
func TestFailed(t *testing.T) {
	for output, want := range map[string]bool{
		"--- FAIL: TestX (0.01s)\n    x_test.go:1: no\nFAIL\n":                true,
		"    --- FAIL: TestX/sub (0.01s)\n":                                   true,
		"panic: test timed out after 1m0s\n":                                  true,
		"FAIL\tdownpour/x [build failed]\nFAIL\n":                             false,
		"ok  \tdownpour/x\t0.1s [no tests to run]\n":                          false,
		"# downpour/x\nx.go:1: undefined: y\nFAIL\tdownpour/x [build failed]": false,
	} {
		if got := failed(output, "TestX"); got != want {
			t.Errorf("%q: %t, want %t", output, got, want)
		}
	}
}

// A fault whose text is not in the file, or is there twice, is an error.
func TestMutate(t *testing.T) {
	m := mutant{name: "m", file: "f.go", old: "a", new: "b"}
	if got, err := m.mutate("xay"); err != nil || got != "xby" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, text := range []string{"xy", "aa"} {
		if _, err := m.mutate(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
