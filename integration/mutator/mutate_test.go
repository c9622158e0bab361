package main

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const before = `package x // of nothing

const c = 1 + 2

func f(a, b int, err error) error {
	ctx, cancel := context.WithTimeout(ctx, a)
	defer cancel()
	if a < b && (done || a == 0) {
		defer g(a)
		x := a - 1
	}
	return err
}
`

const after = `package x; import "downpour/integration/mutator/mutant" // of nothing

const c = 1 + 2

func f(a, b int, err error) error {
	ctx, cancel := context.WithTimeout(ctx, a)
	defer cancel()
	if ((((((mutant.Pick(5, a < b, a <= b)) || mutant.On(3)) && (((((done) && !mutant.On(6)) || ` +
	`((a == 0) && !mutant.On(7)))) || mutant.On(4))) && !mutant.On(2))) || mutant.On(1)) {
		if !mutant.On(8) { defer g(a) }
		x := mutant.Pick(9, a - 1, a + 1)
	}
	return mutant.Err(10, err)
}
`

func TestParse(t *testing.T) {
	s, err := parse("x.go", []byte(before), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(after, string(s.changed())); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	var got []string
	for _, f := range s.faults {
		got = append(got, f.what)
	}
	want := []string{
		"always: a < b && (done || a == 0)", "never: a < b && (done || a == 0)", "always: a < b",
		"always: (done || a == 0)", "never: done", "never: a == 0", "left out: defer g(a)", "with <=: a < b",
		"with +: a - 1", "no error: err",
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Of what was gone through whole all faults are tried if that is requested, and of other files a number.
func TestSample(t *testing.T) {
	defer func(before string) { packages = before }(packages)
	packages = "whole a/b 1m\nwhole c/d/x.go 2m\n"
	r := rand.New(rand.NewPCG(1, 1))
	var faults []fault
	for id := range 10 {
		faults = append(faults, fault{id: id, file: []string{"x.go", "y.go"}[id%2], what: "always: a"})
	}
	for pkg, want := range map[string][2]int{"a/b": {10, 0}, "c/d": {5, 2}, "a/c": {0, 2}} {
		count := func(s sample) (n [2]int) {
			for _, f := range s.of(faults, module+pkg, r) {
				if isWhole(module+pkg, f.file) {
					n[0]++
				} else {
					n[1]++
				}
			}
			return n
		}
		every := regexp.MustCompile("")
		if got := count(sample{every, 2, true}); got != want {
			t.Errorf("%s: %d faults of what was gone through whole and %d others, want %v", pkg, got[0], got[1], want)
		}
		if got := count(sample{every, 2, false}); got[0]+got[1] != 2 {
			t.Errorf("%s: %v faults, want two", pkg, got)
		}
		if got := count(sample{regexp.MustCompile("z.go"), 2, true}); got != [2]int{} {
			t.Errorf("%s: %v faults of a file that it does not have", pkg, got)
		}
	}
}

// On a line that does not compile with its faults there are none.
func TestWithout(t *testing.T) {
	except := map[string]map[int]bool{"x.go": {}, "y-z.go": {}}
	output := "# downpour/x\n../tmp/0-x.go:8:5: invalid operation\n./y-z.go:3: missing return\n"
	if !without(except, output) || without(except, output) {
		t.Error("lines that are new once are new twice, or never")
	}
	if d := cmp.Diff(map[string]map[int]bool{"x.go": {8: true}, "y-z.go": {3: true}}, except); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	s, err := parse("x.go", []byte(before), 1, except["x.go"])
	if err != nil {
		t.Fatal(err)
	}
	if len(s.faults) != 3 { // those of lines 9, 10 and 12
		t.Errorf("%d faults, want 3: %v", len(s.faults), s.faults)
	}
}
