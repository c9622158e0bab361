package docsite_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"downpour"
	docsite "downpour/gateway/extra/docsite"
)

const root = "../../.."

// The site can be made of the pages that programs have, and what pages name of the source is there.
func TestBuild_pages(t *testing.T) {
	files, err := docsite.Build(downpour.Pages)
	if err != nil {
		t.Fatal(err)
	}
	if err := docsite.CheckSources(downpour.Pages, os.DirFS(root)); err != nil {
		t.Error(err)
	}
	if len(files) < 50 || files["search.json"] == nil {
		t.Errorf("got the files %v", slices.Sorted(maps.Keys(files)))
	}
	for line := range strings.Lines(string(files["search.json"])) {
		if strings.HasPrefix(line, `{"a":"/docs/api`) && (strings.Contains(line, "`") || strings.Contains(line, "](")) {
			t.Errorf("the search would show marks of Markdown: %s", line)
		}
	}
}

// Every page of the source has a topic.
func TestTopics_allPages(t *testing.T) {
	listed := map[string]bool{}
	for _, topic := range docsite.Topics() {
		for _, p := range topic.Pages {
			listed[p.Path] = true
		}
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := len(name) > 1 && strings.HasPrefix(d.Name(), ".")
		if d.IsDir() && (hidden ||
			slices.Contains([]string{"node_modules", "build", "bin", "data", "testdata", "__pycache__"}, d.Name())) {
			return fs.SkipDir
		}
		if path.Ext(name) == ".md" && !listed[name] {
			t.Errorf("%s is on no topic of gateway/extra/docsite/pages.go", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
