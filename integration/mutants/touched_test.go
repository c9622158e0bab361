package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A fault is touched by a change of its source file and of the file of its test, and by no other.
func TestTouched(t *testing.T) {
	all := []fault{
		{name: "a", file: "a/x.go", testFile: "b/x_test.go"},
		{name: "c", file: "c/x.go", testFile: "c/x_test.go"},
	}
	for file, want := range map[string][]string{
		"a/x.go":          {"a"},
		"b/x_test.go":     {"a"},
		"b/other_test.go": nil,
		"a/x_test.go":     nil,
		"c/x.go":          {"c"},
		"c/x_test.go":     {"c"},
		"x.go":            nil,
	} {
		var got []string
		for _, f := range touched(all, []string{file}) {
			got = append(got, f.name)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", file, d)
		}
	}
}
