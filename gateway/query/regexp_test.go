package query

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// lines reads a file of lines from testdata.
func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err == nil && strings.HasSuffix(name, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(text)); err == nil {
			text, err = io.ReadAll(z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// property and flag are what differs between expressions in the name of a construct.
var (
	property = regexp.MustCompile(`\\p\{.*?\}`)
	flag     = regexp.MustCompile(`^the flag [uU]$`)
)

// Regular expressions are found in the names in which Java finds them, as recorded by testdata/Regexps.java. What Java
// refuses is refused. What is not known here is refused, and the documentation names it.
//
//fault:borders-of-ascii !readsOtherwise(text) => true
func TestRegexp_java(t *testing.T) {
	page, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	names := lines(t, "regexpnames.txt")
	same, slow, refused := 0, 0, 0
	for _, line := range lines(t, "regexps.txt.gz") {
		want, text, _ := strings.Cut(line, " ")
		f, err := NewFilter(Regexp, "k", text, false)
		var unsupported *UnsupportedError
		switch {
		case err != nil && want == "-":
			refused++
			continue
		case errors.As(err, &unsupported):
			what := flag.ReplaceAllString(property.ReplaceAllString(unsupported.What, `\p{…}`), "the flags u and U")
			if !strings.Contains(string(page), "| "+what+" ") {
				t.Errorf("%s: the page has no row of %q", text, what)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v, and Java takes it", text, err)
			continue
		case want == "-":
			t.Errorf("%s is taken, and Java refuses it", text)
			continue
		}
		for i, name := range names {
			if got := f.Match(name); got != (want[i] == '1') || f.Err() != nil {
				t.Errorf("%s in %q: got %t, %v, want as in Java %c", text, name, got, f.Err(), want[i])
			}
			if f.Match(name) && !strings.HasPrefix(name, f.Prefix()) {
				t.Errorf("%s is found in %q, which has not its prefix %q", text, name, f.Prefix())
			}
		}
		same++
		if f.regexp.slow != nil {
			slow++
		}
	}
	if same < 500 || slow < 300 || refused < 60 {
		t.Errorf("%d expressions compared, %d of them not by RE2, and %d refused; want 500, 300 and 60 at least", same,
			slow, refused)
	}
}

// Case is ignored among letters of ASCII alone, as in Java; RE2 takes ſ for an s, and K for a k.
func TestRegexp_ignoresCaseOfASCII(t *testing.T) {
	for text, name := range map[string]string{`(?i)s`: "ſ", `(?i)[a-z]`: "ſ", `(?i)k`: "\u212a", `(?i)é`: "É"} {
		f, err := NewFilter(Regexp, "k", text, false)
		if err != nil {
			t.Fatal(err)
		}
		if f.Match(name) {
			t.Errorf("%s is found in %q, and Java does not find it", text, name)
		}
	}
	f, err := NewFilter(Regexp, "k", `^(?i)[^s]$`, false)
	if err != nil || !f.Match("ſ") || f.Match("S") {
		t.Errorf("[^s]: error %v, ſ %t, S %t, want only ſ", err, f.Match("ſ"), f.Match("S"))
	}
}

// An expression that takes too many steps is found in no name, and says so for good.
func TestRegexp_steps(t *testing.T) {
	f, err := NewFilter(Regexp, "k", `(a*)(a*)(a*)(a*)(a*)(a*)\1x`, false)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Match("ax") || f.Err() != nil {
		t.Errorf("a short name: %v, want it found", f.Err())
	}
	if f.Match(strings.Repeat("a", 100)) || f.Err() == nil || !strings.Contains(f.Err().Error(), "too many steps") {
		t.Errorf("a long name: %v, want that it takes too many steps", f.Err())
	}
	if f.Match("ax") || f.Err() == nil {
		t.Errorf("afterwards: %v, want the error to stay", f.Err())
	}
}
