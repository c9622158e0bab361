package seeds

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A line is read with its failure as one text; one that is none is an error with its number.
func TestParse(t *testing.T) {
	got, err := Parse(strings.NewReader("# comment\n\npushdown/lease TestLease 77 4a353ca0 fixed  --- FAIL: " +
		"TestLease\nintegration TestLife 9 4a353ca0 open no rows\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Seed{
		{
			Package: "pushdown/lease",
			Test:    "TestLease",
			Seed:    77,
			Commit:  "4a353ca0",
			Fixed:   true,
			Failure: "--- FAIL: TestLease",
		},
		{Package: "integration", Test: "TestLife", Seed: 9, Commit: "4a353ca0", Failure: "no rows"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for line, want := range map[string]string{
		"a TestB 7 c fixed":    "line 2: got 5 fields, want PACKAGE TEST SEED COMMIT open|fixed FAILURE",
		"a TestB 0 c fixed no": `line 2: seed: got "0", want a number from 1 to 2^64 - 1`,
		"a TestB x c fixed no": `line 2: seed: got "x", want a number from 1 to 2^64 - 1`,
		"a TestB 7 c done no":  `line 2: state: got "done", want open or fixed`,
	} {
		if _, err := Parse(strings.NewReader("\n" + line)); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", line, err, want)
		}
	}
}
