package main

import (
	"fmt"
	"testing"
)

// A fault counts as caught if the test ran and failed, not if it was not built or did not run.
func TestFailed(t *testing.T) {
	for output, want := range map[string]string{
		"--- FAIL: TestX (0.01s)\n    x_test.go:1: no\nFAIL\n":                "0.01 true",
		"    --- FAIL: TestX/sub (0.02s)\n":                                   "0.02 true",
		"panic: test timed out after 1m0s\n":                                  "? true",
		"FAIL\tdownpour/x [build failed]\nFAIL\n":                             " false",
		"ok  \tdownpour/x\t0.1s [no tests to run]\n":                          "? false",
		"# downpour/x\nx.go:1: undefined: y\nFAIL\tdownpour/x [build failed]": " false",
	} {
		if ran, ok := failed(output, "TestX"); fmt.Sprint(ran, " ", ok) != want {
			t.Errorf("%q: got %s %t, want %s", output, ran, ok, want)
		}
	}
}
