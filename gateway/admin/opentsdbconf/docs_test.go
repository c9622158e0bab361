package opentsdbconf

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tables of compatibility.md have each key once, with its variable or with the reason why it
// is not honoured.
func TestDocs_keys(t *testing.T) {
	var want []string
	want = append(want, composed...)
	for key, r := range honoured {
		want = append(want, fmt.Sprintf("| `%s` | `%s` |", key, r.variable))
	}
	for key, f := range constant {
		value := ""
		if f.value != "" {
			value = " `" + f.value + "`"
		}
		want = append(want, fmt.Sprintf("| `%s` |%s | %s |", key, value, f.reason))
	}
	for _, r := range reasons {
		want = append(want, fmt.Sprintf("| `%s` | | %s |", r.prefix, r.reason))
	}

	text, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## opentsdb.conf\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var got []string
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		key, _, _ := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
		switch {
		case !strings.HasPrefix(line, "| `"):
		case slices.Contains(composed, key): // what two keys become is described in words
			got = append(got, key)
		default:
			got = append(got, line)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys of the code (-) and of the docs (+):\n%s", diff)
	}
}
