package builds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program writes a script to a path; its text holds the path, so no two are alike.
func program(t *testing.T, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+name), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Make takes the path of a gateway alone, or of a directory with a gateway and perhaps a pushdown
// server. Anything else is an error.
func TestMake_programs(t *testing.T) {
	dir := t.TempDir()
	program(t, dir, "both", "gateway")
	program(t, dir, "both", "pushdown")
	program(t, dir, "one", "gateway")
	m := Maker{Root: dir, Dir: filepath.Join(dir, "out")}

	both, err := m.Make(t.Context(), "A", "build:"+filepath.Join(dir, "both"))
	if err != nil || both.Name != "A" || both.Pushdown != filepath.Join(dir, "both", "pushdown") {
		t.Errorf("%+v, %v; want build A with both programs", both, err)
	}
	alone, err := m.Make(t.Context(), "B", "build:"+both.Gateway)
	if err != nil || alone.Gateway != both.Gateway || alone.Pushdown != "" {
		t.Errorf("%+v, %v; want the gateway without a pushdown server", alone, err)
	}
	one, err := m.Make(t.Context(), "B", "build:"+filepath.Join(dir, "one"))
	if err != nil || one.Pushdown != "" {
		t.Errorf("%+v, %v; want no pushdown server", one, err)
	}

	// Programs are told apart by their bytes, whatever their names are.
	told := func(b Build) string { _, sum, _ := strings.Cut(b.Version, ", sha256 "); return sum }
	if told(both) == "" || told(both) != told(alone) || told(both) == told(one) {
		t.Errorf("versions %q, %q, %q; want the same sum in the first two and another in the third",
			both.Version, alone.Version, one.Version)
	}

	for text, want := range map[string]string{
		"build:" + filepath.Join(dir, "none"): "no such file",
		"build:" + dir:                        "gateway: no such file",
		"git:":                                `got the revision ""`,
		"git:--all":                           `got the revision "--all"`,
		"http://x":                            `got "http://x", want tree, git:REVISION or build:PATH`,
	} {
		if _, err := m.Make(t.Context(), "B", text); err == nil || !strings.HasPrefix(err.Error(), "build B: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}
