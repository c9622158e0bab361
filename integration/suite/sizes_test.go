package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// A file counts for one part, as product or as test; what is not Go, or not of the repository, does not count.
func TestSizesOf(t *testing.T) {
	t.Parallel()
	file := func(lines string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(lines)} }
	got, err := sizesOf(fstest.MapFS{
		"pages.go":                         file("1\n"),
		"gateway/server.go":                file("1\n2\n"),
		"gateway/server_test.go":           file("1\n2\n3\n"),
		"gateway/extra/extra.go":           file("1\n"),
		"gateway/extra/trees/forest/a.go":  file("1\n2\n3\n4\n"),
		"gateway/extra/trees/x_test.go":    file("1\n"),
		"pushdown/store/storetest/laws.go": file("1\n"),
		"pushdown/README.md":               file("1\n"),
		"build/x.go":                       file("1\n"),
		".cache/x.go":                      file("1\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]size{
		"root":                {product: 1},
		"gateway (core)":      {product: 3, tests: 3},
		"gateway/extra/trees": {product: 4, tests: 1},
		"pushdown":            {tests: 1},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(size{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
