package docsite

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// sourceRoot is the top of the repository.
const sourceRoot = "../../.."

// messagesPage lists what somebody sees, in the first column of its tables.
const messagesPage = "gateway/docs/troubleshooting.md"

// shown is a message in such a column: as a program writes it, with … for what differs each time.
var shown = regexp.MustCompile("`([^`]+)`")

// foreignMessages are those of the operating system.
var foreignMessages = []string{"bind: address already in use"}

// Every message that the page of symptoms names is one that a program can write: its words are in the sources, those
// before and after a … in one place or in several.
func TestTroubleshooting_messages(t *testing.T) {
	page, err := os.ReadFile(path.Join(sourceRoot, messagesPage))
	if err != nil {
		t.Fatal(err)
	}
	sources := productSources(t) + strings.Join(foreignMessages, "\n")
	checked := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		seen, _, _ := strings.Cut(line[2:], " | ")
		for _, m := range shown.FindAllStringSubmatch(seen, -1) {
			checked++
			for words := range strings.SplitSeq(m[1], "…") {
				if words = strings.Trim(words, " :"); !strings.Contains(sources, words) {
					t.Errorf("%s: no program writes %q of %q", messagesPage, words, m[1])
				}
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d messages were found in %s", checked, messagesPage)
	}
}

// productSources are the Go and JavaScript files of gateways and pushdown servers as one text, without tests and
// without the ends of lines at which a message goes on in the next one.
func productSources(t *testing.T) string {
	var all strings.Builder
	tree := os.DirFS(sourceRoot)
	for _, folder := range []string{"gateway", "pushdown"} {
		err := fs.WalkDir(tree, folder, func(name string, d fs.DirEntry, err error) error {
			ext := path.Ext(name)
			if err != nil || d.IsDir() || ext != ".go" && ext != ".js" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(tree, name)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return broken.ReplaceAllString(all.String(), "")
}

// broken is where a text of Go goes on in the next line.
var broken = regexp.MustCompile(`" ?\+\n\s*"`)
