// Package seeds reads the list of seeds with which soak has failed:
//
//	# package         test        seed   commit    state  first line of the failure
//	pushdown/lease    TestLease   77     4a353ca0  fixed  --- FAIL: TestLease (0.02s)
//	integration       TestLife    99     4a353ca0  open   no rows compacted by the pushdown server
//
// Fields are separated by blanks. Lines that begin with # and empty ones are comments.
package seeds

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Seed is a seed with which a test has failed.
type Seed struct {
	Package string // folder in the module
	Test    string
	Seed    uint64
	Commit  string
	Fixed   bool   // the test passes with it now, and make test repeats it
	Failure string // first line
}

// Parse reads the list. An error names the line.
func Parse(list io.Reader) (all []Seed, err error) {
	lines := bufio.NewScanner(list)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		s, err := parse(strings.Fields(text))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, s)
	}
	return all, lines.Err()
}

func parse(fields []string) (s Seed, err error) {
	if len(fields) < 6 {
		return s, fmt.Errorf("got %d fields, want PACKAGE TEST SEED COMMIT open|fixed FAILURE", len(fields))
	}
	s = Seed{
		Package: fields[0],
		Test:    fields[1],
		Commit:  fields[3],
		Fixed:   fields[4] == "fixed",
		Failure: strings.Join(fields[5:], " "),
	}
	if s.Seed, err = strconv.ParseUint(fields[2], 10, 64); err != nil || s.Seed == 0 {
		return s, fmt.Errorf("seed: got %q, want a number from 1 to 2^64 - 1", fields[2])
	}
	if !s.Fixed && fields[4] != "open" {
		return s, fmt.Errorf("state: got %q, want open or fixed", fields[4])
	}
	return s, nil
}
