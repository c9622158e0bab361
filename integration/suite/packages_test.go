package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A change is handed on by imports of packages, not by those of tests; embedded files belong to the package above.
func TestAffected(t *testing.T) {
	all := []pkg{
		{ImportPath: "downpour"},
		{ImportPath: "downpour/encoding"},
		{ImportPath: "downpour/pushdown", Imports: []string{"downpour/encoding"}},
		{ImportPath: "downpour/gateway", Imports: []string{"downpour/pushdown"}},
		{ImportPath: "downpour/gateway/web", TestImports: []string{"downpour/pushdown"}},
		{ImportPath: "downpour/bench", Imports: []string{"downpour/gateway/web"}},
	}
	for file, want := range map[string][]string{
		"encoding/x.go": {
			"downpour/encoding", "downpour/pushdown", "downpour/gateway", "downpour/gateway/web",
		},
		"gateway/web/static/b.html":  {"downpour/gateway/web", "downpour/bench"},
		"gateway/docs/live.md":       {"downpour/gateway"},
		"bench/bench_test.go":        {"downpour/bench"},
		"go.mod":                     {"./..."},
		"README.md":                  nil,
		"pages.go":                   {"downpour"},
		"pushdown/testdata/rows.txt": {"downpour/pushdown", "downpour/gateway", "downpour/gateway/web"},
	} {
		if d := cmp.Diff(want, affected(all, []string{file})); d != "" {
			t.Errorf("%s: -want +got\n%s", file, d)
		}
	}
	files := []string{
		"go.mod", "pages.go", "gateway/docs/live.md", "gateway/web/static/a.go", "bench/bench_test.go",
		"encoding/x.go",
	}
	if d := cmp.Diff([]string{"downpour", "downpour/encoding", "downpour/bench"}, edited(all, files)); d != "" {
		t.Errorf("edited: -want +got\n%s", d)
	}
}
