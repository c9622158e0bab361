package encoding

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// go test ./encoding -update writes the expected output in every script under testdata/describe and
// in docs again; a reviewer then reads the difference.
var update = flag.Bool("update", false, "rewrite the expected output in testdata/describe and docs")

// A script is a list of steps, each a line of input, a line ----, and the output
// that Dump or Describe gives, up to an empty line. Lines with # are comments.
//
//	schema salt=1 buckets=4 metric=4 tagk=2 tagv=4     sets the layout
//	cell FAMILY ROW QUALIFIER VALUE                    describes a cell, in hex or - for no bytes
//	rows FILE                                          dumps testdata/rows/FILE
func TestDescribe_scripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/describe/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		t.Run(filepath.Base(path), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(want))
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s\nif the change is meant: go test ./encoding -update", diff)
			}
		})
	}
}

// The examples of the format pages are scripts too, in blocks that begin with
// ```cells: what a page shows is what the code prints.
func TestDocs_examples(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	const open, end = "```cells\n", "```\n"
	for _, path := range pages {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		rest := string(want)
		for {
			before, block, found := strings.Cut(rest, open)
			got.WriteString(before)
			if !found {
				break
			}
			script, after, _ := strings.Cut(block, end)
			got.WriteString(open + runScript(t, script) + end)
			rest = after
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" && !*update {
			t.Errorf("%s (-want +got):\n%s\nif the change is meant: go test ./encoding -update", path, diff)
		}
		if *update {
			if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// runScript returns the script with the output that its steps give now.
func runScript(t *testing.T, script string) string {
	var out strings.Builder
	s := DefaultSchema()
	for block := range strings.SplitSeq(strings.TrimRight(script, "\n"), "\n\n") {
		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		input, _, _ := strings.Cut(block, "\n----")
		out.WriteString(input + "\n")
		for line := range strings.Lines(input) {
			runStep(t, &s, strings.Fields(line), &out)
		}
	}
	return out.String()
}

func runStep(t *testing.T, s *Schema, words []string, out *strings.Builder) {
	switch {
	case len(words) == 0 || words[0] == "#":
	case words[0] == "schema":
		*s = Schema{MaxTags: 8}
		for i, field := range []*int{&s.SaltWidth, &s.SaltBuckets, &s.MetricWidth, &s.TagKWidth, &s.TagVWidth} {
			if _, err := fmt.Sscanf(words[i+1],
				[]string{"salt=%d", "buckets=%d", "metric=%d", "tagk=%d", "tagv=%d"}[i], field); err != nil {
				t.Fatalf("%v: %v", words, err)
			}
		}
	case words[0] == "cell":
		c := Cell{words[1], unhex(t, words[2]), unhex(t, strings.Trim(words[3], "-")), unhex(t, words[4])}
		fmt.Fprintf(out, "----\n%s", s.Describe(nil, KindOf(c.Family, c.Qualifier), c))
	case words[0] == "rows":
		f, err := os.Open("testdata/rows/" + words[1])
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out.WriteString("----\n")
		if err := s.Dump(out, f); err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatalf("unknown step %v", words)
	}
}

// Every byte of a cell is shown once and in order.
func TestDescribe_showsEveryByte(t *testing.T) {
	for _, file := range recordedFiles {
		for _, c := range readRows(t, file.name) {
			text := file.schema.Describe(nil, KindOf(c.Family, c.Qualifier), c)
			want := bytes.Join([][]byte{c.Row, c.Qualifier, c.Value}, nil)
			if got := shownBytes(t, text); !bytes.Equal(got, want) {
				t.Errorf("%s shows % X, want % X", text, got, want)
			}
		}
	}
}

// shownBytes collects the bytes that a description shows in hex. They begin at the 9th character
// of an indented line, after the offset.
func shownBytes(t *testing.T, text []byte) (b []byte) {
	for line := range strings.Lines(string(text)) {
		if len(line) < 8 || line[0] != ' ' {
			continue
		}
		for i := 8; i+1 < len(line) && isUpperHex(line[i]) && isUpperHex(line[i+1]); i += 3 {
			b = append(b, unhex(t, line[i:i+2])...)
		}
	}
	return b
}

func isUpperHex(c byte) bool { return '0' <= c && c <= '9' || 'A' <= c && c <= 'F' }

// What is rarely seen is shown, too: a key alone, a wrong salt of the only bucket, text that is no UTF-8, values that
// are cut, cells without a value, and long lines.
func TestDescribe_rare(t *testing.T) {
	s := DefaultSchema()
	s.SaltWidth, s.SaltBuckets = 1, 1
	row := []byte("\x05\x00\x00\x01\x50\xe2\x27\x00\x00\x00\x01\x00\x00\x01")
	describe := func(qualifier, value string) string {
		c := Cell{Row: row, Family: FamilyData, Qualifier: []byte(qualifier), Value: []byte(value)}
		return string(s.Describe(nil, KindOf(FamilyData, c.Qualifier), c))
	}
	all := describe("\x00\x00\x00\x10", "\x01\x02")
	for what, c := range map[string]struct{ got, want string }{
		"a key":         {all[:min(len(all), len(s.DescribeRowKey(nil, row)))], string(s.DescribeRowKey(nil, row))},
		"a salt":        {all, "salt 5 !! with 1 buckets it would be 0"},
		"a cut end":     {all, "!! 0 bytes after the points, want 1"},
		"no value":      {describe("\x01\x00\x00", ""), "value, 0 bytes"},
		"an empty note": {describe("\x01\x00\x00", ""), `""`},
		"a prefix":      {describe("\x80\x00\x00", "x"), "!! unknown prefix"},
		"a name": {string(s.Describe(nil, KindOf(FamilyName, []byte("metrics")),
			Cell{Row: CounterRow, Family: FamilyName, Qualifier: []byte("metrics"), Value: []byte("x")})), "UID 0"},
		"no UTF-8":    {describe("\x01\x00\x00", "{"+strings.Repeat("\x80", 20)), "     4  80   "},
		"a last part": {describe("\x01\x00\x00", "{"+strings.Repeat("\x80", 20)), "     5  80 80 80"},
	} {
		if !strings.Contains(c.got, c.want) || strings.Contains(c.got, "counter") || c.want == "" {
			t.Errorf("%s: got\n%s\nwant it to have %q", what, c.got, c.want)
		}
	}
	if c := (Cell{Qualifier: []byte("\x01\x00"), Value: []byte("\x01")}); looksLikeRollup(c) {
		t.Errorf("a cell with a qualifier of two bytes, %v, looks like that of a rollup", c)
	}
	line := `{"table":"tsdb","row":"00000150e22700000001000001","family":"t","qualifier":"","value":"` +
		strings.Repeat("00", 50_000) + `"}`
	if err := DefaultSchema().Dump(io.Discard, strings.NewReader(line)); err != nil {
		t.Errorf("a line of %d bytes: %v", len(line), err)
	}
}

func TestDump_namesTheLine(t *testing.T) {
	s := DefaultSchema()
	good := `{"table":"tsdb","row":"00000150e22700000001000001","family":"t","qualifier":"0000","value":"12"}`
	for bad, want := range map[string]string{
		"x":                       "line 3: encoding: cannot parse dump line: invalid character",
		`{"row":"0"}`:             `line 3: encoding: cannot parse row "0"`,
		`{"row":"","value":"zz"}`: `line 3: encoding: cannot parse value "zz"`,
	} {
		var out bytes.Buffer
		err := s.Dump(&out, strings.NewReader(good+"\n\n"+bad+"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", bad, err, want)
		}
		if !strings.HasPrefix(out.String(), "== tsdb t\nrow key, 13 bytes\n") {
			t.Errorf("%s: the output for the line before it is %q", bad, out.String())
		}
	}
}
