package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of go test -json, as far as it is used: see go doc test2json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build's output
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string
}

// testRun is one test of a run, or a whole package, whose name is then empty.
type testRun struct {
	pkg, name string
	outcome   string // pass, fail or skip
	seconds   float64
}

func (r testRun) String() string { return strings.TrimSpace(r.pkg + " " + r.name) }

// summary is what a run of go test -json came to.
type summary struct {
	tests  []testRun // top-level tests in the order in which they ended
	failed []testRun // tests of any level and packages that failed
}

// summarize reads the events of go test -json up to their end. What a failed test or package wrote goes to
// out when it ends, and so does every line that is no event, for example of a build that failed.
func summarize(events io.Reader, out io.Writer) (summary, error) {
	var s summary
	written := map[[2]string]*strings.Builder{} // by package and test
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Action == "" {
			fmt.Fprintln(out, lines.Text())
			continue
		}
		top, _, nested := strings.Cut(e.Test, "/")
		key := [2]string{e.Package, top}
		switch e.Action {
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "output":
			if written[key] == nil {
				written[key] = new(strings.Builder)
			}
			written[key].WriteString(e.Output)
		case "pass", "fail", "skip":
			run := testRun{e.Package, e.Test, e.Action, e.Elapsed}
			if e.Action == "fail" {
				s.failed = append(s.failed, run)
			}
			if nested {
				continue // its output belongs to the whole test
			}
			if e.Test != "" {
				s.tests = append(s.tests, run)
			}
			if e.Action == "fail" && written[key] != nil {
				fmt.Fprintf(out, "%s\n%s", run, written[key])
			}
			delete(written, key)
		}
	}
	return s, lines.Err()
}

// slowest returns the n tests that took longest, the longest first.
func (s summary) slowest(n int) []testRun {
	all := slices.Clone(s.tests)
	slices.SortStableFunc(all, func(a, b testRun) int { return cmp.Compare(b.seconds, a.seconds) })
	return all[:min(n, len(all))]
}

// list names every test of the run with its outcome, sorted: two runs of one commit have equal lists.
func (s summary) list() []string {
	var lines []string
	for _, r := range s.tests {
		lines = append(lines, r.outcome+" "+r.String())
	}
	slices.Sort(lines)
	return lines
}
