package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const events = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"a speaks\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":2}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN TestB\n"}
{"Action":"output","Package":"p","Test":"TestB/one","Output":"b is wrong\n"}
{"Action":"fail","Package":"p","Test":"TestB/one","Elapsed":1}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":3}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p","Elapsed":5}
{"ImportPath":"q [q.test]","Action":"build-output","Output":"q.go:1: undefined: x\n"}
{"ImportPath":"q [q.test]","Action":"build-fail"}
{"Action":"output","Package":"q","Output":"FAIL q [build failed]\n"}
{"Action":"fail","Package":"q","Elapsed":0,"FailedBuild":"q [q.test]"}
go: a line of the go command
`

// The output of what failed is shown, that of what passed is not; tests are counted once, at the top.
func TestSummarize(t *testing.T) {
	var out strings.Builder
	s, err := summarize(strings.NewReader(events), &out)
	if err != nil {
		t.Fatal(err)
	}
	want := "p TestB\n=== RUN TestB\nb is wrong\np\nFAIL\nq.go:1: undefined: x\nq\nFAIL q [build failed]\n" +
		"go: a line of the go command\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("output: -want +got\n%s", d)
	}
	if d := cmp.Diff([]string{"fail p TestB", "pass p TestA"}, s.list()); d != "" {
		t.Errorf("list: -want +got\n%s", d)
	}
	var failed []string
	for _, r := range s.failed {
		failed = append(failed, r.String())
	}
	if d := cmp.Diff([]string{"p TestB/one", "p TestB", "p", "q"}, failed); d != "" {
		t.Errorf("failed: -want +got\n%s", d)
	}
	if slow := s.slowest(1); len(slow) != 1 || slow[0].name != "TestB" {
		t.Errorf("slowest: %v, want TestB", slow)
	}
}
