package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// size is how many lines of Go a part has.
type size struct{ product, tests int }

// printSizes prints the size of the core of the gateway, of each extra and of all other folders.
func (r *runner) printSizes(context.Context, options, []string) error {
	sizes, err := sizesOf(os.DirFS(r.root))
	if err != nil {
		return err
	}
	var total size
	for _, part := range slices.Sorted(maps.Keys(sizes)) {
		s := sizes[part]
		fmt.Fprintf(r.out, "%-32s %7d  tests %7d\n", part, s.product, s.tests)
		total.product, total.tests = total.product+s.product, total.tests+s.tests
	}
	fmt.Fprintf(r.out, "%-32s %7d  tests %7d\n", "total", total.product, total.tests)
	return nil
}

// sizesOf counts the lines of each part of a tree. What is in a _test.go file, testdata or a
// package whose name ends in test is of its tests.
func sizesOf(tree fs.FS) (map[string]size, error) {
	sizes := map[string]size{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (name == "build" || name == "node_modules" || strings.HasPrefix(d.Name(), ".") && name != ".") {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		part, lines := partOf(name), bytes.Count(text, []byte("\n"))
		s := sizes[part]
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "test/") ||
			strings.Contains(name, "/testdata/") {
			s.tests += lines
		} else {
			s.product += lines
		}
		sizes[part] = s
		return nil
	})
	return sizes, err
}

// partOf returns the part that a file belongs to: an extra, the core of the gateway, or its folder at the top.
func partOf(file string) string {
	words := strings.Split(file, "/")
	switch {
	case len(words) == 1:
		return "root"
	case strings.HasPrefix(file, "gateway/extra/") && len(words) > 3:
		return strings.Join(words[:3], "/")
	case words[0] == "gateway":
		return "gateway (core)"
	}
	return words[0]
}
