package main

import (
	"fmt"
	"testing"
)

// A fault counts as caught if the test ran and failed, not if it was not built or is not there.
func TestFailed(t *testing.T) {
	for output, want := range map[string]string{
		"--- FAIL: TestX (0.01s)\n    x_test.go:1: no\nFAIL\n":                "ran true, failed true after 0.01",
		"    --- FAIL: TestX/sub (0.02s)\n":                                   "ran true, failed true after 0.02",
		"panic: test timed out after 1m0s\n":                                  "ran true, failed true after ?",
		"ok  \tdownpour/x\t0.1s\n":                                            "ran true, failed false after ?",
		"FAIL\tdownpour/x [build failed]\nFAIL\n":                             "ran false, failed false after ?",
		"FAIL\t./x [setup failed]\nFAIL\n":                                    "ran false, failed false after ?",
		"ok  \tdownpour/x\t0.1s [no tests to run]\n":                          "ran false, failed false after ?",
		"?   \tdownpour/x\t[no test files]\n":                                 "ran false, failed false after ?",
		"# downpour/x\nx.go:1: undefined: y\nFAIL\tdownpour/x [build failed]": "ran false, failed false after ?",
	} {
		after, ok := failed(output, "TestX")
		if got := fmt.Sprintf("ran %t, failed %t after %s", !notRun(output), ok, after); got != want {
			t.Errorf("%q: got %s, want %s", output, got, want)
		}
	}
}
