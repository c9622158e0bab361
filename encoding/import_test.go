package encoding_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fenced is a block of a page between lines of three backticks, with its language.
var fenced = regexp.MustCompile("(?s)\n```(\\w*)\n(.*?)```")

// The program that docs/README.md has for a module of somebody else is built in one, without the network, and prints
// what the page says.
func TestReadme_program(t *testing.T) {
	page, err := os.ReadFile("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := fenced.FindAllSubmatch(page, -1)
	if len(blocks) != 3 || string(blocks[1][1]) != "go" {
		t.Fatalf("docs/README.md has %d blocks, want go.mod, a program of Go and what it prints", len(blocks))
	}
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	module := strings.Replace(string(blocks[0][2]), "=> ../downpour", "=> "+top, 1)
	for name, text := range map[string]string{"go.mod": module, "main.go": string(blocks[1][2])} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command("go", "run", ".")
	run.Dir = dir
	run.Env = append(run.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	out, err := run.CombinedOutput()
	if got, want := string(out), string(blocks[2][2]); err != nil || got != want {
		t.Errorf("it printed %q, %v, want %q", got, err, want)
	}
}
